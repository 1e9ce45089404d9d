// SPDX-License-Identifier: Apache-2.0
#include "covdrift_moments.hpp"

#include <itspace/covariance.hpp>
#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <stdexcept>

namespace itspace::experiments {
namespace {

constexpr double eps = Eigen::NumTraits<double>::epsilon();

Block<double> samples(Index n, Index d) {
  Block<double> z(n, d);
  Random(5).fill_normal<double>(z);
  for (Index j = 0; j < d; ++j)
    z.col(j) = z.col(j) * static_cast<double>(j + 1) + Eigen::VectorXd::Constant(n, 10.0 * static_cast<double>(j));
  return z;
}

TEST(Standardiser, GivesMeanZeroAndVarianceOne) {
  Block<double> z = samples(40, 5);
  const Standardiser standardiser(z);
  standardiser.apply(z);
  for (Index j = 0; j < 5; ++j) {
    EXPECT_LE(std::abs(z.col(j).mean()), 100 * eps);
    EXPECT_LE(std::abs(z.col(j).squaredNorm() / 40 - 1), 100 * eps);
  }
}

TEST(Standardiser, OnlyCentresWhatDoesNotVary) {
  Block<double> z = samples(40, 3);
  z.col(1).setConstant(0.1);  // whose mean rounds
  const Standardiser standardiser(z);
  Block<double> other = samples(4, 3);
  other.col(1).setConstant(0.3);
  standardiser.apply(other);
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(other(i, 1), 0.2, 10 * eps);
  EXPECT_TRUE(other.allFinite());
}

TEST(Moments, AreShrunkTowardTheMeanVariance) {
  const Block<double> z = samples(60, 6);
  const Moments moments = moments_of(z, {.shrinkage = 0.05, .eigenvalue_floor = 1e-4});
  const Small plain = covariance<double>(z);
  const Small expected = 0.95 * plain + 0.05 * (plain.trace() / 6) * Small::Identity(6, 6);
  EXPECT_LE((moments.covariance - expected).norm(), 10 * eps * expected.norm());
  EXPECT_LE((moments.mean - Eigen::VectorXd(z.colwise().mean())).norm(), 10 * eps * moments.mean.norm());
}

TEST(Moments, HaveNoEigenvalueBelowTheFloor) {
  const Block<double> z = samples(4, 9);  // singular
  for (const double gamma : {0.0, 1e-3, 0.05, 1.0})
    for (const double floor : {0.0, 1e-4, 0.02}) {
      const Moments moments = moments_of(z, {gamma, floor});
      const double unit = covariance<double>(z).trace() / 9;
      const Eigen::SelfAdjointEigenSolver<Small> eigen(moments.covariance, Eigen::EigenvaluesOnly);
      const double rounding = 30 * 9 * eps * eigen.eigenvalues().maxCoeff();
      EXPECT_GE(eigen.eigenvalues().minCoeff(), std::max(gamma, floor) * unit - rounding) << gamma << " " << floor;
      EXPECT_EQ(moments.covariance, Block<double>(moments.covariance.transpose()));
    }
}

TEST(Moments, RefuseWhatHasNone) {
  EXPECT_THROW(moments_of(samples(1, 3), {}), std::invalid_argument);
  EXPECT_THROW(moments_of(Block<double>::Constant(5, 3, 2.0), {}), std::invalid_argument);
  EXPECT_THROW(moments_of(samples(9, 3), {.shrinkage = 1.5}), std::invalid_argument);
  EXPECT_THROW(moments_of(samples(9, 3), {.eigenvalue_floor = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::experiments
