// SPDX-License-Identifier: Apache-2.0
//
// The explained-variance rule, and a start from any target.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/rank.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

TEST(RankExplaining, TakesTheLeastThatIsEnough) {
  const Vector lambda = (Vector(4) << 60, 30, 6, 4).finished();
  EXPECT_EQ(rank_explaining(lambda, 100, 0.5), 1);
  EXPECT_EQ(rank_explaining(lambda, 100, 0.6), 1);
  EXPECT_EQ(rank_explaining(lambda, 100, 0.601), 2);
  EXPECT_EQ(rank_explaining(lambda, 100, 0.95), 3);
  EXPECT_EQ(rank_explaining(lambda, 100, 1), 4);
  EXPECT_EQ(rank_explaining(Vector(Vector::Zero(4)), 0, 0.95), 1);
  for (const double share : {0.0, -1.0, 1.5, std::nan("")})
    expect_throws_naming<std::invalid_argument>({"share"}, [&] { rank_explaining(lambda, 100, share); });
}

TEST(EffectiveRank, CountsTheDirectionsThatCarryTheVariance) {
  // Squares beyond the largest number, or below the smallest, are no trouble where their ratio is none.
  for (const double scale : {1.0, 1e200, 1e-200}) {
    EXPECT_NEAR(effective_rank(scale * Vector::Ones(5), 5 * scale).participation_ratio, 5, 1e-12);
    EXPECT_NEAR(effective_rank(scale * Vector::Ones(5), 5 * scale).intrinsic_dimension, 5, 1e-12);
    const Vector lambda = scale * (Vector(3) << 4, 2, 0).finished();
    EXPECT_NEAR(effective_rank(lambda, 6 * scale).participation_ratio, 36.0 / 20, 1e-12);
    EXPECT_NEAR(effective_rank(lambda, 6 * scale).intrinsic_dimension, 1.5, 1e-12);
  }
  EXPECT_EQ(effective_rank(Vector::Zero(3), 0).participation_ratio, 0);
  EXPECT_EQ(effective_rank(Vector::Zero(3), 0).intrinsic_dimension, 0);
  EXPECT_EQ(effective_rank(Vector(), 0).intrinsic_dimension, 0);
}

// Small dimensions by all eigenvalues; above 1024 by Ritz values, which may take a little more than the least.
TEST(RankExplaining, OfATarget) {
  for (const Index dim : {1, 3, 17, 60}) {
    for (const Spectrum spectrum : all_spectra) {
      const auto p = make_problem<double>({.dim = dim, .rank = 1, .seed = 3, .spectrum = spectrum});
      const Vector lambda = eigenvalues_of(spectrum, dim);
      for (const double share : {0.5, 0.9, 0.95}) {
        const DenseTarget<double> target(p.sigma);
        EXPECT_EQ(rank_explaining<double>(target, share), rank_explaining(lambda, lambda.sum(), share));
      }
    }
  }
  const Index dim = 1500;
  Vector lambda(dim);
  for (Index i = 0; i < dim; ++i) lambda(i) = std::exp(-0.05 * double(i));
  const LowRankDiagonalTarget<double> target(Block<double>(Block<double>::Zero(dim, 1)), Vector::Zero(1), lambda);
  const Index least = rank_explaining(lambda, lambda.sum(), 0.95);
  const Index found = rank_explaining<double>(target, 0.95, 1);
  EXPECT_GE(found, least);
  EXPECT_LE(found, least + 3);
}

TEST(StartFromTarget, IsTheTruncationWhateverTheTarget) {
  Draw draw(11);
  const Block<double> narrow = block<double>(draw.gaussian(9, 4)), broad = block<double>(draw.gaussian(9, 20));
  const Block<double> sigma = block<double>(covariance_from(wide(broad)));
  const auto expect_truncation = [](const TargetArgument<double>& target, const Matrix& covariance, Index rank) {
    const Block<double> y = start_from_target<double>(target, rank);
    const Block<double> best = truncate<double>(block<double>(covariance), rank);
    EXPECT_LT((wide(y) * wide(y).transpose() - wide(best) * wide(best).transpose()).norm(), 1e-12 * covariance.norm());
  };
  expect_truncation(DenseTarget<double>(sigma), wide(sigma), 3);
  expect_truncation(FactorTarget<double>(broad), wide(sigma), 3);
  expect_truncation(FactorTarget<double>(narrow), covariance_from(wide(narrow)), 2);
  expect_truncation(FactorTarget<double>(narrow), covariance_from(wide(narrow)), 6);  // more than its rank
  const LowRankDiagonalTarget<double> diagonal(narrow, Vector::Ones(4), 0.5);
  expect_truncation(diagonal, covariance_from(wide(narrow)) + 0.5 * Matrix::Identity(9, 9), 3);
}

}  // namespace
}  // namespace itspace::test
