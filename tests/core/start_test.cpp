// SPDX-License-Identifier: Apache-2.0
//
// The starts of appendix B.1: the top r of a covariance, the top r of features through their smaller side, the centred
// features themselves, and the seeded random one.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

template <class Scalar>
class Starts : public ::testing::Test {
 protected:
  // A spectrum that halves: sample covariances keep a gap after every leading eigenvalue.
  static Block<Scalar> features(Index samples, Index dim, double mean_size, std::uint64_t seed) {
    Draw draw(seed);
    Vector lambda(dim);
    for (Index i = 0; i < dim; ++i) lambda(i) = std::pow(0.25, double(std::min<Index>(i, 8)));
    return block<Scalar>(features_with(samples, lambda, mean_size, draw));
  }
  static RealMatrix square(const Block<Scalar>& y) { return real(y) * real(y).transpose(); }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Starts, Scalars);

TYPED_TEST(Starts, FromACovariance) {
  for (const auto [dim, rank] : all_sizes()) {
    const auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 1});
    const auto y = start_from_covariance<TypeParam>(p.sigma, rank);
    ASSERT_EQ(y.rows(), dim);
    ASSERT_EQ(y.cols(), rank);
    // The truncation, so its distance is the floor.
    EXPECT_LE(p.oracle.objective(wide(y)),
              p.oracle.floor(rank) + ratio_limit * Real(dim) * eps<TypeParam> * p.oracle.trace());
  }
}

// Both sides of n = d give the truncation of the covariance.
TYPED_TEST(Starts, FromFeatures) {
  for (const double mean_size : {0.0, 20.0}) {
    for (const auto& [n, d] : {std::pair<Index, Index>{60, 9}, {12, 30}, {9, 9}, {50, 1}, {2, 5}}) {
      const auto z = this->features(n, d, mean_size, 2);
      const RealMatrix t = centred_factor_of(wide(z));
      const RealVector s = singular_values(t);
      for (Index rank = 1; rank <= std::min<Index>({n - 1, d, 4}); ++rank) {
        SCOPED_TRACE(std::to_string(n) + "x" + std::to_string(d) + " r=" + std::to_string(rank) + " mean " +
                     std::to_string(mean_size));
        const auto y = start_from_features<TypeParam>(z, rank);
        ASSERT_EQ(y.rows(), d);
        ASSERT_EQ(y.cols(), rank);
        const RealMatrix sigma = t * t.transpose();
        const Block<double> exact = sigma.template cast<double>();
        const RealMatrix expected =
            real(truncate<double>(exact, rank)) * real(truncate<double>(exact, rank)).transpose();
        const Real gap = (rank < s.size() ? s(rank - 1) * s(rank - 1) - s(rank) * s(rank) : s(rank - 1) * s(rank - 1)) /
                         (s(0) * s(0));
        const Real centring = 1 + Real(mean_size) / s(0);
        EXPECT_LT(ratio<TypeParam>((this->square(y) - expected).norm(), d, centring * expected.norm() / gap),
                  ratio_limit);
      }
    }
  }
}

TYPED_TEST(Starts, FromWeightedFeatures) {
  const auto z = this->features(40, 6, 1, 3);
  const Vector weights = Vector::LinSpaced(40, 0, 2);
  const auto y = start_from_features<TypeParam>(z, 6, weights);
  const RealMatrix t = centred_factor_of(wide(z), weights);
  const RealMatrix sigma = t * t.transpose();
  EXPECT_LT(ratio<TypeParam>((this->square(y) - sigma).norm(), 6, sigma.norm()), ratio_limit);
}

// More columns than the features have directions: the rest is zero, and the product is the whole covariance.
TYPED_TEST(Starts, RankAboveTheSamples) {
  const auto z = this->features(4, 10, 0, 4);
  const auto y = start_from_features<TypeParam>(z, 7);
  ASSERT_EQ(y.cols(), 7);
  const RealMatrix t = centred_factor_of(wide(z));
  const RealMatrix sigma = t * t.transpose();
  EXPECT_LT(ratio<TypeParam>((this->square(y) - sigma).norm(), 7, sigma.norm()), ratio_limit);
}

TYPED_TEST(Starts, FromAllFeatures) {
  for (const auto& [n, d] : {std::pair<Index, Index>{5, 12}, {12, 5}}) {
    for (const Vector& weights : {Vector(), Vector(Vector::LinSpaced(n, 1, 2))}) {
      const auto z = this->features(n, d, 3, 5);
      const auto y = start_from_all_features<TypeParam>(z, weights);
      ASSERT_EQ(y.rows(), d);
      ASSERT_EQ(y.cols(), n);
      const RealMatrix t = centred_factor_of(wide(z), weights);
      EXPECT_LT(ratio<TypeParam>((real(y) - t).norm(), d, t.norm() + real(z).norm() / std::sqrt(Real(n))), ratio_limit);
    }
  }
}

// Y0 = Sigma Omega, scaled to ||Y0||^2 = tr Sigma: inside the range of Sigma.
TYPED_TEST(Starts, Random) {
  for (const Spectrum spectrum : all_spectra) {
    for (const auto [dim, rank] : all_sizes()) {
      const auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 6, .spectrum = spectrum});
      const DenseTarget<TypeParam> target(p.sigma);
      const auto y = random_start<TypeParam>(target, rank, 3);
      ASSERT_EQ(y.rows(), dim);
      ASSERT_EQ(y.cols(), rank);
      EXPECT_LT(ratio<TypeParam>(real(y).squaredNorm() - p.oracle.trace(), rank, p.oracle.trace()), ratio_limit);
      if (spectrum == Spectrum::rank_deficient && dim <= 17) {
        const RealMatrix u = polar(real(p.factor));
        const RealMatrix outside = real(y) - u * (u.transpose() * real(y));
        EXPECT_LT(ratio<TypeParam>(outside.norm(), dim, real(y).norm()), ratio_limit);
      }
    }
  }
}

TYPED_TEST(Starts, Misuse) {
  const auto z = this->features(5, 3, 0, 7);
  const Block<TypeParam> one = z.topRows(1);
  expect_throws_naming<std::invalid_argument>({"0", "3"}, [&] { start_from_features<TypeParam>(z, 0); });
  expect_throws_naming<std::invalid_argument>({"4", "3"}, [&] { start_from_features<TypeParam>(z, 4); });
  expect_throws_naming<std::invalid_argument>({"1", "2"}, [&] { start_from_features<TypeParam>(one, 1); });
  expect_throws_naming<std::invalid_argument>({"1", "2"}, [&] { start_from_all_features<TypeParam>(one); });
  expect_throws_naming<std::invalid_argument>({"4", "5"},
                                              [&] { start_from_features<TypeParam>(z, 1, Vector::Ones(4)); });
  expect_throws_naming<std::invalid_argument>(
      {"4", "3"}, [&] { start_from_covariance<TypeParam>(Block<TypeParam>::Identity(3, 3), 4); });
}

}  // namespace
}  // namespace itspace::test
