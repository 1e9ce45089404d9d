// SPDX-License-Identifier: Apache-2.0
//
// itspace experiment: what it runs, leaves behind, survives and refuses.
#include "program.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace itspace::cli_test {
namespace {

class Experiment : public ProgramTest {
 protected:
  Experiment() {
    write_set("toy", 60, 6);
    write_set("other", 50, 5);
  }

  // Two domains of two classes that lie apart along the first axis; the second domain is stretched along the second.
  void write_set(const std::string& name, Index samples, Index dim) const {
    fs::create_directories(path("data/" + name));
    for (const bool second : {false, true}) {
      Matrix x = gaussian(samples, dim, second ? 11 : 10), y(samples, 1);
      for (Index i = 0; i < samples; ++i) {
        y(i, 0) = static_cast<double>(i % 2);
        x(i, 0) += 4 * y(i, 0);
      }
      if (second) x.col(1) *= 3;
      const std::string stem = "data/" + name + (second ? "/b" : "/a");
      write_float(stem + "_x.npy", x);
      write(stem + "_y.npy", y);
    }
  }

  std::vector<std::string> alignment(const std::string& instances, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{
        "experiment", "alignment", "--data", "data",    "--instances", instances,   "--out",
        "out",        "--rank",    "2",      "--seeds", "0,1",         "--methods", "paper-1,ritz,euclidean,bw-gd",
        "--steps",    "4"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> covdrift(const std::string& instances) const {
    return {"experiment", "covdrift", "--data",  "data", "--instances", instances,           "--out",     "out",
            "--rank",     "2",        "--seeds", "0",    "--methods",   "paper-1,euclidean", "--budgets", "1,2"};
  }
};

TEST_F(Experiment, AlignmentLeavesNumbersTablesFiguresAndAPage) {
  const auto done = run(alignment("toy:a:b,other:a:b"));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.out, {"out/report.html"}));
  for (const char* file : {"out/results.json", "out/tables.md", "out/tables.csv", "out/report.html",
                           "out/instances/toy+a+b.json", "out/instances/other+a+b.json"})
    EXPECT_TRUE(exists(file)) << file;

