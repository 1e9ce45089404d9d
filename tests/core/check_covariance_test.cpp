// SPDX-License-Identifier: Apache-2.0
//
// check_covariance and check_finite: what a bad matrix is told. Every message names the value, where it stands, and the
// limit it broke.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/threads.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace itspace::test {
namespace {

template <class Scalar>
class CheckCovariance : public ::testing::Test {
 protected:
  static void expect_refused(const Block<Scalar>& sigma, std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { check_covariance<Scalar>(sigma); });
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CheckCovariance, Scalars);

TYPED_TEST(CheckCovariance, AcceptsCovariances) {
  for (const Spectrum spectrum : all_spectra) {
    for (const Index dim : {1, 2, 3, 17, 300}) {
      const auto p = make_problem<TypeParam>({.dim = dim, .rank = 1, .seed = 1, .spectrum = spectrum});
      EXPECT_NO_THROW(check_covariance<TypeParam>(p.sigma)) << dim;
    }
  }
  EXPECT_NO_THROW(check_covariance<TypeParam>(Block<TypeParam>::Zero(4, 4)));
}

TYPED_TEST(CheckCovariance, AcceptsScaledCovariances) {
  const double size = std::is_same_v<TypeParam, float> ? 1e26 : 1e150;
  for (const double scale : {size, 1 / size}) {
    const auto p = make_problem<TypeParam>({.dim = 17, .rank = 1, .seed = 1, .scale = scale});
    EXPECT_NO_THROW(check_covariance<TypeParam>(p.sigma));
    Block<TypeParam> flipped = -p.sigma;
    EXPECT_THROW(check_covariance<TypeParam>(flipped), std::invalid_argument);
  }
}

TYPED_TEST(CheckCovariance, NotSquare) {
  this->expect_refused(Block<TypeParam>::Zero(3, 5), {"3", "5"});
}

TYPED_TEST(CheckCovariance, Empty) {
  this->expect_refused(Block<TypeParam>(0, 0), {"0"});
}

TYPED_TEST(CheckCovariance, NotFinite) {
  Block<TypeParam> sigma = Block<TypeParam>::Identity(9, 9);
  sigma(4, 7) = std::numeric_limits<TypeParam>::quiet_NaN();
  sigma(6, 1) = std::numeric_limits<TypeParam>::infinity();
  this->expect_refused(sigma, {"nan", "4", "7"});  // the first of them, in reading order
  sigma(4, 7) = 0;
  this->expect_refused(sigma, {"inf", "6", "1"});
}

TYPED_TEST(CheckCovariance, NotSymmetric) {
  Block<TypeParam> sigma = Block<TypeParam>::Identity(9, 9);
  sigma(2, 6) = TypeParam(0.25);
  this->expect_refused(sigma, {"0.25", "2", "6"});
  // Asymmetry at rounding level passes.
  sigma(2, 6) = std::numeric_limits<TypeParam>::epsilon();
  EXPECT_NO_THROW(check_covariance<TypeParam>(sigma));
}

// One entry at a time, within a tile of the sweep and beyond it, and whichever of the two triangles it is in.
TYPED_TEST(CheckCovariance, TheLargestAsymmetryIsFoundWhereverItIs) {
  const Index d = 70;
  const Block<TypeParam> identity = Block<TypeParam>::Identity(d, d);
  EXPECT_EQ(largest_asymmetry<TypeParam>(identity).size, 0);
  EXPECT_TRUE(is_symmetric<TypeParam>(identity));
  for (const auto& [row, col] : {std::pair<Index, Index>{1, 0}, {31, 30}, {32, 31}, {69, 0}, {69, 68}, {40, 7}})
    for (const bool above : {false, true}) {
      Block<TypeParam> sigma = identity;
      sigma(5, 3) = TypeParam(0.125);
      (above ? sigma(col, row) : sigma(row, col)) = TypeParam(-0.25);
      const Asymmetry worst = largest_asymmetry<TypeParam>(sigma);
      EXPECT_EQ(worst.size, 0.25);
      EXPECT_EQ(worst.row, row);
      EXPECT_EQ(worst.col, col);
      EXPECT_FALSE(is_symmetric<TypeParam>(sigma));
    }
}

// One entry at a time, and values that are no numbers on both sides of the diagonal.
TYPED_TEST(CheckCovariance, ExactSymmetryIsToTheLastBit) {
  using Limits = std::numeric_limits<TypeParam>;
  const Index d = 70;
  Block<TypeParam> sigma = block<TypeParam>(Draw(4).gaussian(d, d));
  symmetrise<TypeParam>(sigma);
  EXPECT_TRUE(is_exactly_symmetric<TypeParam>(sigma));
  for (const auto& [row, col] :
       {std::pair<Index, Index>{1, 0}, {31, 30}, {32, 31}, {69, 0}, {69, 68}, {40, 7}, {33, 33}}) {
    for (const bool above : {false, true}) {
      Block<TypeParam> other = sigma;
      TypeParam& entry = above ? other(col, row) : other(row, col);
      entry = std::nextafter(entry, Limits::max());
      EXPECT_EQ(is_exactly_symmetric<TypeParam>(other), row == col);
    }
    for (const TypeParam strange : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
      Block<TypeParam> other = sigma;
      other(row, col) = other(col, row) = strange;
      EXPECT_FALSE(is_exactly_symmetric<TypeParam>(other));
    }
  }
  // Where values are least.
  Block<TypeParam> least = Block<TypeParam>::Zero(d, d);
  EXPECT_TRUE(is_exactly_symmetric<TypeParam>(least));
  least(50, 3) = Limits::denorm_min();
  EXPECT_FALSE(is_exactly_symmetric<TypeParam>(least));
}

// The first of those that are alike, by however many threads.
TYPED_TEST(CheckCovariance, TheLargestAsymmetryIsTheSameOnAnyNumberOfThreads) {
  const Index d = 400;
  Block<TypeParam> sigma = Block<TypeParam>::Identity(d, d);
  sigma(10, 3) = TypeParam(0.125);
  for (const Index i : {390, 201, 70}) sigma(i, i - 5) = TypeParam(-0.25);
  for (const Index count : {1, 2, 5}) {
    const ThreadScope scope(count);
    const Asymmetry worst = largest_asymmetry<TypeParam>(sigma);
    EXPECT_EQ(worst.size, 0.25);
    EXPECT_EQ(worst.row, 70);
    EXPECT_EQ(worst.col, 65);
  }
}

TYPED_TEST(CheckCovariance, SymmetryHasOneLimit) {
  constexpr auto eps = std::numeric_limits<TypeParam>::epsilon();
  Block<TypeParam> sigma = Block<TypeParam>::Identity(8, 8);
  sigma(0, 0) = 4;
  EXPECT_EQ(symmetry_limit<TypeParam>(sigma), 32 * eps);
  sigma(6, 2) = 32 * eps;
  EXPECT_TRUE(is_symmetric<TypeParam>(sigma));
  EXPECT_EQ(check_symmetric<TypeParam>(sigma).size, 32 * eps);
  sigma(6, 2) = 33 * eps;
  EXPECT_FALSE(is_symmetric<TypeParam>(sigma));
  EXPECT_TRUE(is_symmetric<TypeParam>(sigma, 2 * eps));
  // Entries that differ look different, and the matrix has the name that the caller has for it.
  sigma(2, 6) = 1;
  sigma(6, 2) = TypeParam(1) + 64 * eps;
  expect_throws_naming<std::invalid_argument>({"A[2] is not symmetric", "[6, 2] = 1.0000", "[2, 6] = 1 "},
                                              [&] { check_symmetric<TypeParam>(sigma, eps, "A[2]"); });
}

TYPED_TEST(CheckCovariance, WithARidgeItIsTheSumThatCounts) {
  Block<TypeParam> sigma = Block<TypeParam>::Identity(9, 9);
  sigma(3, 3) = TypeParam(-0.5);
  constexpr double eps = std::numeric_limits<TypeParam>::epsilon();
  EXPECT_NO_THROW(check_covariance<TypeParam>(sigma, eps, 0.5));
  EXPECT_NO_THROW(check_eigenvalues(0, 1.5, 9, eps));
  expect_throws_naming<std::invalid_argument>({"-0.25", "largest 1.25"},
                                              [&] { check_covariance<TypeParam>(sigma, eps, 0.25); });
  expect_throws_naming<std::invalid_argument>({"-0.25", "largest 1.25"},
                                              [&] { check_eigenvalues(-0.25, 1.25, 9, eps); });
}

TYPED_TEST(CheckCovariance, Indefinite) {
  Block<TypeParam> sigma = Block<TypeParam>::Identity(9, 9);
  sigma(3, 3) = TypeParam(-0.5);
  this->expect_refused(sigma, {"-0.5"});  // the smallest eigenvalue, beside the limit
  // Down to -d eps lambda_max it is rounding.
  sigma(3, 3) = -4 * std::numeric_limits<TypeParam>::epsilon();
  EXPECT_NO_THROW(check_covariance<TypeParam>(sigma));
  sigma(3, 3) = -20 * std::numeric_limits<TypeParam>::epsilon();
  EXPECT_THROW(check_covariance<TypeParam>(sigma), std::invalid_argument);
  // Data that was rounded before it came here says so.
  EXPECT_NO_THROW(check_covariance<TypeParam>(sigma, 1e-3));
}

TYPED_TEST(CheckCovariance, CheckFiniteNamesTheMatrixAndThePlace) {
  Block<TypeParam> m = Block<TypeParam>::Ones(5, 3);
  EXPECT_NO_THROW(check_finite<TypeParam>(m));
  EXPECT_NO_THROW(check_finite<TypeParam>(Block<TypeParam>::Constant(2, 2, std::numeric_limits<TypeParam>::max())));
  m(3, 2) = -std::numeric_limits<TypeParam>::infinity();
  expect_throws_naming<std::invalid_argument>({"features[3, 2]", "inf"},
                                              [&] { check_finite<TypeParam>(m, "features"); });
  m(1, 0) = std::numeric_limits<TypeParam>::quiet_NaN();
  expect_throws_naming<std::invalid_argument>({"matrix[1, 0]", "nan"}, [&] { check_finite<TypeParam>(m); });
}

// A view with a stride: what lies between the rows is not looked at.
TYPED_TEST(CheckCovariance, StridedViews) {
  Block<TypeParam> wider = Block<TypeParam>::Constant(3, 5, std::numeric_limits<TypeParam>::quiet_NaN());
  wider.leftCols(3).setIdentity();
  EXPECT_NO_THROW(check_finite<TypeParam>(wider.leftCols(3)));
  EXPECT_NO_THROW(check_covariance<TypeParam>(wider.leftCols(3)));
}

}  // namespace
}  // namespace itspace::test
