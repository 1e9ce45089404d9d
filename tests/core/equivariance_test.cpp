// SPDX-License-Identifier: Apache-2.0
//
// Proposition "Equivariance": an orthogonal change of basis carries the whole trajectory with it, X_k -> U X_k U', and
// so does rescaling, (c Sigma, sqrt(c) Y_0) -> c X_k.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

RealMatrix gram_of_rows(const Matrix& y) {
  return real(y) * real(y).transpose();
}

// The rounding of the transformed problem, eps ||Sigma|| and eps ||Y||, enters through the polar factor of Sigma^(1/2)
// Y, relative to its smallest singular value. A later step multiplies what the first one left by up to
// lambda_max/lambda_min (a start beside a saddle), so random problems are compared over one step, the induction step of
// the proposition, and whole trajectories where the spectrum is tame.
Real condition(const Oracle& oracle, const Matrix& y) {
  const RealMatrix root = principal_root(oracle.covariance());
  const RealVector s = singular_values(root * real(y));
  return spectral_norm(root) * spectral_norm(real(y)) / s(s.size() - 1);
}

template <Storage Scalar>
void check_change_of_basis(const ProblemShape& shape, Index steps) {
  const auto p = make_problem<Scalar>(shape);
  Draw draw(shape.seed + 5);
  const RealMatrix u = real(draw.orthonormal(shape.dim, shape.dim));
  RealMatrix turned = u * real(p.sigma) * u.transpose();
  turned = ((turned + turned.transpose()) / 2).eval();
  const Block<Scalar> turned_sigma = block<Scalar>(turned);
  const Block<Scalar> turned_start = block<Scalar>(u * real(p.start));

  const DenseTarget<Scalar> target(p.sigma), turned_target(turned_sigma);
  const auto plain = run<Scalar>(target, p.start, steps, StepSize::alpha(0.9));
  const auto other = run<Scalar>(turned_target, turned_start, steps, StepSize::alpha(0.9));
  const Real kappa = condition(p.oracle, wide(p.start));
  for (std::size_t k = 0; k < plain.iterates.size(); ++k) {
    const RealMatrix x = u * gram_of_rows(wide(plain.iterates[k])) * u.transpose();
    REQUIRE_LT(ratio<Scalar>((gram_of_rows(wide(other.iterates[k])) - x).norm(), shape.rank,
                             kappa * (x.norm() + p.oracle.trace())),
               ratio_limit);
    REQUIRE_LE(std::abs(plain.trace.steps[k].objective - other.trace.steps[k].objective),
               double(ratio_limit * kappa * eps_units<Scalar>(p.oracle, wide(plain.iterates[k]))));
  }
}

RC_GTEST_PROP(Equivariance, ChangeOfBasisFloat, ()) {
  check_change_of_basis<float>(draw_shape(17, full_rank()), 1);
}

RC_GTEST_PROP(Equivariance, ChangeOfBasisDouble, ()) {
  check_change_of_basis<double>(draw_shape(17, full_rank()), 1);
}

template <Storage Scalar>
void check_rescaling(const ProblemShape& shape, double c, Index steps) {
  const auto p = make_problem<Scalar>(shape);
  const Block<Scalar> scaled_sigma = block<Scalar>(real(p.sigma) * Real(c));
  const Block<Scalar> scaled_start = block<Scalar>(real(p.start) * std::sqrt(Real(c)));
  const DenseTarget<Scalar> target(p.sigma), scaled_target(scaled_sigma);
  const auto plain = run<Scalar>(target, p.start, steps, StepSize::alpha(0.9));
  const auto other = run<Scalar>(scaled_target, scaled_start, steps, StepSize::alpha(0.9));
  const Real kappa = condition(p.oracle, wide(p.start));
  REQUIRE_TRUE(other.status() == Status::step_limit);
  for (std::size_t k = 0; k < plain.iterates.size(); ++k) {
    const RealMatrix x = gram_of_rows(wide(plain.iterates[k]));
    REQUIRE_LT(ratio<Scalar>((gram_of_rows(wide(other.iterates[k])) / Real(c) - x).norm(), shape.rank,
                             kappa * (x.norm() + p.oracle.trace())),
               ratio_limit);
    REQUIRE_LE(std::abs(plain.trace.steps[k].objective - other.trace.steps[k].objective / Real(c)),
               ratio_limit * kappa * eps_units<Scalar>(p.oracle, wide(plain.iterates[k])));
    if (k > 0) REQUIRE_TRUE(other.trace.steps[k].certified.value());
  }
}

RC_GTEST_PROP(Equivariance, RescalingFloat, ()) {
  check_rescaling<float>(draw_shape(17, full_rank()), *rc::gen::element(3.0, 0.01, 1e26, 1e-26), 1);
}

RC_GTEST_PROP(Equivariance, RescalingDouble, ()) {
  check_rescaling<double>(draw_shape(17, full_rank()), *rc::gen::element(3.0, 0.01, 1e150, 1e-150), 1);
}

TEST(Equivariance, WholeTrajectories) {
  for (const auto [dim, rank] : small_sizes()) {
    const ProblemShape shape{.dim = dim, .rank = rank, .seed = 5};
    SCOPED_TRACE(describe(shape));
    check_change_of_basis<float>(shape, 4);
    check_change_of_basis<double>(shape, 4);
    check_rescaling<float>(shape, 1e-26, 4);
    check_rescaling<double>(shape, 1e150, 4);
  }
}

// Scaling by a power of four is exact in every operation of the method, so not one bit changes.
TEST(Equivariance, PowersOfFourAreExact) {
  for (const auto [dim, rank] : all_sizes()) {
    for (const int exponent : {-240, -20, 20, 240}) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank) + " 4^" + std::to_string(exponent));
      const auto p = make_problem<double>({.dim = dim, .rank = rank, .seed = 6});
      const double root = std::ldexp(1.0, exponent), c = root * root;
      const Block<double> scaled_sigma = p.sigma * c, scaled_start = p.start * root;
      const DenseTarget<double> target(p.sigma), scaled_target(scaled_sigma);
      const auto plain = run<double>(target, p.start, 2, StepSize());
      const auto other = run<double>(scaled_target, scaled_start, 2, StepSize());
      EXPECT_EQ(other.factor, Block<double>(plain.factor * root));
      for (std::size_t k = 0; k < plain.trace.steps.size(); ++k) {
        EXPECT_EQ(other.trace.steps[k].objective, plain.trace.steps[k].objective * c);
      }
    }
  }
}

}  // namespace
}  // namespace itspace::test
