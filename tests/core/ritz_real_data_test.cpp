// SPDX-License-Identifier: Apache-2.0
//
// Ritz steps on real features, raw and standardised: 40 passes in float32 without a rise beyond rounding, and the gaps
// that the docs quote.
#include "data.hpp"
#include "problems.hpp"

#include <itspace/itspace.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace itspace::test {
namespace {

struct DomainPair {
  const char *set, *from, *to;
};
const std::vector<DomainPair> domain_pairs{
    {"office_caltech_googlenet1024", "amazon", "webcam"},
    {"office_caltech_googlenet1024", "webcam", "dslr"},
    {"office_caltech_surf800", "amazon", "caltech10"},
    {"office_caltech_surf800", "webcam", "amazon"},
    {"gas_drift_128", "batch1", "batch4"},
    {"gas_drift_128", "batch2", "batch9"},
    {"gas_drift_128", "batch3", "batch6"},
    {"gas_drift_128", "batch5", "batch8"},
    {"music_genre_mgr58", "dom0", "dom4"},
    {"music_genre_mgr58", "dom1", "dom3"},
    {"music_genre_mgr58", "dom2", "dom0"},
};

template <Storage Scalar>
void standardise(Block<Scalar>& features) {
  for (Index j = 0; j < features.cols(); ++j) {
    const Eigen::VectorXd column = features.col(j).template cast<double>();
    const double mean = column.mean();
    const double deviation = std::sqrt((column.array() - mean).square().mean());
    features.col(j) = ((column.array() - mean) / (deviation > 0 ? deviation : 1)).template cast<Scalar>().matrix();
  }
}

TEST(RitzRealData, FortyPassesInFloat32NeverRise) {
  for (const DomainPair& pair : domain_pairs) {
    ITSPACE_NEEDS_DATA(pair.set);
    for (const bool standard : {false, true}) {
      auto from = load_features<float>(pair.set, pair.from), to = load_features<float>(pair.set, pair.to);
      if (standard) {
        standardise(from);
        standardise(to);
      }
      const FeaturesTarget<float> target(to);
      const auto start = start_from_features<float>(from, 16);
      const auto result = align<float>(target, start, {.steps = 40, .solver = Solver::ritz});
      SCOPED_TRACE(::testing::Message() << pair.set << " " << pair.from << " -> " << pair.to << " standard "
                                        << standard);
      // At rounding level, where nothing descends any more, a run may end early.
      EXPECT_FALSE(failed(result.status()));
      EXPECT_TRUE(result.trace.certified());
      if (result.status() == Status::step_limit) {
        EXPECT_EQ(result.trace.steps.size(), 41u);
      }
      const double unit =
          10 * double(std::numeric_limits<float>::epsilon()) * (target.trace() + start.cast<double>().squaredNorm());
      double lowest = result.trace.steps.front().objective;
      for (const Step& step : result.trace.steps) {
        EXPECT_LE(step.objective, lowest + unit) << "step " << step.index;
        lowest = std::min(lowest, step.objective);
      }
    }
  }
}

template <Storage Scalar>
double gap_after(const DomainPair& pair, Index steps) {
  const auto to = load_features<Scalar>(pair.set, pair.to);
  const FeaturesTarget<Scalar> target(to);
  const auto start = start_from_features<Scalar>(load_features<Scalar>(pair.set, pair.from), 16);
  const auto spectrum = leading_eigenvalues_of_factor(compact_factor<Scalar>(to), target.dim());
  const double floor = spectrum.tail(spectrum.size() - 16).sum();
  const auto result = align<Scalar>(target, start, {.steps = steps, .solver = Solver::ritz, .guard = 8});
  return gap_r(target_distance_squared<Scalar>(result.factor, target), target_distance_squared<Scalar>(start, target),
               floor);
}

TEST(RitzRealData, GapAfterAFewPasses) {
  for (const DomainPair& pair : {domain_pairs[0], domain_pairs[2]}) {
    ITSPACE_NEEDS_DATA(pair.set);
    EXPECT_LE(gap_after<double>(pair, 2), 0.02) << pair.set;
    EXPECT_LE(gap_after<double>(pair, 3), 1e-3) << pair.set;
    EXPECT_LE(gap_after<double>(pair, 6), 1e-6) << pair.set;
    EXPECT_LE(gap_after<float>(pair, 6), 1e-5) << pair.set;
  }
}

}  // namespace
}  // namespace itspace::test
