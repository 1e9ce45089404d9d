// SPDX-License-Identifier: Apache-2.0
//
// Covariances from features: construction, weights, means, symmetrisation, and the paper's shift rule (appendix D.1).
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/threads.hpp>

#include <gtest/gtest.h>
#include <Eigen/Eigenvalues>

#include <limits>

namespace itspace::test {
namespace {

template <class Scalar>
class Covariance : public ::testing::Test {
 protected:
  static Block<Scalar> features(Index samples, Index dim, double mean_size, std::uint64_t seed = 1) {
    Draw draw(seed);
    return block<Scalar>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean_size, draw));
  }
  static RealMatrix reference(const Block<Scalar>& z, const Vector& weights = {}) {
    const RealMatrix t = centred_factor_of(wide(z), weights);
    return t * t.transpose();
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Covariance, Scalars);

TYPED_TEST(Covariance, IsTheDefinition) {
  for (const double mean_size : {0.0, 50.0}) {
    for (const auto& [n, d] : {std::pair<Index, Index>{2, 1}, {2, 3}, {40, 1}, {40, 17}, {9, 17}, {30, 300}}) {
      SCOPED_TRACE(std::to_string(n) + "x" + std::to_string(d) + " mean " + std::to_string(mean_size));
      const auto z = this->features(n, d, mean_size);
      const Block<TypeParam> sigma = covariance<TypeParam>(z);
      EXPECT_EQ(sigma, Block<TypeParam>(sigma.transpose()));
      const RealMatrix expected = this->reference(z);
      // Rows are shifted by a mean rounded to Scalar: what is left of the mean is eps * mean_size.
      EXPECT_LT(ratio<TypeParam>((real(sigma) - expected).norm(), d, expected.norm()), ratio_limit);
      EXPECT_LT(
          ratio<double>((real(mean<TypeParam>(z)) - weighted_mean(wide(z))).norm(), d, real(z).cwiseAbs().maxCoeff()),
          ratio_limit);
    }
  }
}

TYPED_TEST(Covariance, FactorsReproduceIt) {
  for (const auto& [n, d] : {std::pair<Index, Index>{2, 1}, {40, 17}, {9, 17}, {17, 17}}) {
    const auto z = this->features(n, d, 20);
    const Vector weights = Vector::LinSpaced(n, 0.5, 2);
    for (const Vector& w : {Vector(), weights}) {
      const RealMatrix expected = this->reference(z, w);
      const Block<double> centred = centred_factor<TypeParam>(z, w), compact = compact_factor<TypeParam>(z, w);
      EXPECT_EQ(centred.rows(), d);
      EXPECT_EQ(centred.cols(), n);
      EXPECT_EQ(compact.rows(), d);
      EXPECT_LE(compact.cols(), std::min(n, d));
      const Real size = expected.norm() + 20 * 20 * eps<double>;
      EXPECT_LT(ratio<double>((real(centred) * real(centred).transpose() - expected).norm(), d, 20 * size),
                ratio_limit);
      EXPECT_LT(ratio<double>((real(compact) * real(compact).transpose() - expected).norm(), d, 20 * size),
                ratio_limit);
    }
  }
}

// Equal weights are none; scaling them changes nothing; c = sum w - (sum w^2)/(sum w).
TYPED_TEST(Covariance, Weights) {
  const auto z = this->features(25, 6, 5);
  const RealMatrix plain = this->reference(z);
  for (const double w : {1.0, 0.125, 3.0}) {
    const RealMatrix sigma = real(covariance<TypeParam>(z, Vector::Constant(25, w)));
    EXPECT_LT(ratio<TypeParam>((sigma - plain).norm(), 6, plain.norm()), ratio_limit);
  }
  const Vector weights = Vector::LinSpaced(25, 0, 3);
  const RealMatrix expected = this->reference(z, weights);
  EXPECT_LT(ratio<TypeParam>((real(covariance<TypeParam>(z, weights)) - expected).norm(), 6, expected.norm()),
            ratio_limit);
  EXPECT_LT(ratio<TypeParam>((real(covariance<TypeParam>(z, 7 * weights)) - expected).norm(), 6, expected.norm()),
            ratio_limit);
}

// Integer weights are repeated rows, up to the normaliser: n - 1 = sum w - 1 there, c = sum w - (sum w^2)/(sum w) here.
TYPED_TEST(Covariance, IntegerWeightsAreRepetitions) {
  const auto z = this->features(8, 4, 3);
  Vector weights(8);
  weights << 1, 2, 0, 3, 1, 1, 4, 2;
  const double sum = weights.sum(), c = sum - weights.squaredNorm() / sum;
  Block<TypeParam> repeated(Index(sum), 4);
  for (Index i = 0, row = 0; i < 8; ++i) {
    for (int k = 0; k < int(weights(i)); ++k) repeated.row(row++) = z.row(i);
  }
  const RealMatrix expected = real(covariance<TypeParam>(repeated)) * Real((sum - 1) / c);
  EXPECT_LT(ratio<TypeParam>((real(covariance<TypeParam>(z, weights)) - expected).norm(), 4, expected.norm()),
            ratio_limit);
  EXPECT_LT(ratio<double>((mean<TypeParam>(z, weights) - mean<TypeParam>(repeated)).norm(), 4, 10.0L), ratio_limit);
}

TYPED_TEST(Covariance, Misuse) {
  const auto z = this->features(5, 3, 0);
  const auto misuse = [&](std::initializer_list<std::string> parts, const Vector& weights) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { covariance<TypeParam>(z, weights); });
  };
  Vector weights = Vector::Ones(5);
  weights(2) = -0.5;
  misuse({"-0.5", "2"}, weights);  // the value and where it stands
  weights(2) = std::numeric_limits<double>::quiet_NaN();
  misuse({"nan"}, weights);
  misuse({"0"}, Vector::Zero(5));
  misuse({"4", "5"}, Vector::Ones(4));
  const Block<TypeParam> one = z.topRows(1);
  expect_throws_naming<std::invalid_argument>({"1", "2"}, [&] { covariance<TypeParam>(one); });
}

