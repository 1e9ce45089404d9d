// SPDX-License-Identifier: Apache-2.0
//
// Y = Q R for every condition number: the residual is small row by row, Q is well-conditioned, and directions are
// dropped only at rounding level.
#include "random_matrices.hpp"

#include "core/basis.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <Eigen/SVD>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

// Singular values from 1 down to 1/condition, columns mixed by a rotation.
template <Storage Scalar>
Block<Scalar> mixed(Index d, Index r, double condition) {
  SmallVector s(r);
  for (Index i = 0; i < r; ++i) s(i) = std::pow(condition, -static_cast<double>(i) / static_cast<double>(r - 1));
  return (orthonormal(d, r, 1) * s.asDiagonal() * orthonormal(r, r, 2)).cast<Scalar>();
}

template <Storage Scalar>
void check(const Block<Scalar>& y, Index expected_cols) {
  Block<Scalar> q(y.rows(), y.cols());
  Basis basis;
  HostSpace<Scalar> space;
  make_basis(space, y, q, basis);
  ASSERT_TRUE(basis.finite);
  EXPECT_EQ(basis.cols, expected_cols);
  const Small wide_q = q.leftCols(basis.cols).template cast<double>();
  const Small wide_y = y.template cast<double>();
  const double eps = std::numeric_limits<Scalar>::epsilon();
  const double r = static_cast<double>(y.cols());
  EXPECT_LT((wide_q * basis.r - wide_y).norm(), 30 * r * eps * wide_y.norm());
  const SmallVector s = Eigen::JacobiSVD<Small>(wide_q).singularValues();
  EXPECT_LT(s(0) / s(basis.cols - 1), 2.0);
  EXPECT_NEAR(s(0), 1, 0.5);
  EXPECT_NEAR(basis.y_squared, wide_y.squaredNorm(), 30 * eps * wide_y.squaredNorm());
}

TEST(Basis, HoldsAtEveryConditionNumber) {
  for (const double condition : {1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12})
    check<double>(mixed<double>(200, 8, condition), 8);
  for (const double condition : {1.0, 1e3, 1e5, 1e6}) check<float>(mixed<float>(200, 8, condition), 8);
}

TEST(Basis, KeepsGradedColumns) {
  Block<float> y = mixed<float>(100, 4, 2);
  y.col(3) *= 1e-12F;
  check<float>(y, 4);
}

TEST(Basis, DropsZeroAndRepeatedColumns) {
  Block<double> y = mixed<double>(50, 5, 3);
  y.col(1).setZero();
  check<double>(y, 4);
  y.col(3) = 2 * y.col(0);
  check<double>(y, 3);
}

TEST(Basis, OfNothingIsEmpty) {
  const Block<double> y = Block<double>::Zero(10, 3);
  Block<double> q(10, 3);
  Basis basis;
  HostSpace<double> space;
  make_basis(space, y, q, basis);
  EXPECT_TRUE(basis.finite);
  EXPECT_EQ(basis.cols, 0);
}

TEST(Basis, SaysWhereYIsNotFinite) {
  Block<double> y = mixed<double>(10, 3, 2);
  y(4, 1) = std::numeric_limits<double>::infinity();
  Block<double> q(10, 3);
  Basis basis;
  HostSpace<double> space;
  make_basis(space, y, q, basis);
  EXPECT_FALSE(basis.finite);
}

}  // namespace
}  // namespace itspace
