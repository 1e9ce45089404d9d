// SPDX-License-Identifier: Apache-2.0
//
// Lemma "Commuting Case" and beyond (method.md): floor_r, the sum of all but the r leading eigenvalues, is
// W2^2(Pi_r(Sigma), Sigma), and it is the global minimum of F over all d x r factors.
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

TEST(Floor, IsTheDistanceOfTheTruncation) {
  for (const Spectrum spectrum : all_spectra) {
    for (const auto [dim, rank] : all_sizes()) {
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = 1, .spectrum = spectrum};
      SCOPED_TRACE(describe(shape));
      const auto p = make_problem<double>(shape);
      const Vector leading = leading_eigenvalues<double>(p.sigma, rank);
      const double trace = wide(p.sigma).trace();
      const double floor = floor_r(trace, leading, rank);
      const Block<double> truncated = truncate<double>(p.sigma, rank);
      EXPECT_GE(floor, 0);
      EXPECT_LT(ratio<double>(floor - p.oracle.floor(rank), dim, trace), ratio_limit);
      // The oracle's form for large d has a Gram matrix of condition (lambda_1/lambda_r)^2: well within its means here.
      if (spectrum == Spectrum::rank_deficient && dim > 64) continue;
      EXPECT_LT(ratio<double>(p.oracle.objective(wide(truncated)) - p.oracle.floor(rank), dim, trace), ratio_limit);
    }
  }
}

// No factor beats it: random ones of any size, and neighbours of the best one.
RC_GTEST_PROP(Floor, IsTheGlobalMinimum, ()) {
  const ProblemShape shape = draw_shape(17, any_rank());
  const auto p = make_problem<double>(shape);
  const Real floor = p.oracle.floor(shape.rank);
  const Matrix best = wide(truncate<double>(p.sigma, shape.rank));
  Draw draw(shape.seed + 3);
  for (int trial = 0; trial < 15; ++trial) {
    const Matrix noise = draw.gaussian(shape.dim, shape.rank) * best.norm() / std::sqrt(double(best.size()));
    const Matrix y = trial % 3 == 0 ? Matrix(noise * std::exp(2 * draw.normal()))
                                    : Matrix(best + noise * std::pow(10.0, -double(trial) / 2));
    REQUIRE_GE(p.oracle.objective(y), floor - ratio_limit * Real(shape.dim) * eps_units<double>(p.oracle, y));
  }
}

// A long run goes down to it and not below.
TEST(Floor, RunsApproachItFromAbove) {
  for (const auto [dim, rank] : small_sizes()) {
    SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
    const auto p = make_problem<double>({.dim = dim, .rank = rank, .seed = 2});
    const DenseTarget<double> target(p.sigma);
    const auto result = run<double>(target, p.start, 300, StepSize::line_search());
    const Real floor = p.oracle.floor(rank);
    const Real unit = descent_limit * eps_units<double>(p.oracle, wide(p.start));
    for (const Step& step : result.trace.steps) EXPECT_GE(step.objective, floor - unit);
    const double gap = gap_r(result.trace.steps.back().objective, result.trace.steps[0].objective, double(floor));
    EXPECT_LE(gap, 1e-6);  // the linear rate of 1/i spectra, 300 steps
  }
}

TEST(Floor, GapIsNormalised) {
  EXPECT_EQ(gap_r(3, 5, 1), 0.5);
  EXPECT_EQ(gap_r(5, 5, 1), 1);
  EXPECT_EQ(gap_r(1, 5, 1), 0);
  EXPECT_EQ(gap_r(1, 1, 1), 0);  // the start was at the floor
}

TEST(Floor, NeverNegative) {
  EXPECT_EQ(floor_r(1, Eigen::Vector2d(0.75, 0.25 + 1e-16), 2), 0);
  EXPECT_EQ(floor_r(1, Eigen::Vector2d(0.5, 0.6), 2), 0);
  EXPECT_EQ(floor_r(4, Eigen::Vector2d(2, 1), 1), 2);
  EXPECT_EQ(floor_r(4, Eigen::Vector2d(2, 1), 2), 1);
}

}  // namespace
}  // namespace itspace::test
