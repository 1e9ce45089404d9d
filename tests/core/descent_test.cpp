// SPDX-License-Identifier: Apache-2.0
//
// Theorem "Sufficient BW Descent", in the form that holds for every alpha in (0, 2) (Promise 3):
//   F(Y+) <= F(Y) + 2 eps - ((2 - alpha)/alpha) ||Y+ - Y||^2,
// and its sum over a run, the finite length of the trajectory (eq. finite-length-bound).
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_descent(const ProblemShape& shape, double alpha, Index steps) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const auto result = run<Scalar>(target, p.start, steps, StepSize::alpha(alpha));
  REQUIRE_LE(worst_broken_descent(p.oracle, result, alpha), descent_limit);

  // The trace says the same, with its own numbers.
  const std::vector<Real> f = objectives(p.oracle, result);
  REQUIRE_TRUE(result.status() == Status::step_limit);
  for (std::size_t k = 1; k < f.size(); ++k) {
    const Step& step = result.trace.steps[k];
    const Real unit = eps_units<Scalar>(p.oracle, wide(result.iterates[k - 1]));
    const Real moved = (real(result.iterates[k]) - real(result.iterates[k - 1])).squaredNorm();
    REQUIRE_TRUE(step.certified.value());
    REQUIRE_EQ(step.alpha, alpha);
    REQUIRE_LE(std::abs(step.step_squared - moved), descent_limit * unit);
    REQUIRE_LE(std::abs(step.actual_descent - (f[k - 1] - f[k])), 2 * descent_limit * unit);
    REQUIRE_LE(std::abs(step.promised_descent - ((2 - Real(alpha)) / Real(alpha) * step.step_squared -
                                                 2 * Real(result.trace.steps[k - 1].certificate_gap))),
               descent_limit * unit);
    // Monotone: W2^2(X_{k+1}, Sigma) <= W2^2(X_k, Sigma), since the certificates here are exact.
    REQUIRE_LE(f[k], f[k - 1] + 2 * Real(result.trace.steps[k - 1].certificate_gap) + descent_limit * unit);
  }

  // Finite length: sum ||Y_{k+1} - Y_k||^2 <= (alpha/(2 - alpha)) (F(Y_0) - F(Y_K) + 2 sum eps_k).
  Real length = 0, gaps = 0, rounding = 0;
  for (std::size_t k = 1; k < f.size(); ++k) {
    length += (real(result.iterates[k]) - real(result.iterates[k - 1])).squaredNorm();
    gaps += result.trace.steps[k - 1].certificate_gap;
    rounding += descent_limit * eps_units<Scalar>(p.oracle, wide(result.iterates[k - 1]));
  }
  REQUIRE_LE(length, Real(alpha) / (2 - Real(alpha)) * (f.front() - f.back() + 2 * gaps + rounding));
}

RC_GTEST_PROP(Descent, SufficientFloat, ()) {
  check_descent<float>(draw_shape(17, any_rank()), draw_alpha(), 4);
}

RC_GTEST_PROP(Descent, SufficientDouble, ()) {
  check_descent<double>(draw_shape(17, any_rank()), draw_alpha(), 4);
}

TEST(Descent, EverySizeAndAlpha) {
  for (const auto [dim, rank] : small_sizes()) {
    for (const double alpha : {0.05, 0.5, 0.9, 1.0, 1.3, 1.95}) {
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = 7};
      SCOPED_TRACE(describe(shape) + " alpha=" + std::to_string(alpha));
      check_descent<float>(shape, alpha, 3);
      check_descent<double>(shape, alpha, 3);
    }
  }
}

TEST(Descent, LargeDimension) {
  for (const double alpha : {0.9, 1.7}) {
    check_descent<float>({.dim = 300, .rank = 16, .seed = 1}, alpha, 3);
    check_descent<double>({.dim = 300, .rank = 16, .seed = 2, .spectrum = Spectrum::graded}, alpha, 3);
    check_descent<double>({.dim = 300, .rank = 1, .seed = 3, .spectrum = Spectrum::clustered}, alpha, 3);
  }
}

// Many steps: the trajectory settles, rounding does not pile up.
TEST(Descent, LongRun) {
  for (const double alpha : {0.7, 1.3, 1.9}) {
    check_descent<float>({.dim = 17, .rank = 5, .seed = 4}, alpha, 100);
    check_descent<double>({.dim = 17, .rank = 5, .seed = 4}, alpha, 100);
  }
}

// The defaults by the number of steps: 1 for one, 1.1 for two to four, 1.3 from five on.
TEST(Descent, DefaultStepSizes) {
  const auto p = make_problem<double>({.dim = 17, .rank = 4, .seed = 8});
  const DenseTarget<double> target(p.sigma);
  const std::pair<Index, double> expected[] = {{1, 1.0}, {2, 1.1}, {4, 1.1}, {5, 1.3}, {20, 1.3}};
  for (const auto& [steps, alpha] : expected) {
    EXPECT_EQ(StepSize().resolve(steps), alpha);
    const auto result = run<double>(target, p.start, steps, StepSize());
    EXPECT_EQ(result.trace.alpha, alpha);
    EXPECT_EQ(result.trace.steps.back().alpha, alpha);
  }
}

// Eq. alpha-def: alpha = 2 lambda/(1 + 2 lambda).
TEST(Descent, ProximalWeight) {
  EXPECT_EQ(StepSize::lambda(0.5).resolve(3), 0.5);
  EXPECT_EQ(StepSize::lambda(4.5).resolve(3), 0.9);
  EXPECT_EQ(StepSize::alpha(1.25).resolve(3), 1.25);
  const auto p = make_problem<double>({.dim = 5, .rank = 2, .seed = 9});
  const DenseTarget<double> target(p.sigma);
  const auto by_lambda = run<double>(target, p.start, 2, StepSize::lambda(4.5));
  const auto by_alpha = run<double>(target, p.start, 2, StepSize::alpha(0.9));
  EXPECT_EQ(by_lambda.factor, by_alpha.factor);
}

}  // namespace
}  // namespace itspace::test
