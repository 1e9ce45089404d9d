// SPDX-License-Identifier: Apache-2.0
//
// What a stream promises beyond the contract of every target: one sweep for each product, the same result as with all
// rows in memory in whatever order and pieces they come, and a word for every way a source can fail.
#include <itspace/align.hpp>
#include <itspace/streamed.hpp>
#include <itspace/targets.hpp>

#include "expect_throw.hpp"
#include "held_rows.hpp"
#include "runs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace itspace::test {
namespace {

constexpr std::uint64_t plenty = std::uint64_t(1) << 20;

Block<float> some_features(Index samples, Index dim, double mean) {
  Draw draw(21);
  return block<float>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean, draw));
}

TEST(Streamed, OneSweepForEachProductAndNoneForWhatItGathered) {
  const auto rows = std::make_shared<HeldRows<float>>(some_features(300, 17, 3));
  const StreamedFeatures<float> target(rows, plenty);
  EXPECT_EQ(rows->restarts, 0);
  const auto result = align<float>(target, 4, {.steps = 3});
  EXPECT_EQ(rows->restarts, result.trace.passes_total);
  EXPECT_EQ(target.sweeps(), result.trace.passes_total);
  EXPECT_EQ(target.trace(), result.trace.target_trace);
  EXPECT_EQ(target.samples(), 300);
  EXPECT_EQ(rows->restarts, result.trace.passes_total);
}

TEST(Streamed, MeanAndTraceAreAskedBeforeAnyProduct) {
  const auto rows = std::make_shared<HeldRows<float>>(some_features(41, 5, 3));
  const StreamedFeatures<float> target(rows, plenty);
  const RealMatrix factor = centred_factor_of(wide(rows->values));
  EXPECT_LE(std::abs(target.trace() - factor.squaredNorm()), ratio_limit * eps<double> * factor.squaredNorm());
  EXPECT_LE((real(target.mean()) - weighted_mean(wide(rows->values))).norm(), ratio_limit * eps<double> * 3);
  EXPECT_EQ(rows->restarts, 1);
}

// Float32 with a mean of 10^4 and 10^6 deviations, and rows that are sorted, so that no chunk is like the first: the
// error is that of float32 products of centred rows, whatever the mean.
TEST(Streamed, ALargeMeanAndSortedRowsCostNoDigits) {
  for (const double mean : {1e4, 1e6}) {
    Block<float> z = some_features(600, 9, mean);
    for (Index i = 0; i < z.rows(); ++i) z(i, 0) = static_cast<float>(mean) + 8.0F * static_cast<float>(i);
    const RealMatrix factor = centred_factor_of(wide(z)), sigma = factor * factor.transpose();
    Draw draw(5);
    const Block<float> y = block<float>(draw.gaussian(9, 4));
    Block<float> out(9, 4);
    using Target = StreamedFeatures<float>;
    for (const std::uint64_t memory : {Target::least_memory(9), 4 * Target::least_memory(9), plenty}) {
      const Target target(std::make_shared<HeldRows<float>>(z), memory);
      target.apply(y, out);
      EXPECT_LE((real(out) - sigma * real(y)).norm(), ratio_limit * eps<float> * sigma.norm() * real(y).norm())
          << mean << " in chunks of " << target.chunk_rows();
      EXPECT_LE(std::abs(target.trace() - sigma.trace()), ratio_limit * eps<double> * 600 * sigma.trace());
    }
  }
}

// Runs on a stream and on the features themselves: other sums, the same descent.
TEST(Streamed, AlignsAsTheFeaturesDo) {
  const Block<float> z = some_features(500, 33, 2);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const AlignOptions options{.steps = 4, .solver = solver};
    const auto held = align<double>(FeaturesTarget<double, float>(z), 5, options);
    const StreamedFeatures<double, float> target(std::make_shared<HeldRows<float>>(z), plenty);
    const auto streamed = align<double>(target, 5, options);
    EXPECT_TRUE(streamed.trace.certified());
    ASSERT_EQ(streamed.trace.steps.size(), held.trace.steps.size());
    for (std::size_t k = 0; k < held.trace.steps.size(); ++k)
      EXPECT_LE(std::abs(streamed.trace.steps[k].objective - held.trace.steps[k].objective),
                held.trace.steps[k].resolution + streamed.trace.steps[k].resolution);
  }
}

