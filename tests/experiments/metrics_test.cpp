// SPDX-License-Identifier: Apache-2.0
#include "metrics.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace itspace::experiments {
namespace {

// The definition: every pair of a positive and a negative, a tie counting one half.
double by_counting_pairs(const SmallVector& scores, const std::vector<bool>& is_positive) {
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < is_positive.size(); ++i)
    for (std::size_t j = 0; j < is_positive.size(); ++j) {
      if (!is_positive[i] || is_positive[j]) continue;
      const double a = scores[static_cast<Index>(i)], b = scores[static_cast<Index>(j)];
      won += a > b ? 1 : a == b ? 0.5 : 0;
      pairs += 1;
    }
  return 100 * won / pairs;
}

TEST(Auroc, CountsPairsWithAndWithoutTies) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const Random random(seed);
    constexpr Index count = 83;
    SmallVector scores(count);
    std::vector<bool> is_positive(count);
    for (Index i = 0; i < count; ++i) {
      is_positive[static_cast<std::size_t>(i)] = random.uniform(static_cast<std::uint64_t>(i)) < 0.3;
      scores[i] = random.normal(static_cast<std::uint64_t>(1000 + i)) + is_positive[static_cast<std::size_t>(i)];
      if (seed % 2 == 0) scores[i] = std::round(scores[i]);  // many ties
    }
    // Both sums are of multiples of 1/2 below 2^53: only the last division rounds.
    EXPECT_DOUBLE_EQ(auroc(scores, is_positive), by_counting_pairs(scores, is_positive)) << "seed " << seed;
  }
}

TEST(Auroc, IsKnownAtTheEnds) {
  EXPECT_EQ(auroc(SmallVector{{1, 2, 3, 4}}, {false, false, true, true}), 100);
  EXPECT_EQ(auroc(SmallVector{{1, 2, 3, 4}}, {true, true, false, false}), 0);
  EXPECT_EQ(auroc(SmallVector{{7, 7, 7, 7}}, {true, false, true, false}), 50);
}

TEST(Auroc, RefusesWhatHasNoArea) {
  EXPECT_THROW(auroc(SmallVector{{1, 2}}, {true, true}), std::invalid_argument);
  EXPECT_THROW(auroc(SmallVector{{1, 2}}, {false, false}), std::invalid_argument);
  EXPECT_THROW(auroc(SmallVector{{1, 2, 3}}, {false, true}), std::invalid_argument);
  EXPECT_THROW(auroc(SmallVector{{1, std::numeric_limits<double>::quiet_NaN()}}, {false, true}), std::invalid_argument);
}

TEST(Accuracy, IsTheShareOfRightPredictions) {
  EXPECT_EQ(accuracy({1, 2, 3, 4}, {1, 2, 3, 5}), 75);
  EXPECT_EQ(accuracy({-1}, {-1}), 100);
  EXPECT_THROW(accuracy({}, {}), std::invalid_argument);
  EXPECT_THROW(accuracy({1}, {1, 2}), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::experiments
