// SPDX-License-Identifier: Apache-2.0
//
// W2 between the Gaussians fitted to two feature sets: covariance part and mean part, through the smaller side of each.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

template <class Scalar>
class FeaturesDistance : public ::testing::Test {
 protected:
  struct Case {
    Index dim, n_a, n_b;
    double mean;
  };
  // Both sides tall, both wide, one of each, one dimension; means of size 0 and far from it.
  static std::vector<Case> cases() {
    std::vector<Case> all;
    for (const double mean : {0.0, 100.0}) {
      for (const Case& c : {Case{1, 2, 30, 0}, Case{3, 40, 25, 0}, Case{17, 60, 9, 0}, Case{17, 6, 50, 0},
                            Case{30, 8, 12, 0}, Case{30, 31, 30, 0}}) {
        all.push_back({c.dim, c.n_a, c.n_b, mean});
      }
    }
    return all;
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FeaturesDistance, Scalars);

TYPED_TEST(FeaturesDistance, IsThatOfTheFittedGaussians) {
  for (const auto& c : this->cases()) {
    SCOPED_TRACE("d=" + std::to_string(c.dim) + " n=" + std::to_string(c.n_a) + "," + std::to_string(c.n_b) +
                 " mean=" + std::to_string(c.mean));
    Draw draw(1);
    const Block<TypeParam> a =
        block<TypeParam>(features_with(c.n_a, eigenvalues_of(Spectrum::power_law, c.dim), c.mean, draw));
    const Block<TypeParam> b =
        block<TypeParam>(features_with(c.n_b, eigenvalues_of(Spectrum::graded, c.dim), c.mean, draw));
    const Distance distance = features_distance<TypeParam>(a, b);

    const RealMatrix ta = centred_factor_of(wide(a)), tb = centred_factor_of(wide(b));
    const Real size = ta.squaredNorm() + tb.squaredNorm();
    // Work is in double: the only loss is that of centring, eps64 times the size of the mean.
    const Real centring = 1 + real(a).cwiseAbs().maxCoeff() / std::sqrt(size);
    EXPECT_LT(ratio<double>(distance.covariance_part - factor_w2_squared(ta, tb), c.dim, centring * size), ratio_limit);
    const RealVector shift = weighted_mean(wide(a)) - weighted_mean(wide(b));
    EXPECT_LT(ratio<double>(distance.mean_part - shift.squaredNorm(), c.dim, centring * (size + shift.squaredNorm())),
              ratio_limit);
    for (const Accuracy& accuracy : {default_accuracy, full_accuracy, Accuracy{}}) {
      const Distance quick = features_distance<TypeParam>(a, b, accuracy);
      const Real allowed = std::max<Real>(accuracy.relative * distance.covariance_part, accuracy.of_variance * size);
      EXPECT_LE(std::abs(Real(quick.covariance_part) - distance.covariance_part),
                allowed + 30 * eps<double> * Real(c.dim) * centring * size);
      EXPECT_DOUBLE_EQ(quick.mean_part, distance.mean_part);
    }
    EXPECT_EQ(distance.squared(), distance.covariance_part + distance.mean_part);
    EXPECT_DOUBLE_EQ(distance.w2(), std::sqrt(distance.squared()));
  }
}

// Against the dense distance of the covariances, where these are not singular.
TYPED_TEST(FeaturesDistance, AgreesWithTheDenseOne) {
  Draw draw(2);
  const Index dim = 9;
  const Block<TypeParam> a = block<TypeParam>(features_with(70, eigenvalues_of(Spectrum::power_law, dim), 3, draw));
  const Block<TypeParam> b = block<TypeParam>(features_with(50, eigenvalues_of(Spectrum::power_law, dim), -2, draw));
  const Block<TypeParam> ca = covariance<TypeParam>(a), cb = covariance<TypeParam>(b);
  const double dense = dense_distance_squared<TypeParam>(ca, cb);
  const Real size = real(ca).trace() + real(cb).trace();
  EXPECT_LT(ratio<TypeParam>(features_distance<TypeParam>(a, b).covariance_part - dense, dim, size), ratio_limit);
}

TYPED_TEST(FeaturesDistance, ToItselfIsZero) {
  for (const auto& c : this->cases()) {
    Draw draw(3);
    const Block<TypeParam> a =
        block<TypeParam>(features_with(c.n_a, eigenvalues_of(Spectrum::power_law, c.dim), c.mean, draw));
    const Distance distance = features_distance<TypeParam>(a, a);
    const Real unit = ratio_limit * Real(c.dim) * eps<double> * (1 + Real(c.mean));
    EXPECT_LE(Real(distance.covariance_part), unit * unit * centred_factor_of(wide(a)).squaredNorm());
    EXPECT_EQ(distance.mean_part, 0);
  }
}

TYPED_TEST(FeaturesDistance, Misuse) {
  const Block<TypeParam> a = Block<TypeParam>::Random(5, 3), b = Block<TypeParam>::Random(5, 4);
  const Block<TypeParam> one = Block<TypeParam>::Random(1, 3);
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { features_distance<TypeParam>(a, b); });
  expect_throws_naming<std::invalid_argument>({"1", "2"}, [&] { features_distance<TypeParam>(a, one); });
}

TEST(MeanDistance, IsTheSquaredNorm) {
  EXPECT_EQ(mean_distance_squared(Eigen::Vector2d(1, 2), Eigen::Vector2d(4, 6)), 25);
  expect_throws_naming<std::invalid_argument>(
      {"2", "3"}, [] { mean_distance_squared(Eigen::Vector2d(1, 2), Eigen::Vector3d(4, 6, 1)); });
}

TEST(DistanceMisuse, MismatchedDimensions) {
  const Block<double> a = Block<double>::Identity(3, 3), b = Block<double>::Identity(4, 4);
  const Block<double> rectangular = Block<double>::Random(3, 2);
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { dense_distance_squared<double>(a, b); });
  expect_throws_naming<std::invalid_argument>({"3", "2"}, [&] { dense_distance_squared<double>(a, rectangular); });
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { factor_distance_squared(a, b); });
  const DenseTarget<double> target(b);
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { target_distance_squared<double>(a, target); });
}

}  // namespace
}  // namespace itspace::test
