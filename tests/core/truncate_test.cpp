// SPDX-License-Identifier: Apache-2.0
//
// The rank-r truncation Pi_r and the leading eigenvalues, of covariances and of factors.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace itspace::test {
namespace {

// A spectrum with a clear gap after every eigenvalue, so that Pi_r is well-conditioned for every r.
Vector gapped(Index dim) {
  Vector lambda(dim);
  for (Index i = 0; i < dim; ++i) lambda(i) = std::pow(0.5, double(i));
  return lambda;
}

template <class Scalar>
class Truncate : public ::testing::Test {
 protected:
  // Pi_r, from the spectrum it was built with.
  static RealMatrix truncation(const Matrix& u, const Vector& lambda, Index rank) {
    return real(u.leftCols(rank)) * real(lambda.head(rank)).col(0).asDiagonal() * real(u.leftCols(rank)).transpose();
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Truncate, Scalars);

TYPED_TEST(Truncate, KeepsTheLeadingEigenpairs) {
  for (const Index dim : {1, 2, 3, 9}) {
    Draw draw(1);
    const Matrix u = draw.orthonormal(dim, dim);
    const Vector lambda = gapped(dim);
    const Block<TypeParam> factor = block<TypeParam>(u * lambda.cwiseSqrt().asDiagonal());
    const Block<TypeParam> sigma = block<TypeParam>(covariance_from(u * lambda.cwiseSqrt().asDiagonal()));
    for (Index rank = 1; rank <= dim; ++rank) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
      const RealMatrix expected = this->truncation(u, lambda, rank);
      const Real gap = rank < dim ? Real(lambda(rank - 1) - lambda(rank)) : Real(1);
      for (const auto& y : {truncate<TypeParam>(sigma, rank), truncate_factor<TypeParam>(factor, rank)}) {
        ASSERT_EQ(y.rows(), dim);
        ASSERT_EQ(y.cols(), rank);
        // Rounding of sigma turns the leading subspace by eps/gap.
        EXPECT_LT(ratio<TypeParam>((real(y) * real(y).transpose() - expected).norm(), dim, expected.norm() / gap),
                  ratio_limit);
      }
    }
  }
}

// Eckart-Young, which needs no gap: ||Sigma - YY'||_F^2 = sum of the squares of the other eigenvalues.
TYPED_TEST(Truncate, IsOptimalWithoutAGap) {
  for (const Spectrum spectrum : all_spectra) {
    for (const auto& [dim, rank] : {Size{3, 2}, Size{17, 1}, Size{17, 8}, Size{17, 17}, Size{300, 16}}) {
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = 2, .spectrum = spectrum};
      SCOPED_TRACE(describe(shape));
      const auto p = make_problem<TypeParam>(shape);
      const Vector lambda = eigenvalues_of(spectrum, dim);
      const Real rest = rank < dim ? Real(lambda.tail(dim - rank).norm()) : Real(0);
      const RealMatrix sigma = real(p.sigma);
      const RealMatrix y = real(truncate<TypeParam>(p.sigma, rank));
      EXPECT_LE((sigma - y * y.transpose()).norm(), rest + ratio_limit * Real(dim) * eps<TypeParam> * sigma.norm());
    }
  }
}

TYPED_TEST(Truncate, LeadingEigenvalues) {
  for (const Spectrum spectrum : all_spectra) {
    for (const Index dim : {1, 2, 17, 300}) {
      const auto p = make_problem<TypeParam>({.dim = dim, .rank = 1, .seed = 3, .spectrum = spectrum});
      const Vector lambda = eigenvalues_of(spectrum, dim);
      for (const Index count : {Index(1), std::min<Index>(dim, 5), dim, dim + 3}) {
        if (dim == 300 && count > 5) continue;
        SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(count));
        const Vector leading = leading_eigenvalues<TypeParam>(p.sigma, count);
        const Index expected = std::min(count, dim);
        ASSERT_EQ(leading.size(), expected);
        EXPECT_LT(ratio<TypeParam>((leading - lambda.head(expected)).norm(), dim, lambda(0)), ratio_limit);
        for (Index i = 1; i < expected; ++i) EXPECT_LE(leading(i), leading(i - 1));
      }
    }
  }
}

