// SPDX-License-Identifier: Apache-2.0
//
// Proposition "Full-Rank Invertible Fixed Points": for r = d and positive definite Sigma the fixed points are exactly
// Y = Sigma^(1/2) R with orthogonal R, and their covariance is Sigma.
#include "runs.hpp"

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

template <class Scalar>
class FixedPoint : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FixedPoint, Scalars);

// Sigma^(1/2) R stays where it is. R polar-rotates with the condition of Sigma^(1/2) Y = Sigma R, hence kappa.
TYPED_TEST(FixedPoint, RootsOfTheTargetStay) {
  for (const Spectrum spectrum : full_rank_spectra) {
    for (const Index dim : {1, 2, 3, 17}) {
      for (const double alpha : {0.5, 1.0, 1.5}) {
        const ProblemShape shape{.dim = dim, .rank = dim, .seed = 1, .spectrum = spectrum};
        SCOPED_TRACE(describe(shape));
        const auto p = make_problem<TypeParam>(shape);
        Draw draw(5);
        const RealMatrix root = principal_root(real(p.sigma)) * real(draw.orthonormal(dim, dim));
        const Block<TypeParam> y = block<TypeParam>(root);
        const DenseTarget<TypeParam> target(p.sigma);
        const auto result = run<TypeParam>(target, y, 2, StepSize::alpha(alpha));
        const RealVector lambda = eigenvalues(real(p.sigma));
        const Real kappa = std::sqrt(lambda(0) / lambda(dim - 1));
        for (const auto& iterate : result.iterates) {
          EXPECT_LT(ratio<TypeParam>((real(iterate) - root).norm(), dim, kappa * root.norm()), ratio_limit);
        }
        EXPECT_LE(result.trace.steps[2].objective, double(descent_limit * eps_units<TypeParam>(p.oracle, wide(y))));
      }
    }
  }
}

// Undamped, one step reaches Sigma; damped, F falls by (1 - alpha)^2 a step until rounding.
TYPED_TEST(FixedPoint, FullRankRunsReachTheTarget) {
  for (const Spectrum spectrum : full_rank_spectra) {
    for (const Index dim : {1, 2, 3, 17}) {
      for (const double alpha : {0.6, 1.0, 1.3}) {
        const ProblemShape shape{.dim = dim, .rank = dim, .seed = 2, .spectrum = spectrum};
        SCOPED_TRACE(describe(shape));
        const auto p = make_problem<TypeParam>(shape);
        const DenseTarget<TypeParam> target(p.sigma);
        const Index steps = alpha == 1.0 ? 1 : 45;  // 0.4^45 < eps
        const auto result = run<TypeParam>(target, p.start, steps, StepSize::alpha(alpha));
        // The last iterate: near the target F is rounding, and which iterate has the least of it says nothing.
        const RealMatrix last = real(result.iterates.back());
        const RealMatrix x = last * last.transpose();
        const RealVector lambda = eigenvalues(real(p.sigma));
        const Real kappa = std::sqrt(lambda(0) / lambda(dim - 1));
        EXPECT_LT(ratio<TypeParam>((x - real(p.sigma)).norm(), dim, kappa * real(p.sigma).norm()), ratio_limit);
      }
    }
  }
}

TEST(FixedPointLarge, OneStepReachesTheTarget) {
  const auto p = make_problem<double>({.dim = 300, .rank = 300, .seed = 3});
  const DenseTarget<double> target(p.sigma);
  const auto result = run<double>(target, p.start, 1, StepSize::alpha(1));
  const Matrix x = wide(result.factor) * wide(result.factor).transpose();
  EXPECT_LT(ratio<double>((x - wide(p.sigma)).norm(), 300, wide(p.sigma).norm()), ratio_limit);
}

// Exactly: an invertible factor of another covariance moves.
TEST(FixedPointConverse, OtherFactorsMove) {
  for (const Index dim : {1, 2, 3, 17}) {
    const auto p = make_problem<double>({.dim = dim, .rank = dim, .seed = 4});
    const DenseTarget<double> target(p.sigma);
    const auto result = run<double>(target, p.start, 1, StepSize::alpha(0.5));
    // alpha^2 ||B - Y||^2 = alpha^2 F(Y) for r = d.
    const Real f = p.oracle.objective(wide(p.start));
    EXPECT_LE(std::abs(result.trace.steps[1].step_squared - 0.25L * f),
              descent_limit * eps_units<double>(p.oracle, wide(p.start)));
    EXPECT_GT(f, 1e6L * eps_units<double>(p.oracle, wide(p.start)));
  }
}

}  // namespace
}  // namespace itspace::test
