// SPDX-License-Identifier: Apache-2.0
#include "covdrift.hpp"

#include "covdrift_moments.hpp"
#include "covdrift_split.hpp"
#include "drift.hpp"
#include "expect_throw.hpp"
#include "linear_head.hpp"
#include "metrics.hpp"

#include <itspace/covariance.hpp>
#include <itspace/targets.hpp>
#include <itspace/transport_map.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::experiments {
namespace {

using test::expect_throws_naming;

Instance toy() {
  return load_instance("synthetic-32", {}, Labels::wanted);
}

CovDriftOptions quick() {
  CovDriftOptions options;
  options.rank = 8;
  options.seeds = {0, 1};
  options.drifts = {"none", "scale"};
  options.severities = {8};
  options.budgets = {1, 5};
  options.methods = {"paper-1"};
  return options;
}

double value_at(const DriftCell& cell, const std::string& method, const std::string& map, Index budget) {
  for (const DriftRow& row : cell.rows)
    if (row.method == method && row.map == map && row.budget == budget) return row.value;
  ADD_FAILURE() << "no row " << method << " " << map << " " << budget;
  return std::nan("");
}

TEST(CovDrift, RecoversADriftOfSecondOrder) {
  const DriftInstance out = run_covdrift(toy(), quick(), {});
  EXPECT_EQ(out.metric, "accuracy");
  EXPECT_EQ(out.classes, 10);
  ASSERT_EQ(out.cells.size(), 4u);  // 2 seeds x (none, scale)
  for (const DriftCell& cell : out.cells) {
    // none, mean, paper-1 x 2 budgets x 2 maps, endpoint x 2 maps
    EXPECT_EQ(cell.rows.size(), 2u + 4u + 2u);
    EXPECT_GT(cell.clean, out.chance + 20);
    if (cell.drift == "none") {
      EXPECT_EQ(value_at(cell, "none", "", 0), cell.clean);
      continue;
    }
    const double drop = cell.clean - value_at(cell, "none", "", 0);
    EXPECT_GE(drop, 2);
    EXPECT_GE(value_at(cell, "paper-1", "monge", 5), cell.clean - drop / 2) << "half of the drop, seed " << cell.seed;
    EXPECT_GE(value_at(cell, "endpoint", "monge", 0), cell.clean - drop / 2);
  }
}

// The protocol once more, by moving the samples themselves.
TEST(CovDrift, EndpointIsTheMapBetweenTheTruncatedMoments) {
  const Instance instance = toy();
  CovDriftOptions options = quick();
  options.seeds = {3};
  options.drifts = {"mix"};
  options.severities = {4};
  options.methods = {"bw-gd-unit"};  // from a full-rank start it is at the endpoint after one step
  const DriftInstance out = run_covdrift(instance, options, {});
  const DriftCell& cell = out.cells.at(0);

  const Split split = split_rows(instance, 3, 10000);
  Block<double> train = rows_of(instance.source.features, split.train);
  Block<double> unlabeled = rows_of(instance.target.features, split.unlabeled);
  Block<double> test = rows_of(instance.target.features, split.test);
  std::vector<int> train_labels, test_labels;
  for (const Index row : split.train) train_labels.push_back(instance.source.labels[static_cast<std::size_t>(row)]);
  for (const Index row : split.test) test_labels.push_back(instance.target.labels[static_cast<std::size_t>(row)]);
  const Standardiser standardiser(train);
  for (Block<double>* samples : {&train, &unlabeled, &test}) standardiser.apply(*samples);
  const LinearHead head = train_head(train, train_labels, 3).head;
  const auto judged = [&](const Block<double>& samples) {
    return accuracy(head.predict(head.scores(samples)), test_labels);
  };
  const double one_sample = 100.0 / static_cast<double>(test.rows());  // what a tie broken by rounding may change
  EXPECT_NEAR(cell.clean, judged(test), one_sample);

  const Moments source = moments_of(train, {});
  const Block<double> start = truncate<double>(source.covariance, 8);
  const Drift drift(DriftKind::mix, start * start.colwise().norm().cwiseInverse().asDiagonal(), 4, 3);
  drift.apply(unlabeled);
  drift.apply(test);
  EXPECT_NEAR(value_at(cell, "none", "", 0), judged(test), one_sample);
  const Moments target = moments_of(unlabeled, {});
  const Block<double> centred = (test.rowwise() - target.mean.transpose()).rowwise() + source.mean.transpose();
  EXPECT_NEAR(value_at(cell, "mean", "", 0), judged(centred), one_sample);

  const DenseTarget<double> from(target.covariance), to(source.covariance);
  const Block<double> end = truncate<double>(target.covariance, 8);
  for (const MapKind kind : {MapKind::whiten, MapKind::monge}) {
    const TransportMap map(model_of<double>(from, end, target.mean), model_of<double>(to, start, source.mean), kind);
    Block<double> moved = test;
    map.apply<double>(moved);
    const double expected = judged(moved);
    EXPECT_NEAR(value_at(cell, "endpoint", std::string(name(kind)), 0), expected, one_sample);
    EXPECT_NEAR(value_at(cell, "bw-gd-unit", std::string(name(kind)), 1), expected, one_sample);
    EXPECT_NEAR(value_at(cell, "bw-gd-unit", std::string(name(kind)), 5), expected, one_sample);
    EXPECT_GT(std::abs(expected - judged(test)), 2 * one_sample);  // or nothing was tested
  }
}

TEST(CovDrift, SaysHowFarItIsAndStopsWhenAsked) {
  Index calls = 0;
  double last = 0;
  Watch watch;
  watch.progress = [&](const std::string& doing, double share) {
    ++calls;
    EXPECT_NE(doing.find("synthetic-32"), std::string::npos);
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
  };
  run_covdrift(toy(), quick(), watch);
  EXPECT_GT(calls, 8);
  watch.stop_asked = [&] { return calls > 12; };
  last = calls = 0;
  EXPECT_THROW(run_covdrift(toy(), quick(), watch), Interrupted);
}

TEST(CovDrift, GivesTheAurocOfTwoClasses) {
  Instance instance = toy();
  for (LabelledSet* set : {&instance.source, &instance.target})
    for (int& label : set->labels) label = label < 5 ? -5 : 9;
  CovDriftOptions options = quick();
  options.seeds = {0};
  const DriftInstance out = run_covdrift(instance, options, {});
  EXPECT_EQ(out.metric, "AUROC");
  EXPECT_EQ(out.chance, 50);
  EXPECT_GT(out.cells.at(0).clean, 70);
}

TEST(CovDrift, FiltersToAClosedSetWhenAsked) {
  Instance instance = toy();
  for (std::size_t i = 0; i < instance.target.labels.size(); i += 3) instance.target.labels[i] = 1000;
  CovDriftOptions options = quick();
  expect_throws_naming<std::invalid_argument>({"synthetic-32", "class 1000", "--closed-set"},
                                              [&] { run_covdrift(instance, options, {}); });
  options.closed_set = true;
  const DriftInstance out = run_covdrift(instance, options, {});
  EXPECT_TRUE(out.closed_set);
  EXPECT_GT(out.cells.at(0).clean, 50);  // a third of the samples could not be right
}

TEST(CovDrift, RefusesOptionsWithoutAMeaning) {
  const auto refused = [](std::initializer_list<std::string> parts,
                          const std::function<void(CovDriftOptions&)>& spoil) {
    CovDriftOptions options = quick();
    spoil(options);
    expect_throws_naming<std::invalid_argument>(parts, [&] { run_covdrift(toy(), options, {}); });
  };
  refused({"rank 32", "32 dimensions"}, [](CovDriftOptions& options) { options.rank = 32; });
  refused({"budget of 0"}, [](CovDriftOptions& options) { options.budgets = {1, 0}; });
  refused({"no drift 'twist'"}, [](CovDriftOptions& options) { options.drifts = {"twist"}; });
  refused({"severity 0.5"}, [](CovDriftOptions& options) { options.severities = {0.5}; });
  refused({"no method 'magic'"}, [](CovDriftOptions& options) { options.methods = {"magic"}; });
  refused({"shrinkage 2"}, [](CovDriftOptions& options) { options.shrinkage = 2; });
  refused({"at least one"}, [](CovDriftOptions& options) { options.seeds = {}; });
  Instance unlabelled = toy();
  unlabelled.target.labels.clear();
  expect_throws_naming<std::invalid_argument>({"synthetic-32 has no labels"},
                                              [&] { run_covdrift(unlabelled, quick(), {}); });
}

}  // namespace
}  // namespace itspace::experiments
