// SPDX-License-Identifier: Apache-2.0
#include "sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace itspace::experiments {
namespace {

TEST(Sampling, ShufflesEveryIndexOnceAndTheSameWayForASeed) {
  const std::vector<Index> order = shuffled(1000, 7, 3);
  EXPECT_EQ(order, shuffled(1000, 7, 3));
  EXPECT_NE(order, shuffled(1000, 8, 3));
  EXPECT_NE(order, shuffled(1000, 7, 4));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::vector<Index> sorted = order, all(1000);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), Index{0});
  EXPECT_EQ(sorted, all);
}

TEST(Sampling, EveryPlaceIsReachedAboutEquallyOften) {
  // Where index 0 ends up, over 4000 seeds and 8 places: mean 500, standard deviation 21.
  std::vector<int> count(8, 0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const std::vector<Index> order = shuffled(8, seed, 0);
    ++count[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  for (const int times : count) EXPECT_NEAR(times, 500, 5 * 21);
}

TEST(Sampling, KeepsTheShareOfRowsWithoutRepeating) {
  Block<float> rows(50, 2);
  for (Index i = 0; i < 50; ++i) rows.row(i).setConstant(static_cast<float>(i));
  const Block<float> kept = some_rows(rows, 0.8, 1, 0);
  ASSERT_EQ(kept.rows(), 40);
  std::set<float> seen;
  for (Index i = 0; i < kept.rows(); ++i) {
    EXPECT_EQ(kept(i, 0), kept(i, 1));
    seen.insert(kept(i, 0));
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(some_rows(rows, 1, 1, 0).rows(), 50);
  EXPECT_EQ(some_rows(rows, 1e-9, 1, 0).rows(), 2);
}

}  // namespace
}  // namespace itspace::experiments