TYPED_TEST(Covariance, Symmetrise) {
  Block<TypeParam> m(2, 2);
  m << 1, 3, 5, 2;
  symmetrise<TypeParam>(m);
  EXPECT_EQ(m(0, 1), TypeParam(4));
  EXPECT_EQ(m(1, 0), TypeParam(4));
  EXPECT_EQ(m(0, 0), TypeParam(1));
  Block<TypeParam> rectangular(2, 3);
  rectangular.setZero();
  expect_throws_naming<std::invalid_argument>({"2", "3"}, [&] { symmetrise<TypeParam>(rectangular); });
}

// Entry by entry, whatever they are cut into, and by several threads.
TYPED_TEST(Covariance, SymmetriseIsTheAverageOfBothTriangles) {
  for (const Index d : {1, 31, 32, 33, 65, 300}) {
    const Block<TypeParam> before = block<TypeParam>(Draw(static_cast<std::uint64_t>(d)).gaussian(d, d));
    for (const Index count : {1, 3}) {
      const ThreadScope scope(count);
      Block<TypeParam> m = before;
      symmetrise<TypeParam>(m);
      for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < d; ++j)
          ASSERT_EQ(m(i, j), (before(i, j) + before(j, i)) / 2) << d << " " << i << " " << j;
    }
  }
}

// Where lambda_min <= 0, add -lambda_min + 1e-8 to the diagonal.
TYPED_TEST(Covariance, MakePositiveDefinite) {
  auto p = make_problem<TypeParam>({.dim = 9, .rank = 1, .seed = 2});
  const Block<TypeParam> before = p.sigma;
  EXPECT_EQ(make_positive_definite<TypeParam>(p.sigma), 0);
  EXPECT_EQ(p.sigma, before);

  Draw draw(3);
  const Matrix u = draw.orthonormal(9, 9);
  Vector lambda = eigenvalues_of(Spectrum::power_law, 9);
  lambda(8) = -0.25;
  Block<TypeParam> indefinite = block<TypeParam>(u * lambda.asDiagonal() * u.transpose());
  symmetrise<TypeParam>(indefinite);
  const Block<TypeParam> original = indefinite;
  const double added = make_positive_definite<TypeParam>(indefinite);
  const double unit = 30 * 9 * double(eps<TypeParam>);
  EXPECT_NEAR(added, 0.25 + 1e-8, unit);
  const Matrix difference = wide(indefinite) - wide(original);
  EXPECT_LE((difference - added * Matrix::Identity(9, 9)).norm(), unit);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(wide(indefinite), Eigen::EigenvaluesOnly);
  EXPECT_NEAR(eigen.eigenvalues()(0), 1e-8, unit);

  Block<TypeParam> zero = Block<TypeParam>::Zero(3, 3);
  EXPECT_DOUBLE_EQ(make_positive_definite<TypeParam>(zero), 1e-8);
}

}  // namespace
}  // namespace itspace::test
