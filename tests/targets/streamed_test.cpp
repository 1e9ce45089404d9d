// SPDX-License-Identifier: Apache-2.0
//
// What a stream promises beyond the contract of every target: one sweep for each product, the same result as with all
// rows in memory in whatever order and pieces they come, and a word for every way a source can fail.
#include <itspace/align.hpp>
#include <itspace/covariance_bands.hpp>
#include <itspace/streamed.hpp>
#include <itspace/targets.hpp>
#include <itspace/threads.hpp>

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

// The matrix itself, in bands of any width: a sweep for each, all rows once and in their order.
TEST(Streamed, BandsAreTheCovariance) {
  constexpr Index d = 17;
  const auto rows = std::make_shared<HeldRows<float>>(some_features(300, d, 3));
  const RealMatrix factor = centred_factor_of(wide(rows->values)), sigma = factor * factor.transpose();
  for (const Index width : {1, 4, 17, 40}) {
    const StreamedFeatures<double, float> target(rows, plenty);
    Block<double> whole(d, d);
    Index next = 0;
    covariance_bands<double>(target, width, [&](const ConstBlockView<double>& band) {
      EXPECT_EQ(band.rows(), std::min(width, d - next));
      whole.middleRows(next, band.rows()) = band;
      next += band.rows();
    });
    EXPECT_EQ(next, d);
    EXPECT_EQ(target.sweeps(), (d + width - 1) / width);
    EXPECT_LE((real(whole) - sigma).norm(), ratio_limit * eps<double> * sigma.norm()) << width;
  }
  const StreamedFeatures<double, float> target(rows, plenty);
  const auto ignore = [](const ConstBlockView<double>&) {};
  expect_throws_naming<std::invalid_argument>({"0 rows", "at least 1"},
                                              [&] { covariance_bands<double>(target, 0, ignore); });
  EXPECT_THROW(covariance_bands<double>(target, 4, [](const auto&) { throw std::runtime_error("full"); }),
               std::runtime_error);
  EXPECT_EQ(band_rows(d, 0), 1);
  EXPECT_EQ(band_rows(d, 3 * bytes_of_band_row(d) + 1), 3);
  EXPECT_EQ(band_rows(d, plenty), d);
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

// From the definition: the product, and the mean and trace to double.
template <Storage Scalar, Storage Data>
void expect_covariance_of(const Block<Data>& z, const StreamedFeatures<Scalar, Data>& target, Index rank) {
  const RealMatrix factor = centred_factor_of(wide(z)), sigma = factor * factor.transpose();
  Draw draw(5);
  const Block<Scalar> y = block<Scalar>(draw.gaussian(z.cols(), rank));
  Block<Scalar> out(z.cols(), rank);
  for (int sweep = 0; sweep < 2; ++sweep) {  // the first gathers more than the second
    target.apply(y, out);
    EXPECT_LE((real(out) - sigma * real(y)).norm(), ratio_limit * eps<Scalar> * sigma.norm() * real(y).norm());
  }
  EXPECT_LE(std::abs(Real(target.trace()) - sigma.trace()), ratio_limit * eps<double> * sigma.trace());
  const RealVector mean = weighted_mean(wide(z));
  const Real spread = std::sqrt(sigma.trace());
  EXPECT_LE((real(target.mean()) - mean).norm(), ratio_limit * eps<double> * (mean.norm() + spread));
  EXPECT_EQ(target.samples(), z.rows());
}

// Where threads read for themselves: several pieces for each of them, the last one not full, with a large mean and rows
// that are sorted; columns that are one slab and others.
template <Storage Scalar, Storage Data>
void expect_lanes_to_be_right() {
  for (const Index dim : {9, 70})
    for (const Index count : {1, 2, 3})
      for (const Index rank : {1, 16, 20}) {
        Block<Data> z = block<Data>(wide(some_features(7203, dim, 1e4)));
        for (Index i = 0; i < z.rows(); ++i) z(i, 0) = static_cast<Data>(1e4 + 8.0 * static_cast<double>(i));
        const ThreadScope scope(count);
        const auto rows = std::make_shared<RowsAnywhere<Data>>(z);
        const StreamedFeatures<Scalar, Data> target(rows);
        expect_covariance_of<Scalar, Data>(z, target, rank);
        EXPECT_EQ(rows->rows_read, 2 * z.rows()) << "each row once in a sweep, and no sweep by the reader's thread";
        EXPECT_EQ(rows->restarts, 2);
      }
}
TEST(StreamedLanes, AreTheCovariance) {
  expect_lanes_to_be_right<float, float>();
  expect_lanes_to_be_right<double, double>();
  expect_lanes_to_be_right<double, float>();
}

// Values that use all digits of their type, far from the first row, which begins a piece: sums in float would miss the
// means of pieces by what float misses, and products in double with them.
template <Storage Scalar, Storage Data>
void expect_all_digits() {
  constexpr Index dim = 13;
  Block<Data> z = block<Data>(wide(some_features(5003, dim, 0.3)));
  for (Index i = 0; i < z.rows(); i += 128) z.row(i) *= Data(300);
  for (const Index count : {1, 3}) {
    const ThreadScope scope(count);
    expect_covariance_of<Scalar, Data>(z, StreamedFeatures<Scalar, Data>(std::make_shared<RowsAnywhere<Data>>(z)), 4);
  }
}
TEST(StreamedLanes, KeepAllDigits) {
  expect_all_digits<float, float>();
  expect_all_digits<double, double>();
  expect_all_digits<double, float>();
}

// As the reader's thread is: in memory that holds no lanes, and for blocks that are too wide for them.
TEST(StreamedLanes, AreNotForLittleMemoryNorWideBlocks) {
  using Target = StreamedFeatures<float>;
  const Block<float> z = some_features(700, 150, 3);
  const auto rows = std::make_shared<RowsAnywhere<float>>(z);
  expect_covariance_of<float, float>(z, Target(rows, Target::least_memory(150)), 4);
  EXPECT_EQ(rows->rows_read, 0);
  expect_covariance_of<float, float>(z, Target(rows, plenty << 4), 140);
  EXPECT_EQ(rows->rows_read, 0);
}

// However the threads share the processors, and where the pool serves another: bits depend on their number alone.
TEST(StreamedLanes, TheSameBitsWhoeverIsFaster) {
  const ThreadScope scope(3);
  const StreamedFeatures<float> target(std::make_shared<RowsAnywhere<float>>(some_features(9001, 33, 3)));
  Draw draw(6);
  const Block<float> y = block<float>(draw.gaussian(33, 5));
  Block<float> expected(33, 5);
  target.apply(y, expected);
  std::atomic<int> equal = 0;
  std::vector<std::thread> others;
  for (int t = 0; t < 4; ++t)
    others.emplace_back(
        [&, own = StreamedFeatures<float>(std::make_shared<RowsAnywhere<float>>(some_features(9001, 33, 3)))] {
          const ThreadScope three(3);
          Block<float> out(33, 5);
          for (int turn = 0; turn < 8; ++turn) {
            own.apply(y, out);
            equal += out == expected;
          }
        });
  for (std::thread& other : others) other.join();
  EXPECT_EQ(equal, 32);
}

// Of two values that are not finite the first is named, whichever thread meets its own first.
TEST(StreamedLanes, TheFirstBadValueIsNamed) {
  Block<float> z = some_features(9001, 33, 3);
  z(8000, 3) = std::numeric_limits<float>::infinity();
  z(5100, 7) = std::numeric_limits<float>::quiet_NaN();
  z(6900, 1) = std::numeric_limits<float>::quiet_NaN();
  for (const Index count : {1, 2, 3, 4}) {
    const ThreadScope scope(count);
    const StreamedFeatures<float> target(std::make_shared<RowsAnywhere<float>>(z));
    for (int turn = 0; turn < 5; ++turn)
      expect_throws_naming<std::invalid_argument>({"row 5100,", "column 7", "nan", "finite"}, [&] { target.trace(); });
  }
}

// Sums of these are out of float's range, the values are not; their mean is 0.
TEST(StreamedLanes, LargeValuesAreNotTakenForInfinity) {
  Block<float> z = some_features(64, 3, 0);
  for (Index i = 0; i < z.rows(); ++i) z(i, 1) = (i % 2 == 0 ? 1.0F : -1.0F) * 1e38F;
  const StreamedFeatures<float> target(std::make_shared<RowsAnywhere<float>>(z));
  EXPECT_NEAR(target.trace(), 1e76 * 64 / 63, 1e70);
  const Block<float> y = Block<float>::Zero(3, 1);
  Block<float> out(3, 1);
  target.apply(y, out);  // no word of values that are not finite
}

TEST(StreamedLanes, WhatTheSourceThrowsIsThrownAndItGoesOn) {
  struct Broken : RowsAnywhere<float> {
    using RowsAnywhere<float>::RowsAnywhere;
    void read_at(Index first, BlockView<float> out) override {
      if (broken && first <= 5000 && 5000 < first + out.rows()) throw std::runtime_error("the disk is gone");
      RowsAnywhere<float>::read_at(first, out);
    }
    std::atomic<bool> broken = true;
  };
  const ThreadScope scope(2);
  const auto rows = std::make_shared<Broken>(some_features(9001, 33, 3));
  const StreamedFeatures<float> target(rows);
  expect_throws_naming<std::runtime_error>({"the disk is gone"}, [&] { align<float>(target, 3); });
  rows->broken = false;
  EXPECT_TRUE(align<float>(target, 3).trace.certified());
}

TEST(StreamedLanes, OtherRowsThanBeforeAreRefused) {
  const auto rows = std::make_shared<RowsAnywhere<float>>(some_features(2001, 33, 3));
  const StreamedFeatures<float> target(rows);
  EXPECT_GT(target.trace(), 0);
  rows->values(3, 3) += 100;
  expect_throws_naming<std::runtime_error>({"mean", "restarted"}, [&] { align<float>(target, 3); });
}

TEST(Streamed, OneRowIsNotEnough) {
  const StreamedFeatures<float> target(std::make_shared<HeldRows<float>>(some_features(1, 4, 1)), plenty);
  expect_throws_naming<std::invalid_argument>({"1 row", "at least 2"}, [&] { align<float>(target, 2); });
}

}  // namespace
}  // namespace itspace::test
