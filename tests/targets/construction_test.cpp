// SPDX-License-Identifier: Apache-2.0
//
// Targets check their shapes and weights when they are made, hold what is theirs and borrow what is not.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace itspace::test {
namespace {

template <class Scalar>
class Construction : public ::testing::Test {
 protected:
  const Block<Scalar> features_ = Block<Scalar>::Random(5, 3);
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Construction, Scalars);

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TYPED_TEST(Construction, DenseMustBeSquare) {
  const Block<TypeParam> rectangular = Block<TypeParam>::Zero(4, 3);
  expect_misuse({"4", "3"}, [&] { DenseTarget<TypeParam>{rectangular}; });
  const Block<TypeParam> empty(0, 0);
  expect_misuse({"0"}, [&] { DenseTarget<TypeParam>{empty}; });
}

TYPED_TEST(Construction, FeaturesNeedTwoSamples) {
  const Block<TypeParam> one = Block<TypeParam>::Random(1, 3), none(0, 3), flat(4, 0);
  expect_misuse({"1", "2"}, [&] { FeaturesTarget<TypeParam>{one}; });
  expect_misuse({"0", "2"}, [&] { FeaturesTarget<TypeParam>{none}; });
  expect_misuse({"no columns"}, [&] { FeaturesTarget<TypeParam>{flat}; });
}

TYPED_TEST(Construction, WeightsMustBeUsable) {
  const auto with = [&](const Vector& weights) {
    return [this, weights] { FeaturesTarget<TypeParam>(this->features_, weights); };
  };
  Vector weights = Vector::Ones(5);
  weights(3) = -0.25;
  expect_misuse({"-0.25", "3"}, with(weights));
  weights(3) = nan;
  expect_misuse({"nan", "3"}, with(weights));
  weights(3) = inf;
  expect_misuse({"inf", "3"}, with(weights));
  expect_misuse({"0"}, with(Vector::Zero(5)));
  expect_misuse({"4", "5"}, with(Vector::Ones(4)));
  Vector lonely = Vector::Zero(5);
  lonely(2) = 1;
  expect_misuse({"1", "2"}, with(lonely));  // one positive weight, two are needed
  lonely(4) = 1e-3;
  EXPECT_NO_THROW(with(lonely)());
}

TYPED_TEST(Construction, LowRankNeedsNonNegativeWeights) {
  const Block<TypeParam> u = Block<TypeParam>::Random(4, 2);
  using Target = LowRankDiagonalTarget<TypeParam>;
  expect_misuse({"-1.5"}, [&] { Target(u, Eigen::Vector2d(1, -1.5), 1.0); });
  expect_misuse({"nan"}, [&] { Target(u, Eigen::Vector2d(nan, 1), 1.0); });
  expect_misuse({"3", "2"}, [&] { Target(u, Eigen::Vector3d(1, 1, 1), 1.0); });
  expect_misuse({"-0.5"}, [&] { Target(u, Eigen::Vector2d(1, 1), -0.5); });
  expect_misuse({"-2"}, [&] { Target(u, Eigen::Vector2d(1, 1), Vector(Eigen::Vector4d(1, 0, -2, 1))); });
  expect_misuse({"3", "4"}, [&] { Target(u, Eigen::Vector2d(1, 1), Vector(Eigen::Vector3d(1, 1, 1))); });
}

TYPED_TEST(Construction, FactorNeedsEntries) {
  const Block<TypeParam> no_columns(3, 0), no_rows(0, 3);
  expect_misuse({"0"}, [&] { FactorTarget<TypeParam>{no_columns}; });
  expect_misuse({"0"}, [&] { FactorTarget<TypeParam>{no_rows}; });
}

TYPED_TEST(Construction, ShiftMustNotBeNegative) {
  const Block<TypeParam> identity = Block<TypeParam>::Identity(3, 3);
  const DenseTarget<TypeParam> base(identity);
  expect_misuse({"-0.125", "0"}, [&] { ShiftedTarget<TypeParam>(base, -0.125); });
  expect_misuse({"nan"}, [&] { ShiftedTarget<TypeParam>(base, nan); });
  expect_misuse({"inf"}, [&] { ShiftedTarget<TypeParam>(base, inf); });
  EXPECT_EQ(ShiftedTarget<TypeParam>(base, 0).trace(), 3);
  EXPECT_EQ(ShiftedTarget<TypeParam>(base, 2).trace(), 9);
}

// A block that is an lvalue is read in place; a temporary is taken over and outlives its name.
TYPED_TEST(Construction, BorrowsOrOwns) {
  Block<TypeParam> sigma = Block<TypeParam>::Identity(3, 3);
  const DenseTarget<TypeParam> borrowed(borrow(sigma));
  const DenseTarget<TypeParam> owned(sigma);
  sigma(1, 1) = 5;
  const Block<TypeParam> y = Block<TypeParam>::Ones(3, 1);
  Block<TypeParam> out(3, 1);
  borrowed.apply(y, out);
  EXPECT_EQ(out(1, 0), TypeParam(5));
  owned.apply(y, out);
  EXPECT_EQ(out(1, 0), TypeParam(1));
  const DenseTarget<TypeParam> copy = owned;  // shares what it holds
  copy.apply(y, out);
  EXPECT_EQ(out(1, 0), TypeParam(1));
}

TYPED_TEST(Construction, FeaturesTellTheirMean) {
  Block<TypeParam> z(3, 2);
  z << 1, 10, 2, 20, 6, 60;
  const FeaturesTarget<TypeParam> target(z);
  EXPECT_EQ(target.samples(), 3);
  EXPECT_EQ(target.dim(), 2);
  EXPECT_EQ(target.mean(), Vector(Eigen::Vector2d(3, 30)));
  // Variances 7 and 700, by hand.
  EXPECT_NEAR(target.trace(), 707, 707 * 30 * double(eps<TypeParam>));
  const FeaturesTarget<TypeParam> weighted(z, Eigen::Vector3d(1, 0, 1));
  EXPECT_EQ(weighted.mean(), Vector(Eigen::Vector2d(3.5, 35)));
}

}  // namespace
}  // namespace itspace::test
