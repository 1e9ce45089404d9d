// SPDX-License-Identifier: Apache-2.0
//
// Results as JSON: every field comes back, and what is not ours is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "results.hpp"

namespace {

using namespace itspace::experiments;
using Json = nlohmann::json;

constexpr double infinity = std::numeric_limits<double>::infinity();

// No two fields alike, so that a swapped pair shows.
Results example() {
  Results results;
  results.experiment = "alignment";
  results.version = "9.8.7";
  results.command = "itspace experiment \"alignment\" <&>";
  results.started = "2031-02-03T04:05:06Z";
  results.seconds = 0.1 + 0.2;
  results.machine = {"a processor", "a system", "a compiler", "a BLAS", 3, 5, 7.75};
  results.rank = 11;
  results.steps = 13;
  results.seeds = {0, std::numeric_limits<std::uint64_t>::max()};
  results.thresholds = {1e-300, 1.0 / 3.0};
  results.budgets = {17, 19};
  results.notes = {"first", "sécond\n"};
  results.methods = {{"id", "title", "family", "objective", "cost", "settings"}};
  AlignmentInstance aligned;
  aligned.info = {"name", "a title", "a description", Outcome::failed, "a reason", 23, 29, 31, 37.5};
  aligned.covariance_seconds = 41.25;
  aligned.runs = {{"ritz", 43, 47.125, 53, "chosen", {{59, 61, 67.5, 71.5, 73.5, 79.5, 83.5}, Row{}}}, Run{}};
  results.alignment = {aligned, AlignmentInstance{}};
  DriftInstance drifted;
  drifted.info.name = "other";
  drifted.info.outcome = Outcome::skipped;
  drifted.metric = "AUROC";
  drifted.classes = 89;
  drifted.closed_set = true;
  drifted.chance = 97.5;
  drifted.cells = {{"mix", 101.5, 103, 107.5, {{"bw-gd", "monge", 109, 113.5, 127.5}}}};
  results.covdrift = {drifted};
  return results;
}

void expect_refused(const std::function<void()>& read, const std::vector<std::string>& parts) {
  try {
    read();
    FAIL() << "was read";
  } catch (const std::runtime_error& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << " lacks " << part;
    }
  }
}

TEST(ResultsJson, HoldsEveryValueWhereTheStructureSays) {
  const Json json = Json::parse(to_json(example()));
  EXPECT_EQ(json["schema"], "itspace.experiment/1");
  EXPECT_EQ(json["command"], "itspace experiment \"alignment\" <&>");
  EXPECT_EQ(json["seconds"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json["machine"], Json::parse(R"({"processor": "a processor", "system": "a system", "compiler": "a compiler",
      "blas": "a BLAS", "cores": 3, "blas_threads": 5, "memory_in_gib": 7.75})"));
  EXPECT_EQ(json["seeds"][1].get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json["methods"][0], Json::parse(R"({"id": "id", "title": "title", "family": "family",
      "objective": "objective", "cost": "cost", "settings": "settings"})"));
  EXPECT_EQ(json["alignment"][0]["info"],
            Json::parse(R"({"name": "name", "title": "a title", "description": "a description", "outcome": "failed",
      "reason": "a reason", "dim": 23, "source_samples": 29, "target_samples": 31, "seconds": 37.5})"));
  const Json& run = json["alignment"][0]["runs"][0];
  EXPECT_EQ(run["preprocessing_seconds"], 47.125);
  EXPECT_EQ(run["rows"][0], Json::parse(R"({"step": 59, "passes": 61, "objective": 67.5, "gap": 71.5,
      "update_seconds": 73.5, "projection_seconds": 79.5, "evaluation_seconds": 83.5})"));
  const Json& cell = json["covdrift"][0]["cells"][0];
  EXPECT_EQ(cell["clean"], 107.5);
  EXPECT_EQ(cell["rows"][0], Json::parse(R"({"method": "bw-gd", "map": "monge", "budget": 109, "value": 113.5,
      "adaptation_seconds": 127.5})"));
}

// What is written from the reading of a text is that text: with the test above, every field survives both ways.
TEST(ResultsJson, ComesBackWhole) {
  const std::string text = to_json(example());
  const Results back = results_from_json(text);
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.thresholds, example().thresholds);
  EXPECT_EQ(back.notes, example().notes);
  EXPECT_EQ(back.seeds, example().seeds);
  ASSERT_EQ(back.covdrift.size(), 1u);
  EXPECT_EQ(back.covdrift[0].info.outcome, Outcome::skipped);
  EXPECT_TRUE(back.covdrift[0].closed_set);
}

