// SPDX-License-Identifier: Apache-2.0
//
// Leading pairs from products alone: what they cost, when they are given up, and that a direction which the start does
// not see is not missed. What they are worth is tests/core/leading_part_test.cpp.
#include "core/leading_pairs.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

constexpr Index krylov_dim = 800, count = 4;

// diag(lambda) + size w w' that counts the columns it is multiplied with.
struct Counted {
  Eigen::VectorXd lambda = Eigen::VectorXd::Zero(krylov_dim);
  Eigen::VectorXd w = Eigen::VectorXd::Zero(krylov_dim);
  double size = 0;
  Index columns = 0;

  std::optional<LeadingPairs> leading() {
    return leading_pairs(krylov_dim, count, [this](const ConstBlockView<double>& in, BlockView<double> out) {
      columns += in.cols();
      out = lambda.asDiagonal() * in;
      if (size != 0) out += size * w * (w.transpose() * in);
    });
  }
};

TEST(LeadingPairs, CostAQuarterOfTheDimensionAtMost) {
  Counted falling, flat;
  for (Index i = 0; i < krylov_dim; ++i) {
    falling.lambda(i) = 1 / double(i + 1);
    flat.lambda(i) = 1 - 1e-3 * double(i) / krylov_dim;
  }
  const auto found = falling.leading();
  ASSERT_TRUE(found);
  EXPECT_LT(falling.columns, krylov_dim / 4);
  const double limit = double(krylov_dim) * std::numeric_limits<double>::epsilon();
  for (Index i = 0; i < count; ++i) {
    const Eigen::VectorXd v = found->vectors.col(i);
    EXPECT_NEAR(found->values(i), falling.lambda(i), limit);
    EXPECT_LE((falling.lambda.asDiagonal() * v - found->values(i) * v).norm(), 2 * limit);
  }
  EXPECT_LE((found->vectors.transpose() * found->vectors - Dense::Identity(count, count)).norm(), limit);
  EXPECT_FALSE(flat.leading());
  EXPECT_LE(flat.columns, krylov_dim / 4);
}

// An eigenvector that is orthogonal to the seeded start, and so to its whole Krylov space up to rounding.
TEST(LeadingPairs, AreNotWithoutALeadingOneThatTheStartDoesNotSee) {
  Block<double> start(krylov_dim, 8);
  Random(0, 3).fill_normal<double>(start);
  // On coordinates of equal variance, so that w stays an eigenvector.
  constexpr Index support = 40;
  Counted target;
  for (Index i = 0; i < krylov_dim; ++i) target.lambda(i) = i < support ? 1e-3 : 1 / double(i - support + 2);
  const Dense seen = start.topRows(support);
  Eigen::VectorXd w = Eigen::VectorXd::Ones(support);
  w -= seen * (seen.transpose() * seen).ldlt().solve(seen.transpose() * w);
  target.w.head(support) = w.normalized();
  ASSERT_TRUE(target.leading()) << "without it";
  target.size = 0.75;  // it would be the first
  const auto found = target.leading();
  ASSERT_TRUE(found);  // rounding is a random direction too, and enters the space as one
  EXPECT_NEAR(found->values(0), 0.751, 1e-12);
}

TEST(LeadingPairs, GiveUpWhereThereIsNothingToFind) {
  Counted nothing;
  EXPECT_FALSE(nothing.leading());
  nothing.lambda.setConstant(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(nothing.leading());
  nothing.lambda.setConstant(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(nothing.leading());
  EXPECT_FALSE(worth_iterating(300, 4));
  EXPECT_FALSE(worth_iterating(2048, 0));
  EXPECT_FALSE(worth_iterating(2048, 500));
  EXPECT_TRUE(worth_iterating(2048, 16));
}

}  // namespace
}  // namespace itspace
