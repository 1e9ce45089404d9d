// SPDX-License-Identifier: Apache-2.0
//
// Proposition "Validity of the Iterates": every X_k = Y_k Y_k' is positive semidefinite with rank <= r, and positive
// definite when r = d and Y_k is invertible.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

namespace itspace::test {
namespace {

template <class Scalar>
class Validity : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Validity, Scalars);

TYPED_TEST(Validity, EveryIterateIsACovarianceWithinTheRankBudget) {
  for (const Spectrum spectrum : {Spectrum::power_law, Spectrum::rank_deficient}) {
    for (const auto [dim, rank] : all_sizes()) {
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = 1, .spectrum = spectrum};
      SCOPED_TRACE(describe(shape));
      const auto p = make_problem<TypeParam>(shape);
      const DenseTarget<TypeParam> target(p.sigma);
      const auto result = run<TypeParam>(target, p.start, 3, StepSize::alpha(0.9));
      ASSERT_EQ(result.iterates.size(), 4u);
      for (const auto& y : result.iterates) {
        ASSERT_EQ(y.rows(), dim);
        ASSERT_EQ(y.cols(), rank);
        ASSERT_TRUE(y.allFinite());
        const Matrix x = wide(y) * wide(y).transpose();
        const Eigen::SelfAdjointEigenSolver<Matrix> eigen(x, Eigen::EigenvaluesOnly);
        const double rounding = 10 * static_cast<double>(dim) * std::numeric_limits<double>::epsilon() * x.norm();
        EXPECT_GE(eigen.eigenvalues()(0), -rounding);
        if (rank < dim) {
          EXPECT_LE(eigen.eigenvalues()(dim - rank - 1), rounding);
        }
      }
    }
  }
}

TYPED_TEST(Validity, FullRankStaysPositiveDefinite) {
  for (const Spectrum spectrum : full_rank_spectra) {
    for (const Index dim : {1, 2, 3, 17}) {
      for (const double alpha : {0.3, 0.9, 1.0}) {
        const ProblemShape shape{.dim = dim, .rank = dim, .seed = 2, .spectrum = spectrum};
        SCOPED_TRACE(describe(shape));
        const auto p = make_problem<TypeParam>(shape);
        const DenseTarget<TypeParam> target(p.sigma);
        for (const auto& y : run<TypeParam>(target, p.start, 4, StepSize::alpha(alpha)).iterates) {
          const RealVector s = singular_values(real(y));
          EXPECT_GT(s(dim - 1), ratio_limit * Real(dim) * eps<TypeParam> * s(0));
        }
      }
    }
  }
}

}  // namespace
}  // namespace itspace::test
