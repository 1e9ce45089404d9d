// SPDX-License-Identifier: Apache-2.0
//
// The first experiment on a problem small enough to know the answers.
#include "alignment.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/random.hpp>
#include <itspace/targets.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace itspace::experiments {
namespace {

constexpr Index dim = 24, rank = 4;

Block<float> samples(std::uint64_t seed, double turn) {
  Block<float> x(120, dim);
  Random(seed).fill_normal<float>(x);
  for (Index j = 0; j < dim; ++j) x.col(j) *= static_cast<float>(std::pow(1.0 + static_cast<double>(j), -0.8));
  const Eigen::VectorXf a = x.col(0), b = x.col(dim - 1);
  x.col(0) = static_cast<float>(std::cos(turn)) * a - static_cast<float>(std::sin(turn)) * b;
  x.col(dim - 1) = static_cast<float>(std::sin(turn)) * a + static_cast<float>(std::cos(turn)) * b;
  return x;
}

Instance instance() {
  Instance made;
  made.info.name = made.info.title = "small";
  made.source.features = samples(1, 0);
  made.target.features = samples(2, 1.2);
  return made;
}

Problem problem() {
  const Instance made = instance();
  const Block<double> source = made.source.features.cast<double>(), target = made.target.features.cast<double>();
  return {covariance<double>(source), covariance<double>(target), source, target, rank, 0};
}

double largest_difference(const Block<double>& a, const Block<double>& b) {
  return (a * a.transpose() - b * b.transpose()).cwiseAbs().maxCoeff();
}

TEST(Methods, RowKIsWhatKStepsGive) {
  const Problem given = problem();
  const MethodRun run = method_named("paper-0.9").run(given, {.steps = 4}, {});
  const DenseTarget<double> target(borrow(given.target_covariance()));
  ASSERT_EQ(run.timed.result.iterates.size(), 5u);
  for (Index k = 0; k <= 4; ++k) {
    const Block<double> expected =
        align<double>(target, given.start(), {.steps = k, .step_size = StepSize::alpha(0.9), .evaluate_last = false})
            .factor;
    EXPECT_EQ(largest_difference(run.timed.result.iterates[static_cast<std::size_t>(k)], expected), 0) << k;
    EXPECT_EQ(run.timed.result.trace.steps[static_cast<std::size_t>(k)].passes, k);
  }
}

TEST(Methods, RowsThatNobodyWantsAreNotMade) {
  const Problem given = problem();
  const MethodRun all = method_named("ritz").run(given, {.steps = 5}, {});
  const MethodRun some = method_named("ritz").run(given, {.steps = 5, .rows = {2, 5}}, {});
  ASSERT_EQ(some.timed.result.iterates.size(), 3u);
  EXPECT_EQ(some.timed.result.trace.steps[1].index, 2);
  EXPECT_EQ(largest_difference(some.timed.result.iterates[1], all.timed.result.iterates[2]), 0);
  EXPECT_EQ(largest_difference(some.timed.result.iterates[2], all.timed.result.iterates[5]), 0);
}

TEST(Methods, EveryOneStartsAtTheTruncatedSourceAndKeepsItsClocks) {
  const Problem given = problem();
  for (const Method& method : all_methods()) {
    SCOPED_TRACE(method.info.id);
    Index calls = 0;
    const MethodRun run = method.run(given, {.steps = 3}, [&](const Step&, const ConstBlockView<double>&) {
      ++calls;
      return StepAction::proceed;
    });
    const auto& [result, timing] = run.timed;
    const std::size_t rows = result.trace.steps.size();
    ASSERT_GE(rows, 2u);
    EXPECT_EQ(static_cast<std::size_t>(calls), rows);
    EXPECT_EQ(result.iterates.size(), rows);
    ASSERT_EQ(timing.update_seconds.size(), rows);
    ASSERT_EQ(timing.projection_seconds.size(), rows);
    EXPECT_TRUE(std::is_sorted(timing.update_seconds.begin(), timing.update_seconds.end()));
    EXPECT_TRUE(std::is_sorted(timing.projection_seconds.begin(), timing.projection_seconds.end()));
    // Sample OT starts at the covariance of its own samples.
    if (method.info.family != "sample OT") {
      EXPECT_LE(largest_difference(result.iterates[0], given.start()), 1e-6 * given.start_covariance().trace());
    }
    for (const Block<double>& factor : result.iterates) {
      EXPECT_EQ(factor.rows(), dim);
      EXPECT_EQ(factor.cols(), rank);
      EXPECT_TRUE(factor.allFinite());
    }
  }
}

TEST(Methods, ThoseThatAimAtTheTargetArrive) {
  const Problem given = problem();
  const Block<double> best = truncate<double>(given.target_covariance(), rank);
  const DenseTarget<double> target(borrow(given.target_covariance()));
  const double floor = target_distance_squared<double>(best, target);
  for (const char* id : {"ritz", "bw-gd", "bw-gd-unit", "bw-geodesic", "euclidean", "log-euclidean", "airm", "coral",
                         "randomized-svd", "lobpcg", "block-krylov"}) {
    const MethodRun run = method_named(id).run(given, {.steps = 20}, {});
    const double end = target_distance_squared<double>(run.timed.result.iterates.back(), target);
    EXPECT_NEAR(end, floor, 1e-5 * target.trace()) << id;
  }
}

TEST(Methods, AnUnknownNameIsAnsweredWithTheList) {
  try {
    method_named("newton");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("newton"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("bw-gd-unit"), std::string::npos);
  }
}

TEST(Alignment, MeasuresTheGapOfEveryIterateFromTheDefinition) {
  AlignmentOptions options;
  options.rank = rank;
  options.steps = 5;
  options.seeds = {3};
  options.kept_rows = 1;
  options.methods = {"paper-1", "euclidean"};
  const AlignmentInstance done = run_alignment(instance(), options, {});
  ASSERT_EQ(done.runs.size(), 2u);

  // The oracle: the same covariances (order of rows does not matter), dense distances, the definition of the gap.
  const Problem given = problem();
  const Block<double>& sigma = given.target_covariance();
  const auto distance = [&](const Block<double>& x) { return dense_distance_squared<double>(x, sigma); };
  const auto cut = [&](const Block<double>& x) {
    const Block<double> y = truncate<double>(x, rank);
    return Block<double>(y * y.transpose());
  };
  const double floor = distance(cut(sigma)), from = distance(cut(given.start_covariance()));
  const experiments::Run& euclidean = done.runs[1];
  ASSERT_EQ(euclidean.rows.size(), 6u);
  for (const Row& row : euclidean.rows) {
    const double t = static_cast<double>(row.step) / 5;
    const double expected = (distance(cut((1 - t) * given.start_covariance() + t * sigma)) - floor) / (from - floor);
    EXPECT_NEAR(row.gap, expected, 1e-6) << row.step;
  }
  const experiments::Run& paper = done.runs[0];
  EXPECT_EQ(paper.seed, 3u);
  EXPECT_NEAR(paper.rows.front().gap, 1, 1e-9);
  for (std::size_t k = 1; k < paper.rows.size(); ++k) EXPECT_LT(paper.rows[k].gap, paper.rows[k - 1].gap);
}

TEST(Alignment, SeedsChooseRowsAndAnExpensiveMethodStopsWhenItIsThere) {
  AlignmentOptions options;
  options.rank = rank;
  options.seeds = {0, 1};
  options.methods = {"bw-gd-unit", "paper-1"};
  const AlignmentInstance done = run_alignment(instance(), options, {});
  ASSERT_EQ(done.runs.size(), 4u);
  EXPECT_EQ(done.runs[0].rows.size(), 2u);  // arrives in one step
  EXPECT_LE(done.runs[0].rows.back().gap, options.enough);
  EXPECT_EQ(done.runs[1].rows.size(), 21u);
  EXPECT_NE(done.runs[1].rows[1].objective, done.runs[3].rows[1].objective);
}

TEST(Alignment, StopsWhereItIsAskedTo) {
  AlignmentOptions options;
  options.rank = rank;
  Watch watch;
  int left = 5;
  watch.stop_asked = [&] { return --left < 0; };
  EXPECT_THROW(run_alignment(instance(), options, watch), Interrupted);
}

TEST(Alignment, ARankWithoutABudgetIsRefused) {
  AlignmentOptions options;
  options.rank = dim;
  EXPECT_THROW(run_alignment(instance(), options, {}), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::experiments
