// SPDX-License-Identifier: Apache-2.0
//
// The counter-based generator: a pure function of (seed, stream, counter), the same bits on every machine.
#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace itspace::test {
namespace {

TEST(Random, PureFunctionOfSeedStreamAndCounter) {
  const Random a(7, 3), b(7, 3);
  for (const std::uint64_t counter : {0ull, 1ull, 1ull << 40}) {
    EXPECT_EQ(a.bits(counter), b.bits(counter));
    EXPECT_EQ(a.bits(counter), a.bits(counter));
    EXPECT_EQ(a.normal(counter), b.normal(counter));
    EXPECT_EQ(a.uniform(counter), b.uniform(counter));
  }
}

// Pinned: another compiler, another machine, another version of this library must draw the same.
TEST(Random, PinnedValues) {
  EXPECT_EQ(Random(0).bits(0), 0x9ababb68568302b9ull);
  EXPECT_EQ(Random(0).bits(1), 0x82a669cabc948e24ull);
  EXPECT_EQ(Random(42, 7).bits(123456789), 0xf4b5ea27e8f88783ull);
  EXPECT_EQ(Random(0).uniform(0), 0x1.357576d0ad06p-1);
  EXPECT_EQ(Random(42, 7).normal(0), 0x1.c6304ad8b021ep-4);
  EXPECT_EQ(Random(42, 7).normal(1), -0x1.1fd73eda7fbe2p-6);
}

TEST(Random, FillNormalIsRowMajor) {
  const Random random(5);
  Block<double> wide = Block<double>::Constant(4, 7, -99);
  random.fill_normal<double>(wide.leftCols(3));
  Block<float> single(4, 3);
  random.fill_normal<float>(single);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_EQ(wide(i, j), random.normal(std::uint64_t(i * 3 + j)));
      EXPECT_EQ(single(i, j), float(random.normal(std::uint64_t(i * 3 + j))));
    }
    for (Index j = 3; j < 7; ++j) EXPECT_EQ(wide(i, j), -99);
  }
}

// Moments within five standard errors, and tails that are neither cut nor heavy.
TEST(Random, NormalMoments) {
  const int n = 200000;
  const Random random(1);
  double sum = 0, sum2 = 0, sum3 = 0, sum4 = 0;
  int beyond_two = 0, beyond_four = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal(std::uint64_t(i));
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    sum2 += x * x;
    sum3 += x * x * x;
    sum4 += x * x * x * x;
    beyond_two += std::abs(x) > 2;
    beyond_four += std::abs(x) > 4;
  }
  const double error = 5 / std::sqrt(double(n));
  EXPECT_NEAR(sum / n, 0, error);
  EXPECT_NEAR(sum2 / n, 1, error * std::sqrt(2.0));
  EXPECT_NEAR(sum3 / n, 0, error * std::sqrt(15.0));
  EXPECT_NEAR(sum4 / n, 3, error * std::sqrt(96.0));
  EXPECT_NEAR(beyond_two / double(n), 0.0455003, error * 0.21);
  EXPECT_GT(beyond_four, 0);
  EXPECT_LT(beyond_four, 40);  // 12.7 expected
}

TEST(Random, UniformIsOpenAndFlat) {
  const int n = 160000, bins = 16;
  const Random random(2);
  std::vector<int> count(bins);
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform(std::uint64_t(i));
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    ++count[std::size_t(u * bins)];
  }
  double chi_squared = 0;
  for (const int c : count) chi_squared += (c - n / bins) * (c - n / bins) / (double(n) / bins);
  EXPECT_LT(chi_squared, 44.3);  // 15 degrees of freedom, p = 1e-4
}

double correlation(const Random& a, const Random& b, std::uint64_t shift) {
  const int n = 100000;
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a.normal(std::uint64_t(i)) * b.normal(std::uint64_t(i) + shift);
  return sum / n * std::sqrt(double(n));  // in standard errors
}

TEST(Random, StreamsSeedsAndNeighboursAreIndependent) {
  const Random base(3, 0);
  EXPECT_LT(std::abs(correlation(base, Random(3, 1), 0)), 5);
  EXPECT_LT(std::abs(correlation(base, Random(4, 0), 0)), 5);
  EXPECT_LT(std::abs(correlation(base, Random(0, 3), 0)), 5);  // seed and stream are not interchangeable
  EXPECT_LT(std::abs(correlation(base, base, 1)), 5);
  EXPECT_LT(std::abs(correlation(base, base, 2)), 5);
  EXPECT_LT(std::abs(correlation(base, base, 16)), 5);
}

TEST(Random, BitsDoNotRepeatAcrossStreams) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      for (std::uint64_t counter = 0; counter < 100; ++counter) seen.insert(Random(seed, stream).bits(counter));
    }
  }
  EXPECT_EQ(seen.size(), 10000u);
}

// Half of the output bits change when one input bit does.
TEST(Random, Avalanche) {
  for (int bit = 0; bit < 64; ++bit) {
    double flips = 0;
    for (std::uint64_t i = 0; i < 64; ++i) {
      const std::uint64_t counter = i * 0x9e3779b97f4a7c15ull;
      const Random random(9);
      flips += __builtin_popcountll(random.bits(counter) ^ random.bits(counter ^ (1ull << bit)));
    }
    EXPECT_NEAR(flips / (64 * 64), 0.5, 5 * 0.5 / 64) << bit;
  }
}

}  // namespace
}  // namespace itspace::test
