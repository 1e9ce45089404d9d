// SPDX-License-Identifier: Apache-2.0
//
// The r x r half of Rayleigh-Ritz steps, against decompositions.
#include "random_matrices.hpp"

#include "core/subspace.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

// As many directions as there are eigenvalues above the limit, whether Cholesky's triangle was enough or not.
TEST(Subspace, OrthonormalisesWhatIsAboveTheLimit) {
  for (const Index n : {1, 5, 24})
    for (const double least : {1.0, 0.9, 0.3, 0.2, 1e-2, 1e-4, 1e-9}) {
      SmallVector values(n);
      for (Index i = 0; i < n; ++i) values(i) = std::pow(least, double(i) / double(std::max<Index>(1, n - 1)));
      const Small gram = with_spectrum(values, 3);
      for (const double drop : {0.25, 1.3e-3, 1e-12}) {
        const Small c = orthonormalising_coefficients(gram, drop, Drop::absolute);
        EXPECT_EQ(c.cols(), (values.array() > drop).count()) << n << ", " << least << ", " << drop;
        EXPECT_LE((c.transpose() * gram * c - Small::Identity(c.cols(), c.cols())).norm(),
                  30 * double(n) * eps64 / drop);
      }
      const SmallVector scale = gram.diagonal().cwiseSqrt().cwiseInverse();
      const SmallVector equilibrated =
          Eigen::SelfAdjointEigenSolver<Small>(scale.asDiagonal() * gram * scale.asDiagonal()).eigenvalues();
      const Small c = orthonormalising_coefficients(gram, 1e-5, Drop::relative);
      EXPECT_EQ(c.cols(), (equilibrated.array() > 1e-5 * equilibrated.maxCoeff()).count()) << n << ", " << least;
    }
}

TEST(Subspace, TheRestOfABlockBeyondAnother) {
  const Index d = 60, s_cols = 10, x_cols = 6;
  const Small all = orthonormal(d, s_cols + x_cols, 5), s = all.leftCols(s_cols);
  // Of the last two columns nothing is left beyond s.
  Small x = s * normal(s_cols, x_cols, 6);
  x.leftCols(4) += all.rightCols(x_cols) * normal(x_cols, 4, 7);
  const Small turn = remaining_directions(s.transpose() * x, x.transpose() * x, 1e-6);
  ASSERT_EQ(turn.cols(), 4);
  Small both(d, s_cols + x_cols);
  both << s, x;
  const Small rest = both * turn;
  EXPECT_LE((rest.transpose() * rest - Small::Identity(4, 4)).norm(), 1e-9);
  EXPECT_LE((s.transpose() * rest).norm(), 1e-9);
  const Small beyond = x - s * (s.transpose() * x);
  EXPECT_LE((beyond - rest * (rest.transpose() * beyond)).norm(), 1e-9 * x.norm());
}

TEST(Subspace, RitzPairsOfAPencil) {
  for (const Index n : {1, 7, 40})
    for (const Index count : {Index(1), (n + 2) / 3, n, n + 5}) {
      SmallVector values(n), near_one(n);
      for (Index i = 0; i < n; ++i) {
        values(i) = std::pow(0.8, double(i));
        near_one(i) = 1 + 0.3 * std::cos(double(i));
      }
      const Small h = with_spectrum(values, 8), m = with_spectrum(near_one, 9);
      RitzPairs pairs;
      ASSERT_TRUE(ritz_pairs(h, m, count, pairs));
      const Index found = std::min(count, n);
      const SmallVector expected = Eigen::GeneralizedSelfAdjointEigenSolver<Small>(h, m).eigenvalues().reverse();
      ASSERT_EQ(pairs.values.size(), found);
      const double unit = 100 * double(n) * eps64;
      EXPECT_LE((pairs.values - expected.head(found)).cwiseAbs().maxCoeff(), unit);
      EXPECT_LE((pairs.vectors.transpose() * m * pairs.vectors - Small::Identity(found, found)).norm(), unit);
      EXPECT_LE((h * pairs.vectors - m * pairs.vectors * pairs.values.asDiagonal()).norm(), unit);
    }
  RitzPairs pairs;
  EXPECT_FALSE(ritz_pairs(Small::Identity(3, 3), Small::Zero(3, 3), 1, pairs));
}

}  // namespace
}  // namespace itspace
