// SPDX-License-Identifier: Apache-2.0
//
// Reductions to tridiagonal form on our own threads: A = Q T Q' from the definition, and the eigenpairs made of it.
#include "core/tridiagonal.hpp"
#include "core/lapack.hpp"
#include "each_kernel.hpp"
#include "kernels/symmetric_vector.hpp"
#include "random_matrices.hpp"

#include <itspace/threads.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace itspace {
namespace {

double rounding_of(Index n) {
  return 30 * double(n) * eps64;
}

Small random_symmetric(Index n) {
  const Small a = normal(n, n, 3);
  return a + a.transpose();
}

// What is above the diagonal is not to be read.
Small lower_of(const Small& a) {
  Small lower = a;
  lower.triangularView<Eigen::StrictlyUpper>().setConstant(std::numeric_limits<double>::quiet_NaN());
  return lower;
}

Small tridiagonal_of(const Tridiagonal& t) {
  Small made = Small::Zero(t.diagonal.size(), t.diagonal.size());
  made.diagonal() = t.diagonal;
  made.diagonal<-1>() = t.below;
  made.diagonal<1>() = t.below;
  return made;
}

void expect_reduced(const Small& a) {
  const Index n = a.rows();
  Small reduced = lower_of(a);
  Tridiagonal t;
  make_tridiagonal(reduced, t);
  Small q = Small::Identity(n, n);
  apply_reflectors(reduced, t.tau, q);
  const double size = std::max(a.norm(), std::numeric_limits<double>::min());
  EXPECT_LE((a * q - q * tridiagonal_of(t)).norm(), rounding_of(n) * size);
  EXPECT_LE((q.transpose() * q - Small::Identity(n, n)).norm(), rounding_of(n));
}

// Sizes around a panel, and those of many parts.
TEST(Tridiagonal, IsTheMatrixTurned) {
  for (const Index threads : {1, 2, 5})
    for (const Index n : {1, 2, 3, 31, 32, 33, 34, 65, 130, 400}) {
      SCOPED_TRACE(testing::Message() << n << " by " << threads);
      const ThreadScope scope(threads);
      expect_reduced(random_symmetric(n));
    }
  const ThreadScope scope(2);
  for (const double size : {1e-60, 1e60}) expect_reduced(size * random_symmetric(70));
  expect_reduced(Small::Zero(50, 50));
  expect_reduced(Small::Identity(50, 50));
  expect_reduced(Small::Constant(50, 50, 2.0));
  Small apart = random_symmetric(80);  // in blocks that have nothing to do with each other
  apart.bottomLeftCorner(40, 40).setZero();
  apart.topRightCorner(40, 40).setZero();
  expect_reduced(apart);
}

TEST(Tridiagonal, HasTheSameBitsEachTime) {
  const ThreadScope scope(3);
  const Small a = random_symmetric(500);
  Small first = a;
  Tridiagonal of_first;
  make_tridiagonal(first, of_first);
  for (int time = 0; time < 5; ++time) {
    Small again = a;
    Tridiagonal of_again;
    make_tridiagonal(again, of_again);
    ASSERT_EQ(of_first.diagonal, of_again.diagonal);
    ASSERT_EQ(of_first.below, of_again.below);
    ASSERT_EQ(first, again);
  }
}

// Large enough for our own reduction: all pairs, some, and values alone, of a spectrum with values that agree.
TEST(Tridiagonal, GivesEigenpairs) {
  const ThreadScope scope(2);
  const Index n = 800;
  ASSERT_TRUE(is_worth_own_reduction(n));
  SmallVector values(n), found;
  for (Index i = 0; i < n; ++i) values(i) = i < n - 10 ? -1.0 : i < n - 4 ? 2.0 : double(i);  // ascending
  const Small a = with_spectrum(values, 5);
  const double limit = rounding_of(n) * a.norm();
  Small vectors;
  ASSERT_TRUE(symmetric_eigen(a, found, vectors));
  EXPECT_LE((a * vectors - vectors * found.asDiagonal()).norm(), limit);
  EXPECT_LE((vectors.transpose() * vectors - Small::Identity(n, n)).norm(), rounding_of(n));
  ASSERT_TRUE(symmetric_eigenvalues(a, found));
  EXPECT_LE((found - values).norm(), limit);
  for (const Index count : {1, 3, 12, 800}) {
    SCOPED_TRACE(count);
    Small copy = a, leading;
    ASSERT_TRUE(leading_eigenpairs(copy, count, found, &leading));
    EXPECT_LE((found - values.tail(count).reverse()).norm(), limit);
    EXPECT_LE((a * leading - leading * found.asDiagonal()).norm(), limit);
    EXPECT_LE((leading.transpose() * leading - Small::Identity(count, count)).norm(), rounding_of(n));
  }
  Small copy = a;
  double least = 0;
  ASSERT_TRUE(smallest_eigenvalue(copy, least));
  EXPECT_NEAR(least, -1, limit);
}

TEST(Tridiagonal, CongruencesAreProducts) {
  for (const Index threads : {1, 3})
    for (const Index n : {1, 2, 63, 64, 65, 430}) {
      SCOPED_TRACE(testing::Message() << n << " by " << threads);
      const ThreadScope scope(threads);
      const Small b = random_symmetric(n);
      Small l = Small(b.array() * 0.3 + 0.1).triangularView<Eigen::Lower>();
      Small made = b;
      congruence(l, made);
      const Small expected = l.transpose() * b * l, error = made - expected;
      EXPECT_LE(Small(error.triangularView<Eigen::Lower>()).norm(), rounding_of(n) * l.squaredNorm() * b.norm());
    }
}

TEST(SymmetricVector, ColumnsAreHalfOfAProduct) {
  for (const Index n : {1, 2, 7, 8, 9, 40, 300}) {
    const Small a = random_symmetric(n), lower = lower_of(a);
    SmallVector x = a.col(n / 2), y(n);
    for (const Index cut : {Index(0), n / 3, n}) {
      kernels::with_each_kernel([&] {
        y.setOnes();
        kernels::add_symmetric_columns(lower.data(), n, n, 0, cut, x.data(), y.data());
        kernels::add_symmetric_columns(lower.data(), n, n, cut, n, x.data(), y.data());
        EXPECT_LE((y - SmallVector::Ones(n) - a * x).norm(), rounding_of(n) * a.norm() * x.norm()) << n;
      });
    }
  }
}

}  // namespace
}  // namespace itspace
