// SPDX-License-Identifier: Apache-2.0
//
// A start orthogonal to a leading eigenvector of Sigma has a full-rank Gram matrix and an exact certificate, and never
// learns of it. Only a random probe finds it (method.md, "Singular cases").
#include "runs.hpp"

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

template <class Scalar>
class Probe : public ::testing::Test {
 protected:
  static constexpr Index dims = 17, columns = 3, steps = 6;

  // Sigma = diag(10, 3, 2, 1, 1/2, ...), and a start in the span of e_2..e_8: exactly orthogonal to e_1.
  Probe() : sigma_(Block<Scalar>::Zero(dims, dims)), start_(Block<Scalar>::Zero(dims, columns)) {
    sigma_(0, 0) = 10;
    for (Index i = 1; i < dims; ++i) sigma_(i, i) = Scalar(i < 4 ? 4 - i : std::pow(0.5, double(i - 3)));
    Draw draw(1);
    start_.middleRows(1, 7) = block<Scalar>(draw.gaussian(7, columns));
  }

  // What Y has of e_1, as a share of lambda_1.
  double share(const Block<Scalar>& y) const { return wide(y).row(0).squaredNorm() / 10; }

  Block<Scalar> sigma_, start_;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Probe, Scalars);

TYPED_TEST(Probe, FindsWhatTheStartIsOrthogonalTo) {
  const DenseTarget<TypeParam> target(this->sigma_);
  const Oracle oracle = Oracle::of_covariance(wide(this->sigma_));
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    AlignOptions options;
    options.seed = seed;
    options.probe = true;
    const auto found = run<TypeParam>(target, this->start_, this->steps, StepSize::alpha(1), options);
    EXPECT_GT(this->share(found.factor), 0.9);
    EXPECT_EQ(found.status(), Status::step_limit);
    // Swapping a column in is a step like any other: F goes down, and the trace says by how much.
    const std::vector<Real> f = objectives(oracle, found);
    for (std::size_t k = 1; k < f.size(); ++k) {
      const Real unit = descent_limit * eps_units<TypeParam>(oracle, wide(found.iterates[k - 1]));
      EXPECT_LE(f[k], f[k - 1] + unit);
      EXPECT_LE(std::abs(found.trace.steps[k].objective - f[k]), unit);
      EXPECT_TRUE(found.trace.steps[k].certified.value());
    }
    EXPECT_EQ(found.factor.cols(), this->columns);
  }
}

TYPED_TEST(Probe, WithoutItTheDirectionStaysHidden) {
  const DenseTarget<TypeParam> target(this->sigma_);
  const auto blind = run<TypeParam>(target, this->start_, this->steps, StepSize::alpha(1));
  EXPECT_LT(this->share(blind.factor), 1e-3);
  EXPECT_EQ(blind.trace.steps[0].gram_rank, this->columns);  // and nothing was flagged
}

// Where there is nothing to find it does no harm: the promise of the plain step still holds.
TYPED_TEST(Probe, DoesNoHarm) {
  for (const auto [dim, rank] : small_sizes()) {
    SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
    const auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 2});
    const DenseTarget<TypeParam> target(p.sigma);
    AlignOptions options;
    options.probe = true;
    const auto result = run<TypeParam>(target, p.start, 4, StepSize::alpha(0.9), options);
    EXPECT_EQ(result.status(), Status::step_limit);
    const std::vector<Real> f = objectives(p.oracle, result);
    for (std::size_t k = 1; k < f.size(); ++k) {
      const Real unit = descent_limit * eps_units<TypeParam>(p.oracle, wide(result.iterates[k - 1]));
      EXPECT_LE(f[k], f[k - 1] + unit);
      EXPECT_GE(f[k - 1] - f[k], result.trace.steps[k].promised_descent - unit);
      EXPECT_TRUE(result.trace.steps[k].certified.value());
    }
  }
}

}  // namespace
}  // namespace itspace::test
