// SPDX-License-Identifier: Apache-2.0
//
// The drift alarm: how long streams without drift run, and how soon a change is seen. What is random is seeded; the
// bands of run lengths are those of their own sampling noise.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/drift_alarm.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace itspace::test {
namespace {

constexpr Index d = 12, n = 32;

Matrix scaled_normal(Draw& draw, Index rows, Index dim = d) {
  const Vector deviations = eigenvalues_of(Spectrum::power_law, dim).cwiseSqrt();
  return draw.gaussian(rows, dim) * deviations.asDiagonal();
}

DriftOptions options_for(double run_length, std::uint64_t seed = 0) {
  return {.run_length = run_length, .reference_batches = 40, .rank = 4, .seed = seed};
}

// Alarms come one by one, at a mean distance L: of N batches about N/L +- (N/L)^(1/2) raise one. The threshold is
// itself known only up to the noise of its reference, so that the mean is taken over several of them, and a factor of 2
// is what "on average" may mean.
using Sampler = std::function<Matrix(Draw&, Index, Index)>;
void expect_run_length(const DriftOptions& options, const Sampler& sample, Index rows, Index dim, int references,
                       int batches) {
  double alarms = 0;
  for (int i = 0; i < references; ++i) {
    Draw draw(100 + std::uint64_t(i));
    DriftOptions seeded = options;
    seeded.seed = std::uint64_t(i);
    DriftAlarm alarm(seeded);
    while (!alarm.watching()) EXPECT_FALSE(alarm.observe<double>(block<double>(sample(draw, rows, dim))).watching);
    for (int k = 0; k < batches; ++k) alarms += alarm.observe<double>(block<double>(sample(draw, rows, dim))).alarm;
  }
  const double mean_run = references * batches / alarms;
  EXPECT_GT(mean_run, options.run_length / 2);
  EXPECT_LT(mean_run, options.run_length * 2);
}

TEST(DriftAlarm, RunsAsLongAsStated) {
  expect_run_length(options_for(50), scaled_normal, n, d, 12, 1500);
}

// A short reference, of which each half is a sample that is itself off: batches drawn from the second half differ from
// the first by the noise of both, new ones by that of the first alone. Where that is not undone the threshold is too
// high, and alarms are seven times rarer than stated.
TEST(DriftAlarm, RunsAsLongAsStatedAfterAShortReference) {
  expect_run_length({.run_length = 25, .reference_batches = 10, .rank = 16}, scaled_normal, 48, 40, 10, 300);
}

// Heavy tails, one scale for a whole row: t with 5 degrees of freedom. A reference shows few of the samples that lie
// far out; taken as they are, they would raise the alarm several times as often as stated.
TEST(DriftAlarm, RunsAsLongAsStatedWithHeavyTails) {
  const Sampler heavy = [](Draw& draw, Index rows, Index dim) {
    Matrix z = scaled_normal(draw, rows, dim);
    for (Index i = 0; i < rows; ++i) z.row(i) /= std::sqrt(draw.gaussian(5, 1).squaredNorm() / 3);
    return z;
  };
  expect_run_length({.run_length = 50, .reference_batches = 20, .rank = 16}, heavy, 48, 40, 10, 300);
}

int delay_of(const std::function<Matrix(Draw&)>& changed) {
  Draw draw(7);
  DriftAlarm alarm(options_for(500));
  while (!alarm.watching()) alarm.observe<double>(block<double>(scaled_normal(draw, n)));
  for (int k = 1; k <= 100; ++k)
    if (alarm.observe<double>(block<double>(changed(draw))).alarm) return k;
  return 1000;
}

TEST(DriftAlarm, SeesAChangeOfMeanScaleAndCorrelation) {
  EXPECT_LE(delay_of([](Draw& draw) {
              Matrix z = scaled_normal(draw, n);
              z.col(0).array() += 1;
              return z;
            }),
            5);
  EXPECT_LE(delay_of([](Draw& draw) { return Matrix(1.5 * scaled_normal(draw, n)); }), 5);
  EXPECT_LE(delay_of([](Draw& draw) {
              Matrix z = scaled_normal(draw, n);
              z.col(1) = z.col(0) / std::sqrt(2.0);  // the same variances
              return z;
            }),
            5);
  // Outside of the leading directions: only by its energy.
  EXPECT_LE(delay_of([](Draw& draw) {
              Matrix z = scaled_normal(draw, n);
              z.col(d - 1) *= 6;
              return z;
            }),
            10);
}

TEST(DriftAlarm, OtherBatchSizesAndOneSampleAreHeldAgainstTheirOwn) {
  Draw draw(11);
  DriftAlarm alarm(options_for(1000));
  while (!alarm.watching()) alarm.observe<double>(block<double>(scaled_normal(draw, n)));
  int alarms = 0;
  for (int k = 0; k < 300; ++k) {
    const Index rows = k % 3 == 0 ? 1 : k % 3 == 1 ? 7 : 90;
    const DriftReport report = alarm.observe<double>(block<double>(scaled_normal(draw, rows)));
    alarms += report.alarm;
    EXPECT_TRUE(std::isfinite(report.mean_z) && std::isfinite(report.covariance_z));
    EXPECT_TRUE(rows > 1 || report.covariance_z == 0);
  }
  EXPECT_LE(alarms, 3);
}

TEST(DriftAlarm, SameSeedSameBits) {
  std::vector<double> levels[2];
  for (auto& run : levels) {
    Draw draw(13);
    DriftAlarm alarm(options_for(20, 3));
    for (int k = 0; k < 60; ++k)
      run.push_back(alarm.observe<float>(block<float>(scaled_normal(draw, n))).covariance_level);
  }
  EXPECT_EQ(levels[0], levels[1]);
}

TEST(DriftAlarm, ConstantFeaturesAndRepeatedSamples) {
  DriftAlarm constant({.reference_batches = 4});
  for (int k = 0; k < 10; ++k) EXPECT_FALSE(constant.observe<double>(Block<double>::Ones(3, 2)).alarm);
  DriftAlarm relearnt({.reference_batches = 4});
  Draw draw(14);
  while (!relearnt.watching()) relearnt.observe<double>(block<double>(draw.gaussian(5, 2)));
  relearnt.relearn();
  EXPECT_FALSE(relearnt.watching());
  EXPECT_FALSE(relearnt.observe<double>(block<double>(draw.gaussian(5, 3))).watching);  // other features, too
}

TEST(DriftAlarm, ABadBatchChangesNothing) {
  Draw draw(15);
  DriftAlarm alarm({.reference_batches = 4});
  for (int k = 0; k < 6; ++k) {
    const auto counts = alarm.parts().counts;
    Block<double> bad = block<double>(draw.gaussian(5, 3));
    bad(1, 1) = std::nan("");
    expect_throws_naming<std::invalid_argument>({"batch[1, 1]"}, [&] { alarm.observe<double>(bad); });
    expect_throws_naming<std::invalid_argument>({"no rows"}, [&] { alarm.observe<double>(Block<double>(0, 3)); });
    if (k > 0)
      expect_throws_naming<std::invalid_argument>({"4 columns", "dimension 3"},
                                                  [&] { alarm.observe<double>(Block<double>::Zero(5, 4)); });
    EXPECT_EQ(alarm.parts().counts, counts);
    alarm.observe<double>(block<double>(draw.gaussian(5, 3)));
  }
}

}  // namespace
}  // namespace itspace::test