TEST(TruncateFactor, WideAndTallFactors) {
  Draw draw(4);
  for (const auto& [dim, cols] : {std::pair<Index, Index>{9, 4}, {9, 9}, {4, 30}, {1, 7}, {7, 1}}) {
    const Block<double> factor = draw.gaussian(dim, cols);
    const RealVector s = singular_values(real(factor));
    const Vector leading = leading_eigenvalues_of_factor(factor, 3);
    ASSERT_EQ(leading.size(), std::min<Index>({3, dim, cols}));
    for (Index i = 0; i < leading.size(); ++i) {
      EXPECT_LT(ratio<double>(leading(i) - s(i) * s(i), dim, s(0) * s(0)), ratio_limit);
    }
    const Index rank = std::min<Index>(dim, 2);
    const RealMatrix y = real(truncate_factor<double>(factor, rank));
    ASSERT_EQ(y.cols(), rank);  // padded with zeros where the factor has fewer columns
    const RealMatrix x = real(factor) * real(factor).transpose();
    const Real rest = s.size() > rank ? s.tail(s.size() - rank).cwiseAbs2().matrix().norm() : Real(0);
    EXPECT_LE(std::abs((x - y * y.transpose()).norm() - rest), ratio_limit * Real(dim) * eps<double> * x.norm());
  }
}

// U U' is the identity to rounding: the eigenvalues are one cluster, on which LAPACK's fastest method gives up at
// times.
TYPED_TEST(Truncate, WhitenedCovariancesConverge) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Draw draw(seed);
    const Index dim = 2 + Index(seed % 39);
    const Matrix u = draw.orthonormal(dim, dim), product = u * u.transpose();
    const Block<TypeParam> sigma = block<TypeParam>(0.5 * (product + product.transpose()));
    for (const Index rank : {Index(1), dim / 2, dim}) {
      SCOPED_TRACE(std::to_string(seed) + " " + std::to_string(rank));
      Block<TypeParam> y;
      ASSERT_NO_THROW(y = truncate<TypeParam>(sigma, rank));
      const RealMatrix gram = real(y).transpose() * real(y);
      // Eigenvectors of one cluster are LAPACK's least orthogonal ones.
      EXPECT_LE(ratio<TypeParam>((gram - RealMatrix::Identity(rank, rank)).norm(), dim, 1), 10 * ratio_limit);
      ASSERT_NO_THROW(leading_eigenvalues<TypeParam>(sigma, rank));
    }
    ASSERT_NO_THROW(check_covariance<TypeParam>(sigma));
  }
}

// A value that is not finite is named, not carried along or lost on the way.
TYPED_TEST(Truncate, NonFiniteValuesAreNamed) {
  for (const TypeParam poison :
       {std::numeric_limits<TypeParam>::quiet_NaN(), std::numeric_limits<TypeParam>::infinity()}) {
    for (const auto& [rows, cols] : {std::pair<Index, Index>{4, 9}, {9, 4}, {4, 4}}) {
      for (const auto& [i, j] : {std::pair<Index, Index>{0, 3}, {3, 0}, {2, 2}}) {
        Block<TypeParam> factor = block<TypeParam>(Draw(1).gaussian(rows, cols));
        factor(i, j) = poison;
        const std::string place = "factor[" + std::to_string(i) + ", " + std::to_string(j) + "]";
        expect_throws_naming<std::invalid_argument>({place}, [&] { truncate_factor<TypeParam>(factor, 2); });
        const Block<double> wide_factor = factor.template cast<double>();
        expect_throws_naming<std::invalid_argument>({place}, [&] { leading_eigenvalues_of_factor(wide_factor, 2); });
      }
    }
    Block<TypeParam> sigma = Block<TypeParam>::Identity(5, 5);
    sigma(1, 3) = poison;  // above the diagonal, where LAPACK does not look
    for (const auto& call :
         {std::function<void()>([&] { truncate<TypeParam>(sigma, 2); }),
          std::function<void()>([&] { leading_eigenvalues<TypeParam>(sigma, 2); }), std::function<void()>([&] {
            Block<TypeParam> copy = sigma;
            make_positive_definite<TypeParam>(copy);
          })})
      expect_throws_naming<std::invalid_argument>({"covariance[1, 3]"}, call);
  }
}

TYPED_TEST(Truncate, Misuse) {
  const Block<TypeParam> sigma = Block<TypeParam>::Identity(4, 4), rectangular = Block<TypeParam>::Zero(4, 3);
  expect_throws_naming<std::invalid_argument>({"0", "4"}, [&] { truncate<TypeParam>(sigma, 0); });
  expect_throws_naming<std::invalid_argument>({"5", "4"}, [&] { truncate<TypeParam>(sigma, 5); });
  expect_throws_naming<std::invalid_argument>({"4", "3"}, [&] { truncate<TypeParam>(rectangular, 1); });
  expect_throws_naming<std::invalid_argument>({"5", "4"}, [&] { truncate_factor<TypeParam>(rectangular, 5); });
}

}  // namespace
}  // namespace itspace::test
