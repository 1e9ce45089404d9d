// SPDX-License-Identifier: Apache-2.0
//
// Moments by batches against those of all samples at once, from the definition in long double.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/moments.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

// A mean of 1e4 with a spread of about 1: sums about zero would lose eight digits of the covariance.
Block<double> samples_far_from_zero(Index n, Index d) {
  Draw draw(7);
  return block<double>(features_with(n, eigenvalues_of(Spectrum::graded, d), 1e4, draw));
}

void expect_moments_of(const MomentAccumulator& found, const Matrix& all) {
  const RealVector mean = weighted_mean(all);
  const RealMatrix factor = centred_factor_of(all);
  const RealMatrix sigma = factor * factor.transpose();
  const Real size = real(all).cwiseAbs().maxCoeff();
  ASSERT_EQ(found.count(), all.rows());
  EXPECT_LT((real(found.mean()) - mean).norm(), 30 * eps<double> * size * all.cols());
  EXPECT_LT((real(found.covariance()) - sigma).norm(),
            30 * eps<double> * Real(all.cols()) * (sigma.norm() + size * std::sqrt(sigma.norm())));
  EXPECT_EQ(found.scatter(), found.scatter().transpose().eval());
}

TEST(Moments, ByBatchesAreThoseOfAllSamples) {
  const Block<double> all = samples_far_from_zero(50, 6);
  for (const std::vector<Index>& cuts : {std::vector<Index>{50}, std::vector<Index>{1, 49},
                                         std::vector<Index>{20, 0, 29, 1}, std::vector<Index>{10, 10, 10, 20}}) {
    MomentAccumulator moments;
    Index first = 0;
    for (const Index count : cuts) {
      moments.update<double>(all.middleRows(first, count));
      first += count;
    }
    expect_moments_of(moments, all);
  }
}

TEST(Moments, MergeInAnyOrder) {
  const Block<double> all = samples_far_from_zero(41, 5);
  MomentAccumulator a, b, c(5), empty;
  a.update<double>(all.topRows(10));
  b.update<double>(all.middleRows(10, 30));
  c.update<double>(all.bottomRows(1));
  MomentAccumulator one = a;
  one.merge(b);
  one.merge(empty);
  one.merge(c);
  expect_moments_of(one, all);
  MomentAccumulator other = empty;
  other.merge(c);
  other.merge(b);
  other.merge(a);
  expect_moments_of(other, all);
  const MomentAccumulator again(other.count(), other.mean(), other.scatter());
  EXPECT_EQ(again.covariance(), other.covariance());
  other.reset();
  EXPECT_EQ(other.count(), 0);
  EXPECT_EQ(other.dim(), 5);
  other.update<double>(all);
  expect_moments_of(other, all);
}

TEST(Moments, FloatBatchesAreSummedInDouble) {
  const Block<float> all = samples_far_from_zero(60, 4).cast<float>();
  MomentAccumulator moments;
  moments.update<float>(all.topRows(30));
  moments.update<float>(all.bottomRows(30));
  expect_moments_of(moments, wide(all));
}

TEST(Moments, ABadBatchChangesNothing) {
  const Block<double> all = samples_far_from_zero(20, 3);
  MomentAccumulator moments;
  expect_throws_naming<std::invalid_argument>({"0 samples", "2"}, [&] { moments.covariance(); });
  moments.update<double>(all);
  Block<double> bad = all;
  bad(4, 1) = std::nan("");
  expect_throws_naming<std::invalid_argument>({"batch[4, 1]"}, [&] { moments.update<double>(bad); });
  expect_throws_naming<std::invalid_argument>({"4 columns", "dim 3"},
                                              [&] { moments.update<double>(Block<double>::Zero(2, 4)); });
  expect_throws_naming<std::invalid_argument>({"dim 3 and 4"}, [&] { moments.merge(MomentAccumulator(4)); });
  expect_throws_naming<std::invalid_argument>({"dim is 0"}, [] { MomentAccumulator(0); });
  expect_moments_of(moments, all);
}

}  // namespace
}  // namespace itspace::test
