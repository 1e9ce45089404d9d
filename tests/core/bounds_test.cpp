// SPDX-License-Identifier: Apache-2.0
//
// Two bounds that come free with a step (method.md): B B' is the Nystroem approximation of Sigma, so B B' <= Sigma and
// ||B||^2 <= tr Sigma; and F(Y+) <= (1 - alpha)^2 ||B - Y||^2 + tr Sigma - ||B||^2, known before Y+ is evaluated.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <Eigen/Eigenvalues>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_nystroem(const ProblemShape& shape) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const Matrix b = certificate_factor<Scalar>(target, p.start);
  const Real size = real(b).squaredNorm();
  const Matrix rest = (p.oracle.covariance() - real(b) * real(b).transpose()).template cast<double>();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(rest, Eigen::EigenvaluesOnly);
  // And the rounding of `rest` to double, and of its eigenvalues, where B is short beside Sigma.
  const Real of_oracle = 4 * eps<double> * p.oracle.trace();
  REQUIRE_GE(eigen.eigenvalues()(0), -double(ratio_limit * Real(shape.rank) * eps<Scalar> * size + of_oracle));
  REQUIRE_LT(ratio<Scalar>(std::max(Real(0), size - p.oracle.trace()), shape.rank, p.oracle.trace()), ratio_limit);
}

RC_GTEST_PROP(Nystroem, BoundedByTheTargetFloat, ()) {
  check_nystroem<float>(draw_shape(17, any_rank()));
}

RC_GTEST_PROP(Nystroem, BoundedByTheTargetDouble, ()) {
  check_nystroem<double>(draw_shape(17, any_rank()));
}

TEST(Nystroem, LargeDimension) {
  check_nystroem<float>({.dim = 300, .rank = 16, .seed = 1});
  check_nystroem<double>({.dim = 300, .rank = 16, .seed = 1});
}

template <Storage Scalar>
void check_free_bound(const ProblemShape& shape, double alpha) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  AlignOptions options;
  options.evaluate_last = false;
  const auto result = run<Scalar>(target, p.start, 3, StepSize::alpha(alpha), options);
  REQUIRE_EQ(result.trace.steps.size(), 4u);

  // The last iterate was not evaluated: no objective, no verdict, but a bound.
  const Step& last = result.trace.steps.back();
  REQUIRE_TRUE(std::isnan(last.objective));
  REQUIRE_TRUE(std::isnan(last.actual_descent));
  REQUIRE_TRUE(!last.certified.has_value());
  // The last iterate is the best by its bound; at the floor, where all is rounding, an earlier one may do as well.
  REQUIRE_TRUE(result.factor == result.iterates[std::size_t(result.trace.best)]);
  REQUIRE_LE(p.oracle.objective(wide(result.factor)),
             p.oracle.objective(wide(result.iterates.back())) +
                 descent_limit * eps_units<Scalar>(p.oracle, wide(result.factor)));

  for (std::size_t k = 1; k < 4; ++k) {
    const Matrix before = wide(result.iterates[k - 1]), after = wide(result.iterates[k]);
    const Real unit = descent_limit * eps_units<Scalar>(p.oracle, before);
    const Real bound = result.trace.steps[k].objective_bound;
    REQUIRE_LE(p.oracle.objective(after), bound + unit);
    // B from the two iterates: Y+ = Y + alpha (B - Y). Rounding of Y+ is amplified by 1/alpha.
    const RealMatrix b = real(before) + (real(after) - real(before)) / Real(alpha);
    const Real expected =
        (1 - Real(alpha)) * (1 - Real(alpha)) * (b - real(before)).squaredNorm() + p.oracle.trace() - b.squaredNorm();
    REQUIRE_LE(std::abs(bound - expected), unit * (1 + 1 / Real(alpha)));
  }
}

RC_GTEST_PROP(FreeBound, HoldsFloat, ()) {
  check_free_bound<float>(draw_shape(17, full_rank()), *rc::gen::element(0.3, 0.9, 1.0, 1.1, 1.7));
}

RC_GTEST_PROP(FreeBound, HoldsDouble, ()) {
  check_free_bound<double>(draw_shape(17, full_rank()), *rc::gen::element(0.3, 0.9, 1.0, 1.1, 1.7));
}

TEST(FreeBound, LargeDimension) {
  check_free_bound<float>({.dim = 300, .rank = 16, .seed = 1}, 1.1);
  check_free_bound<double>({.dim = 300, .rank = 1, .seed = 1}, 1.1);
}

}  // namespace
}  // namespace itspace::test
