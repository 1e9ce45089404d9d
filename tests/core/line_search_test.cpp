// SPDX-License-Identifier: Apache-2.0
//
// The line search (method.md, "Which alpha"): the best point on the line through Y and B, from r x r data alone.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_best_on_the_line(const ProblemShape& shape) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const auto result = run<Scalar>(target, p.start, 1, StepSize::line_search());
  const Real reached = p.oracle.objective(wide(result.iterates[1]));
  const Matrix y = wide(p.start);
  const Matrix direction = p.oracle.certificate_factor(y).template cast<double>() - y;
  const Real unit = descent_limit * eps_units<Scalar>(p.oracle, y);
  REQUIRE_LE(std::abs(result.trace.steps[1].objective - reached), unit);
  for (double alpha = 0.05; alpha < 2; alpha += 0.05) {
    REQUIRE_LE(reached, p.oracle.objective(y + alpha * direction) + unit);
  }
}

RC_GTEST_PROP(LineSearch, NeverWorseThanAnyFixedAlphaFloat, ()) {
  check_best_on_the_line<float>(draw_shape(17, full_rank()));
}

RC_GTEST_PROP(LineSearch, NeverWorseThanAnyFixedAlphaDouble, ()) {
  check_best_on_the_line<double>(draw_shape(17, full_rank()));
}

TEST(LineSearch, LargeDimension) {
  check_best_on_the_line<float>({.dim = 300, .rank = 16, .seed = 1});
  check_best_on_the_line<double>({.dim = 300, .rank = 3, .seed = 2});
}

// A whole run descends, tells the alpha of each step, and its objective stays that of the iterates although
// W+ = (1 - alpha) W + alpha Sigma B is never recomputed from Y+.
template <Storage Scalar>
void check_run(const ProblemShape& shape, Index steps) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const auto result = run<Scalar>(target, p.start, steps, StepSize::line_search());
  REQUIRE_TRUE(result.status() == Status::step_limit);
  REQUIRE_TRUE(!result.trace.alpha.has_value());
  const std::vector<Real> f = objectives(p.oracle, result);
  for (std::size_t k = 0; k < f.size(); ++k) {
    const Step& step = result.trace.steps[k];
    const Real unit = descent_limit * eps_units<Scalar>(p.oracle, wide(result.iterates[k]));
    REQUIRE_LE(std::abs(step.objective - f[k]), unit);
    if (k == 0) continue;
    REQUIRE_LE(f[k], f[k - 1] + unit);
    REQUIRE_TRUE(std::isfinite(step.alpha));
    REQUIRE_LE(std::abs(step.actual_descent - (f[k - 1] - f[k])), 2 * unit);
    REQUIRE_TRUE(step.certified.value());
  }
}

RC_GTEST_PROP(LineSearch, RunsDescendFloat, ()) {
  check_run<float>(draw_shape(17, full_rank()), 6);
}

RC_GTEST_PROP(LineSearch, RunsDescendDouble, ()) {
  check_run<double>(draw_shape(17, full_rank()), 6);
}

TEST(LineSearch, LongRunsKeepTheirDigits) {
  check_run<float>({.dim = 17, .rank = 5, .seed = 3}, 60);
  check_run<double>({.dim = 17, .rank = 5, .seed = 3}, 60);
  check_run<double>({.dim = 300, .rank = 16, .seed = 3}, 10);
}

// At the optimum the line is flat, and rounding must not send the search along it: a run that has arrived stays.
// Spectra that halve arrive within the steps made here.
TEST(LineSearch, ConvergedRunsStay) {
  for (const auto& [dim, rank] : {Size{1, 1}, Size{2, 1}, Size{3, 2}, Size{3, 3}, Size{6, 3}, Size{12, 5}}) {
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank) + " seed=" + std::to_string(seed));
      Draw draw(seed);
      Vector lambda(dim);
      for (Index i = 0; i < dim; ++i) lambda(i) = std::pow(0.5, double(i));
      const Matrix factor = factor_with_spectrum(lambda, draw);
      const Matrix start = visible_factor(factor, rank, 10, 1, draw);
      const auto stays = [&]<class Scalar>(Scalar) {
        const Block<Scalar> sigma = block<Scalar>(covariance_from(factor));
        const DenseTarget<Scalar> target(sigma);
        const auto result = run<Scalar>(target, block<Scalar>(start), 40, StepSize::line_search());
        EXPECT_EQ(result.status(), Status::step_limit) << sizeof(Scalar);
        const Oracle oracle = Oracle::of_covariance(wide(sigma));
        const Real unit = eps_units<Scalar>(oracle, wide(result.iterates.back()));
        EXPECT_LE((oracle.objective(wide(result.iterates.back())) - oracle.floor(rank)) / unit, 3 * descent_limit);
        for (const Step& step : result.trace.steps) {
          if (step.certified == false) ADD_FAILURE() << "step " << step.index << ", alpha " << step.alpha;
        }
      };
      stays(float());
      stays(double());
    }
  }
}

// It pays: after a few steps it is ahead of the default.
TEST(LineSearch, BeatsTheDefault) {
  const auto p = make_problem<double>({.dim = 17, .rank = 5, .seed = 4});
  const DenseTarget<double> target(p.sigma);
  const auto searched = run<double>(target, p.start, 5, StepSize::line_search());
  const auto fixed = run<double>(target, p.start, 5, StepSize());
  EXPECT_LT(searched.trace.steps.back().objective, fixed.trace.steps.back().objective);
}

}  // namespace
}  // namespace itspace::test