TEST(ResultsJson, NumbersThatAreNotFiniteAreNullAndThenNaN) {
  Results results = example();
  results.seconds = infinity;
  results.alignment[0].runs[0].rows[0].gap = std::nan("");
  results.covdrift[0].cells[0].rows[0].value = -infinity;
  results.thresholds = {infinity};
  const std::string text = to_json(results);
  const Json json = Json::parse(text);
  EXPECT_TRUE(json["seconds"].is_null());
  EXPECT_TRUE(json["alignment"][0]["runs"][0]["rows"][0]["gap"].is_null());
  const Results back = results_from_json(text);
  EXPECT_TRUE(std::isnan(back.seconds));
  EXPECT_TRUE(std::isnan(back.alignment[0].runs[0].rows[0].gap));
  EXPECT_TRUE(std::isnan(back.covdrift[0].cells[0].rows[0].value));
  EXPECT_TRUE(std::isnan(back.thresholds.at(0)));
}

TEST(ResultsJson, WritesTextThatIsNotUnicode) {
  Results results;
  results.command = "itspace --out \xff\xfe";
  EXPECT_NO_THROW(results_from_json(to_json(results)));
}

TEST(ResultsJson, RefusesWhatIsNotOurs) {
  const Json good = Json::parse(to_json(example()));
  Json json = good;
  json["schema"] = "itspace.experiment/2";
  expect_refused([&] { results_from_json(json.dump()); }, {"itspace.experiment/2", "itspace.experiment/1", "run"});
  json = good;
  json.erase("rank");
  expect_refused([&] { results_from_json(json.dump()); }, {"rank", "missing"});
  json = good;
  json["alignment"][0]["runs"][0]["rows"][0]["passes"] = -1;
  expect_refused([&] { results_from_json(json.dump()); }, {"alignment[0].runs[0].rows[0].passes", "-1"});
  json = good;
  json["alignment"][0]["info"]["outcome"] = "well";
  expect_refused([&] { results_from_json(json.dump()); }, {"outcome", "well", "skipped"});
  json = good;
  json["methods"] = "all";
  expect_refused([&] { results_from_json(json.dump()); }, {"methods", "array"});
  json = good;
  json["seconds"] = "long";
  expect_refused([&] { results_from_json(json.dump()); }, {"seconds", "number"});
  const std::string text = good.dump();
  for (const std::string& bad : {std::string(), text.substr(0, text.size() / 2), std::string("[]"), std::string("3")}) {
    expect_refused([&] { results_from_json(bad); }, {"results"});
  }
}

TEST(InstanceJson, ComesBackWithItsOwnSettingsOnly) {
  const AlignmentInstance instance = example().alignment[0];
  const std::string text = to_json(instance, "rank 16");
  AlignmentInstance back;
  ASSERT_TRUE(from_json(text, "rank 16", back));
  EXPECT_EQ(to_json(back, "rank 16"), text);
  AlignmentInstance untouched;
  untouched.info.name = "mine";
  EXPECT_FALSE(from_json(text, "rank 8", untouched));
  EXPECT_EQ(untouched.info.name, "mine");

  const DriftInstance drifted = example().covdrift[0];
  DriftInstance drift_back;
  ASSERT_TRUE(from_json(to_json(drifted, "k"), "k", drift_back));
  EXPECT_EQ(to_json(drift_back, "k"), to_json(drifted, "k"));
  EXPECT_FALSE(from_json(text, "rank 16", drift_back)) << "an alignment is no drift";
}

TEST(InstanceJson, KnowsItsKeyWhateverItsBytes) {
  const std::string key = "--data \xff";
  AlignmentInstance back;
  EXPECT_TRUE(from_json(to_json(AlignmentInstance{}, key), key, back));
}

TEST(InstanceJson, RefusesADamagedFile) {
  const std::string text = to_json(example().alignment[0], "k");
  AlignmentInstance back;
  expect_refused([&] { from_json(text.substr(0, text.size() - 20), "k", back); }, {"remove the file"});
  Json json = Json::parse(text);
  json["schema"] = "something/1";
  expect_refused([&] { from_json(json.dump(), "k", back); }, {"something/1"});
}

}  // namespace
