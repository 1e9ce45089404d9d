// SPDX-License-Identifier: Apache-2.0
//
// Eq. dc-form, the factor form of the objective: what a trace reports as F(Y_k) is W2^2(Y_k Y_k', Sigma).
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_objective(const ProblemShape& shape) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const auto result = run<Scalar>(target, p.start, 3, StepSize());
  REQUIRE_EQ(result.trace.steps.size(), 4u);
  REQUIRE_LT(ratio<Scalar>(Real(result.trace.target_trace) - p.oracle.trace(), shape.dim, p.oracle.trace()),
             ratio_limit);
  for (std::size_t k = 0; k < 4; ++k) {
    const Step& step = result.trace.steps[k];
    const Matrix y = wide(result.iterates[k]);
    REQUIRE_EQ(step.index, Index(k));
    REQUIRE_GE(step.objective, 0.0);
    REQUIRE_LE(std::abs(Real(step.objective) - p.oracle.objective(y)), descent_limit * eps_units<Scalar>(p.oracle, y));
    // Promise 2: the certificate is feasible to 30 r eps before it is normalised, and its gap is that small.
    REQUIRE_LT(ratio<Scalar>(std::max(0.0, step.feasibility - 1), shape.rank, 1), ratio_limit);
    REQUIRE_GE(step.certificate_gap, 0.0);
    REQUIRE_LT(ratio<Scalar>(step.certificate_gap, shape.rank, p.oracle.nuclear(y)), ratio_limit);
  }
}

RC_GTEST_PROP(Objective, IsTheDefinitionFloat, ()) {
  check_objective<float>(draw_shape(17, any_rank()));
}

RC_GTEST_PROP(Objective, IsTheDefinitionDouble, ()) {
  check_objective<double>(draw_shape(17, any_rank()));
}

TEST(Objective, EverySize) {
  for (const auto [dim, rank] : all_sizes()) {
    const ProblemShape shape{.dim = dim, .rank = rank, .seed = 5};
    SCOPED_TRACE(describe(shape));
    check_objective<float>(shape);
    check_objective<double>(shape);
  }
}

// By hand: Sigma = diag(4, 1), Y = [1, 0]'. ||Sigma^(1/2) Y||_* = 2, F = 1 + 5 - 4 = 2, B = [2, 0]'.
TEST(Objective, ByHand) {
  const Block<double> sigma = Eigen::Vector2d(4, 1).asDiagonal().toDenseMatrix();
  const Block<double> y = Eigen::Vector2d(1, 0);
  const DenseTarget<double> target(sigma);
  const auto result = run<double>(target, y, 1, StepSize::alpha(1));
  EXPECT_DOUBLE_EQ(result.trace.steps[0].objective, 2);
  EXPECT_DOUBLE_EQ(result.trace.steps[1].objective, 1);
  EXPECT_DOUBLE_EQ(result.trace.steps[1].actual_descent, 1);
  EXPECT_DOUBLE_EQ(result.trace.steps[1].step_squared, 1);
  EXPECT_DOUBLE_EQ(result.trace.steps[1].objective_bound, 1);
  EXPECT_NEAR(result.factor(0, 0), 2, 10 * double(eps<double>));
  EXPECT_NEAR(result.factor(1, 0), 0, 10 * double(eps<double>));
}

}  // namespace
}  // namespace itspace::test