  const Json results = json_of("out/results.json");
  EXPECT_EQ(results["schema"], "itspace.experiment/1");
  EXPECT_EQ(results["experiment"], "alignment");
  EXPECT_TRUE(mentions(results["command"].get<std::string>(), {"itspace experiment alignment", "--steps 4"}));
  ASSERT_EQ(results["alignment"].size(), 2u);
  EXPECT_EQ(results["alignment"][0]["runs"].size(), 8u);  // 4 methods, 2 seeds
  EXPECT_TRUE(mentions(text_of("out/report.html"), {"<html", "toy:a:b"}));
}

TEST_F(Experiment, ResumeKeepsWhatWasFinishedAndRunsTheRest) {
  ASSERT_EQ(run(alignment("toy:a:b")).exit_code, 0);
  const std::string before = text_of("out/instances/toy+a+b.json");
  const auto done = run(alignment("toy:a:b,other:a:b", {"--resume"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(text_of("out/instances/toy+a+b.json"), before);  // its times would differ
  EXPECT_EQ(json_of("out/results.json")["alignment"].size(), 2u);
  // With other settings nothing is kept.
  auto other = alignment("toy:a:b", {"--resume"});
  other.back() = "--resume";
  for (std::string& argument : other)
    if (argument == "4") argument = "3";
  ASSERT_EQ(run(other).exit_code, 0);
  EXPECT_NE(text_of("out/instances/toy+a+b.json"), before);
}

TEST_F(Experiment, ResumeDoesNotTakeOldDataForNew) {
  ASSERT_EQ(run(alignment("toy:a:b")).exit_code, 0);
  write_set("toy", 80, 6);
  const auto done = run(alignment("toy:a:b", {"--resume"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(json_of("out/results.json")["alignment"][0]["info"]["source_samples"], 80);
  const auto again = run(alignment("toy:a:b", {"--resume"}));
  EXPECT_TRUE(mentions(again.err, {"toy:a:b: kept from an earlier run"}));
}

TEST_F(Experiment, InstancesOfAlikeNamesStayApart) {
  for (const char* name : {"a_b", "a"}) write_set(name, 60, 6);
  for (const char* file : {"a_x.npy", "a_y.npy"}) {
    fs::copy(path(std::string("data/a_b/") + file), path(std::string("data/a_b/c") + (file + 1)));
    fs::copy(path(std::string("data/a/") + file), path(std::string("data/a/b_c") + (file + 1)));
  }
  ASSERT_EQ(run(alignment("a_b:c:b,a:b_c:b")).exit_code, 0);
  const auto done = run(alignment("a_b:c:b,a:b_c:b", {"--resume"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json results = json_of("out/results.json");
  EXPECT_EQ(results["alignment"][0]["info"]["name"], "a_b:c:b");
  EXPECT_EQ(results["alignment"][1]["info"]["name"], "a:b_c:b");
}

TEST_F(Experiment, AFolderKeepsOneExperiment) {
  ASSERT_EQ(run(alignment("toy:a:b")).exit_code, 0);
  const std::string before = text_of("out/results.json");
  const auto other = run(covdrift("toy:a:b"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(mentions(other.err, {"alignment", "--out"}));
  const auto typo = run(alignment("toy"));
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_TRUE(mentions(typo.err, {"'toy'", "FOLDER:FROM:TO"}));
  EXPECT_EQ(text_of("out/results.json"), before);
}

TEST_F(Experiment, WhatDoesNotVaryHasNoCovariance) {
  fs::create_directories(path("data/still"));
  for (const char* file : {"data/still/a_x.npy", "data/still/b_x.npy"}) write_float(file, Matrix::Ones(30, 6));
  const auto done = run(alignment("still:a:b"));
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"still:a:b", "do not vary"}));
}

TEST_F(Experiment, WithoutGnuplotTheProgramSaysSo) {
  // A path without it: only the program's own folder.
  ::setenv("ITSPACE_TEST_PATH", ::getenv("PATH"), 1);
  ::setenv("PATH", "/nonexistent", 1);
  const auto done = run(alignment("toy:a:b"));
  ::setenv("PATH", ::getenv("ITSPACE_TEST_PATH"), 1);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.err, {"gnuplot"}));
  EXPECT_TRUE(exists("out/report.html"));
}

TEST_F(Experiment, AnInterruptLeavesTheFinishedInstances) {
  write_set("slow", 400, 200);
  auto arguments = alignment("toy:a:b,slow:a:b");
  for (std::string& argument : arguments)
    if (argument == "0,1") argument = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19";
  const auto done = run_and_interrupt(arguments, "out/instances/toy+a+b.json");
  EXPECT_EQ(done.exit_code, 130) << done.err;
  EXPECT_TRUE(mentions(done.err, {"--resume"}));
  EXPECT_EQ(json_of("out/results.json")["alignment"].size(), 1u);
  EXPECT_FALSE(exists("out/instances/slow+a+b.json"));
  EXPECT_TRUE(mentions(text_of("out/report.html"), {"interrupted after 1 of 2"}));
}

TEST_F(Experiment, OneBadInstanceDoesNotStopTheOthers) {
  Matrix x = gaussian(60, 6, 1);
  x(3, 4) = std::numeric_limits<double>::quiet_NaN();
  fs::create_directories(path("data/broken"));
  write_float("data/broken/a_x.npy", x);
  write_float("data/broken/b_x.npy", gaussian(60, 6, 2));
  const auto done = run(alignment("broken:a:b,toy:a:b"));
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"a_x.npy", "nan", "[3, 4]"}));
  const Json results = json_of("out/results.json");
  EXPECT_EQ(results["alignment"][0]["info"]["outcome"], "failed");
  EXPECT_EQ(results["alignment"][1]["info"]["outcome"], "done");
  EXPECT_TRUE(mentions(text_of("out/report.html"), {"a_x.npy"}));
}

TEST_F(Experiment, AMissingFolderIsToldTheLayout) {
  const auto done = run(alignment("camelyon17,toy:a:b"));
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_TRUE(mentions(done.err, {"camelyon17", "source_x.npy"}));
  EXPECT_TRUE(exists("out/instances/toy+a+b.json"));
}

TEST_F(Experiment, CovdriftShowsEveryRow) {
  const auto done = run(covdrift("toy:a:b"));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json results = json_of("out/results.json");
  const Json& instance = results["covdrift"][0];
  EXPECT_EQ(instance["metric"], "AUROC");
  EXPECT_EQ(instance["cells"].size(), 3u);  // none, scale, mix
  for (const Json& cell : instance["cells"]) {
    std::vector<std::string> methods;
    for (const Json& row : cell["rows"]) methods.push_back(row["method"]);
    for (const char* wanted : {"none", "mean", "paper-1", "euclidean", "endpoint"})
      EXPECT_NE(std::find(methods.begin(), methods.end(), wanted), methods.end()) << wanted;
  }
}

TEST_F(Experiment, CovdriftRefusesLabelsThatDoNotFit) {
  write("data/toy/a_y.npy", gaussian(10, 1, 1).array().round());
  EXPECT_TRUE(mentions(run(covdrift("toy:a:b,other:a:b")).err, {"a_y.npy", "10", "60"}));
  EXPECT_TRUE(exists("out/instances/other+a+b.json"));
  write("data/toy/a_y.npy", Matrix::Ones(60, 1));
  const auto one_class = run(covdrift("toy:a:b"));
  EXPECT_EQ(one_class.exit_code, 2);
  EXPECT_TRUE(mentions(one_class.err, {"class"}));
}

TEST_F(Experiment, WrongArgumentsAreNamed) {
  EXPECT_TRUE(mentions(run({"experiment"}).err, {"subcommand"}));
  auto wrong = alignment("toy:a:b", {"--methods", "newton"});
  const auto method = run(wrong);
  EXPECT_EQ(method.exit_code, 2);
  EXPECT_TRUE(mentions(method.err, {"newton", "paper-0.9"}));
  const auto drift = run({"experiment", "covdrift", "--out", "out", "--drift", "shear"});
  EXPECT_EQ(drift.exit_code, 2);
  EXPECT_TRUE(mentions(drift.err, {"shear", "scale"}));
  const auto severity = run({"experiment", "covdrift", "--out", "out", "--severity", "0.5"});
  EXPECT_EQ(severity.exit_code, 2);
  EXPECT_TRUE(mentions(severity.err, {"0.5"}));
  const auto rank = run(alignment("toy:a:b", {"--seeds", "two"}));
  EXPECT_EQ(rank.exit_code, 2);
  EXPECT_TRUE(mentions(rank.err, {"--seeds", "two"}));
  const auto twice = run(alignment("toy:a:b", {"--seeds", "0,0"}));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_TRUE(mentions(twice.err, {"--seeds", "twice"}));
  const auto nowhere = run({"experiment", "alignment", "--out", "out", "--data", "nowhere"});
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_TRUE(mentions(nowhere.err, {"nowhere"}));
  const auto budget = run({"experiment", "covdrift", "--out", "out", "--budgets", "1000000000"});
  EXPECT_EQ(budget.exit_code, 2);
  EXPECT_TRUE(mentions(budget.err, {"--budgets", "10000"}));
  EXPECT_FALSE(exists("out"));
}

TEST_F(Experiment, AnOutFolderThatIsAFileIsRefusedBeforeTheWork) {
  write_bytes("out", "mine");
  const auto done = run(alignment("toy:a:b"));
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(text_of("out"), "mine");
}

}  // namespace
}  // namespace itspace::cli_test