// The pieces that a source hands out do not matter, only the chunks that are made of them.
TEST(Streamed, TheSameBitsInPiecesOfAnySize) {
  const Block<float> z = some_features(203, 12, 1);
  std::vector<Block<float>> results;
  for (const Index piece : {1, 7, 8, 1000}) {
    const StreamedFeatures<float> target(std::make_shared<HeldRows<float>>(z, piece),
                                         StreamedFeatures<float>::least_memory(12));
    results.push_back(align<float>(target, 3, {.steps = 2}).factor);
    EXPECT_EQ(results.back(), results.front()) << piece;
  }
}

TEST(Streamed, ManyThreadsOneSourceAfterTheOther) {
  const StreamedFeatures<float> target(std::make_shared<HeldRows<float>>(some_features(300, 17, 3)), plenty);
  Draw draw(6);
  const Block<float> y = block<float>(draw.gaussian(17, 3));
  Block<float> expected(17, 3);
  target.apply(y, expected);
  std::atomic<int> equal = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Block<float> out(17, 3);
      target.apply(y, out);
      equal += out == expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 4);
}

TEST(Streamed, TooLittleMemoryIsNamed) {
  const auto rows = std::make_shared<HeldRows<float>>(some_features(20, 100, 0));
  const std::uint64_t least = StreamedFeatures<float>::least_memory(100);
  expect_throws_naming<std::invalid_argument>({std::to_string(least - 1), "8 rows of 100", std::to_string(least)},
                                              [&] { StreamedFeatures<float>(rows, least - 1); });
  EXPECT_EQ(StreamedFeatures<float>(rows, least).chunk_rows(), 8);
}

TEST(Streamed, AValueThatIsNotFiniteIsNamedByRowAndColumn) {
  for (const Index row : {0, 7, 100, 202})
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Block<float> z = some_features(203, 12, 1);
      z(row, 5) = value;
      const StreamedFeatures<float> target(std::make_shared<HeldRows<float>>(z),
                                           StreamedFeatures<float>::least_memory(12));
      expect_throws_naming<std::invalid_argument>({"row " + std::to_string(row) + ",", "column 5", "finite"},
                                                  [&] { align<float>(target, 3); });
    }
}

// A source that fails at some row, in its first sweep or a later one.
struct Failing : HeldRows<float> {
  using HeldRows<float>::HeldRows;
  Index read(BlockView<float> out) override {
    if (restarts == failing_sweep && ++pieces == 3) throw std::runtime_error("the disk is gone");
    return HeldRows<float>::read(out);
  }
  Index failing_sweep = 1, pieces = 0;
};

TEST(Streamed, WhatTheSourceThrowsIsThrown) {
  for (const Index sweep : {1, 3}) {
    const auto rows = std::make_shared<Failing>(some_features(203, 12, 1));
    rows->failing_sweep = sweep;
    const StreamedFeatures<float> target(rows, StreamedFeatures<float>::least_memory(12));
    expect_throws_naming<std::runtime_error>({"the disk is gone"}, [&] { align<float>(target, 3, {.steps = 4}); });
    rows->failing_sweep = 0;
    EXPECT_TRUE(align<float>(target, 3).trace.certified());  // it can be used again
  }
}

// Rows that are not those of the first sweep.
struct Moving : HeldRows<float> {
  using HeldRows<float>::HeldRows;
  void restart() override {
    HeldRows<float>::restart();
    if (restarts == 2) change();
  }
  std::function<void()> change;
};

TEST(Streamed, OtherRowsThanBeforeAreRefused) {
  const auto moving = [](auto change) {
    const auto rows = std::make_shared<Moving>(some_features(203, 12, 1));
    rows->change = [&rows = *rows, change] { change(rows.values); };
    return StreamedFeatures<float>(rows, plenty);
  };
  const auto fewer = moving([](Block<float>& z) { z = Block<float>(z.topRows(100)); });
  expect_throws_naming<std::runtime_error>({"203 rows", "100", "restarted"}, [&] { align<float>(fewer, 3); });
  const auto other = moving([](Block<float>& z) { z(3, 3) += 1; });
  expect_throws_naming<std::runtime_error>({"mean", "restarted"}, [&] { align<float>(other, 3); });
  const auto reversed = moving([](Block<float>& z) { z = Block<float>(z.colwise().reverse()); });
  EXPECT_TRUE(align<float>(reversed, 3).trace.certified());  // the order is nobody's business
}

TEST(Streamed, OneRowIsNotEnough) {
  const StreamedFeatures<float> target(std::make_shared<HeldRows<float>>(some_features(1, 4, 1)), plenty);
  expect_throws_naming<std::invalid_argument>({"1 row", "at least 2"}, [&] { align<float>(target, 2); });
}

}  // namespace
}  // namespace itspace::test
