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
#include <utility>

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

// Of a block that lies nearly beyond s: its own near-dependent directions are dropped, and those that lie mostly in s.
TEST(Subspace, NewDirectionsInOneProduct) {
  const Index d = 60, s_cols = 10, x_cols = 6;
  const Small all = orthonormal(d, s_cols + x_cols, 5), s = all.leftCols(s_cols), rest = all.rightCols(x_cols);
  Small x =
      rest * normal(x_cols, x_cols, 6) * SmallVector::LinSpaced(x_cols, -6, 0).array().exp().matrix().asDiagonal();
  x += 1e-7 * s * normal(s_cols, x_cols, 7);
  Small both(d, s_cols + x_cols);
  const auto directions = [&](const Small& block) {
    both << s, block;
    return new_directions(s.transpose() * block, block.transpose() * block, 1e-5, 0.25);
  };
  const Small turn = directions(x), q = both * turn;
  ASSERT_EQ(turn.cols(), x_cols);
  EXPECT_LE((q.transpose() * q - Small::Identity(x_cols, x_cols)).norm(), 1e-10);
  EXPECT_LE((s.transpose() * q).norm(), 1e-10);

  Small along_s = x, dependent = x;
  along_s.col(2) = s.col(1) + 0.1 * rest.col(2);
  EXPECT_EQ(directions(along_s).cols(), x_cols - 1);
  dependent.col(2) = dependent.col(1) + 1e-3 * dependent.col(1).norm() * rest.col(4);
  const Small fewer = directions(dependent), fewer_q = both * fewer;
  ASSERT_EQ(fewer.cols(), x_cols - 1);

  // What they leave of a combination of the block's columns, also where one was dropped.
  const Small a = normal(x_cols, 3, 8);
  const auto left = [&](const Small& block, const Small& made, const Small& t) {
    Small image = block * a;
    image -= s * (s.transpose() * image);
    image -= made * (made.transpose() * image);
    return std::pair(image.squaredNorm(), left_squared(s.transpose() * block, block.transpose() * block, t, a));
  };
  const auto [none, said_none] = left(x, q, turn.bottomRows(x_cols));
  EXPECT_LE(said_none, 1e-20 * x.squaredNorm());
  EXPECT_LE(none, 1e-20 * x.squaredNorm());
  const auto [some, said] = left(dependent, fewer_q, fewer.bottomRows(x_cols));
  EXPECT_GT(some, 1e-14 * dependent.squaredNorm());
  EXPECT_NEAR(said, some, 1e-3 * some);
}

// However little some columns of the basis are beyond c, what is kept of them is orthonormal.
TEST(Subspace, ColumnsBeyondAnotherBasis) {
  const Index n = 12, count = 4;
  const Small m = with_spectrum(SmallVector::LinSpaced(n, 0.7, 1.3), 3);
  for (const double angle : {1.0, 1e-1, 1e-2, 1e-4})
    for (const double drop : {1e-2, 1e-7}) {
      Small c = normal(n, count, 4) * angle;
      c.middleRows(5, count) += Small::Identity(count, count);
      c = c * orthonormalising_coefficients(c.transpose() * m * c, 1e-12, Drop::absolute);
      const Small along = c.transpose() * m.middleCols(5, count);
      const SmallVector left =
          Eigen::SelfAdjointEigenSolver<Small>(m.block(5, 5, count, count) - along.transpose() * along).eigenvalues();
      const Small x = columns_beyond(c, m, 5, count, drop);
      EXPECT_EQ(x.cols(), (left.array() > drop).count()) << angle << ", " << drop;
      EXPECT_LE((x.transpose() * m * x - Small::Identity(x.cols(), x.cols())).norm(), 1e-12) << angle << ", " << drop;
      EXPECT_LE((c.transpose() * m * x).norm(), 1e-12) << angle << ", " << drop;
    }
}

// The Ritz vectors' place is taken by c, and x is h-orthogonal to them too: its energies need no product with h.
TEST(Subspace, EnergiesBeyondRitzVectors) {
  const Index n = 12, count = 4;
  SmallVector values(n), near_one(n);
  for (Index i = 0; i < n; ++i) {
    values(i) = std::pow(0.6, double(i));
    near_one(i) = 1 + 1e-6 * std::cos(double(i));
  }
  const Small h = with_spectrum(values, 8), m = with_spectrum(near_one, 9);
  RitzPairs pairs;
  ASSERT_TRUE(ritz_pairs(h, m, count, pairs));
  for (const double drop : {1e-2, 1e-7}) {
    Small turn;
    const Small x = columns_beyond(pairs.vectors, m, 5, count, drop, &turn);
    ASSERT_GT(x.cols(), 0);
    Small made = pairs.vectors * turn.topRows(count);
    made.middleRows(5, count) += turn.bottomRows(count);
    EXPECT_LE((made - x).norm(), 1e-12);
    const Small found = energies_beyond(pairs.values, h.block(5, 5, count, count), turn);
    EXPECT_LE((found - energies(h, x)).norm(), 1e-12 / drop);
  }
}

TEST(Subspace, CoordinatesAndTheClosestTurn) {
  const Index n = 9, r = 3;
  SmallVector near_one(n);
  for (Index i = 0; i < n; ++i) near_one(i) = 1 + 1e-8 * std::cos(double(i));
  const Small m = with_spectrum(near_one, 4), along = normal(n, r, 5), a = normal(n, r, 6), inner = normal(n, r, 7);
  EXPECT_LE((m * coordinates_of(m, along) - along).norm(), 1e-14 * along.norm());
  // a turned is a Q; tr(Q'a'inner) is the sum of the singular values of a'inner, and nothing has more.
  const Small turned = turned_closest(a, inner);
  EXPECT_LE((turned * turned.transpose() - a * a.transpose()).norm(), 1e-12);
  const double most = Eigen::SelfAdjointEigenSolver<Small>(inner.transpose() * a * a.transpose() * inner)
                          .eigenvalues()
                          .cwiseMax(0.0)
                          .cwiseSqrt()
                          .sum();
  EXPECT_NEAR(turned.cwiseProduct(inner).sum(), most, 1e-10 * most);
}

TEST(Subspace, RitzPairsOfAPencil) {
  for (const Index n : {1, 7, 40})
    for (const double off : {0.3, 1e-5, 1e-7, 1e-9, 0.0})
      for (const Index count : {Index(1), (n + 2) / 3, n, n + 5}) {
        SmallVector values(n), near_one(n);
        for (Index i = 0; i < n; ++i) {
          values(i) = std::pow(0.8, double(i));
          near_one(i) = 1 + off * std::cos(double(i));
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
