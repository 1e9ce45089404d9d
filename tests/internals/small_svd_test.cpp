// SPDX-License-Identifier: Apache-2.0
//
// The small singular value decomposition, from its definition.
#include "random_matrices.hpp"

#include "kernels/small_svd.hpp"

#include "each_kernel.hpp"

#include <itspace/random.hpp>

#include <Eigen/QR>

#include <cmath>
#include <limits>

namespace itspace::kernels {
namespace {

// Residual, orthonormality and order, in units of n eps64.
void check(const Small& a) {
  const Index m = a.rows(), n = a.cols();
  Small u(m, n), v(n, n);
  SmallVector s(n);
  ASSERT_TRUE(jacobi_svd(m, n, a.data(), u.data(), s.data(), v.data())) << m << " x " << n;
  const double unit = 30 * static_cast<double>(n) * eps64;
  EXPECT_LE((u * s.asDiagonal() * v.transpose() - a).norm(), unit * a.norm()) << m << " x " << n;
  EXPECT_LE((u.transpose() * u - Small::Identity(n, n)).norm(), unit) << m << " x " << n;
  EXPECT_LE((v.transpose() * v - Small::Identity(n, n)).norm(), unit) << m << " x " << n;
  for (Index j = 1; j < n; ++j) EXPECT_GE(s(j - 1), s(j));
  EXPECT_GE(s(n - 1), 0);
}

TEST(SmallSvd, IsOne) {
  with_each_kernel([] {
    for (const Index n : {1, 2, 3, 8, 15, 16, 33, 40})
      for (const Index more : {0, 1, 9}) check(normal(n + more, n, 1));
  });
}

TEST(SmallSvd, ManyRandomOnes) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Index n = 1 + static_cast<Index>(seed % 20);
    check(normal(n, n, seed));
  }
}

TEST(SmallSvd, EqualSingularValues) {
  check(Small::Identity(12, 12));
  const Eigen::HouseholderQR<Small> qr(normal(16, 16, 3));
  check(qr.householderQ() * Small::Identity(16, 16));
  Small pairs = Small::Identity(16, 16);
  for (Index i = 0; i < 16; ++i) pairs(i, i) = std::pow(2.0, static_cast<double>(i / 2));
  check(qr.householderQ() * pairs * normal(16, 16, 4).householderQr().householderQ());
}

// Small values beside large ones keep their own digits: columns scaled over twelve orders have singular values that are
// known to eps64 of themselves.
TEST(SmallSvd, GradedColumnsKeepTheirDigits) {
  const Index n = 12;
  const Small q = normal(n, n, 5).householderQr().householderQ() * Small::Identity(n, n);
  SmallVector scales(n);
  for (Index j = 0; j < n; ++j) scales(j) = std::pow(10.0, -static_cast<double>(j));
  const Small a = q * scales.asDiagonal();
  Small u(n, n), v(n, n);
  SmallVector s(n);
  ASSERT_TRUE(jacobi_svd(n, n, a.data(), u.data(), s.data(), v.data()));
  for (Index j = 0; j < n; ++j) EXPECT_NEAR(s(j) / scales(j), 1, 100 * eps64) << j;
}

TEST(SmallSvd, LeavesSingularMatricesToLapack) {
  Small a = normal(6, 6, 1);
  a.col(2) = a.col(4);
  Small u(6, 6), v(6, 6);
  SmallVector s(6);
  EXPECT_FALSE(jacobi_svd(6, 6, a.data(), u.data(), s.data(), v.data()));
  a.setZero();
  EXPECT_FALSE(jacobi_svd(6, 6, a.data(), u.data(), s.data(), v.data()));
  a.setConstant(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(jacobi_svd(6, 6, a.data(), u.data(), s.data(), v.data()));
}

}  // namespace
}  // namespace itspace::kernels
