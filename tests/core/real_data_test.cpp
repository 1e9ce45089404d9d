// SPDX-License-Identifier: Apache-2.0
//
// Hard real cases: raw (unstandardised) audio and sensor features, whose Gram matrices have condition numbers of 1e14
// and more. They run on the automatic route, certified at every step, in both precisions.
#include "data.hpp"
#include "runs.hpp"

#include <itspace/distance.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

template <class Scalar>
class RealData : public ::testing::Test {
 protected:
  // Every ordered pair of the domains: start at the top r of the source, align to the target's features.
  void check_pairs(const std::string& set, const std::vector<std::string>& domains, const StepSize& size) {
    std::vector<Block<Scalar>> features;
    for (const std::string& domain : domains) features.push_back(load_features<Scalar>(set, domain));
    for (std::size_t s = 0; s < domains.size(); ++s) {
      const auto start = start_from_features<Scalar>(features[s], 16);
      for (std::size_t t = 0; t < domains.size(); ++t) {
        if (s == t) continue;
        SCOPED_TRACE(domains[s] + " -> " + domains[t]);
        check_run(features[t], start, size);
      }
    }
  }

 private:
  void check_run(const Block<Scalar>& features, const Block<Scalar>& start, const StepSize& size) {
    const FeaturesTarget<Scalar> target(features);
    const auto result = run<Scalar>(target, start, 10, size);
    EXPECT_EQ(result.status(), Status::step_limit);
    EXPECT_EQ(result.trace.steps.size(), 11u);
    const Oracle oracle = Oracle::of_factor(centred_factor_of(wide(features)));
    const auto by_factor = target_distance_squared<Scalar>(result.factor, target);
    EXPECT_LE(
        std::abs(by_factor - oracle.objective(wide(result.factor))) / eps_units<Scalar>(oracle, wide(result.factor)),
        descent_limit)
        << "units of target_distance_squared";
    for (std::size_t k = 0; k < result.trace.steps.size(); ++k) {
      const Step& step = result.trace.steps[k];
      const Matrix y = wide(result.iterates[k]);
      const Real unit = eps_units<Scalar>(oracle, y);
      // A line search stays on the operator, which shows less of such a target than its factor does.
      if (size.kind() != StepSize::Kind::line_search) {
        EXPECT_LE(std::abs(step.objective - oracle.objective(y)) / unit, descent_limit)
            << "units at step " << k << ", route " << name(step.route.value()) << ", rank " << step.gram_rank;
      }
      if (k == 0) continue;
      EXPECT_EQ(step.certified, true) << "step " << k << ", route " << name(step.route.value()) << ", alpha "
                                      << step.alpha << ": promised " << step.promised_descent / unit << ", actual "
                                      << step.actual_descent / unit << " units";
    }
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealData, Scalars);

TYPED_TEST(RealData, RawMusicGenre) {
  ITSPACE_NEEDS_DATA("music_genre_mgr58");
  this->check_pairs("music_genre_mgr58", {"dom0", "dom2", "dom4"}, StepSize());
}

TYPED_TEST(RealData, RawMusicGenreByLineSearch) {
  ITSPACE_NEEDS_DATA("music_genre_mgr58");
  this->check_pairs("music_genre_mgr58", {"dom0", "dom2", "dom4"}, StepSize::line_search());
}

TYPED_TEST(RealData, RawGasDrift) {
  ITSPACE_NEEDS_DATA("gas_drift_128");
  this->check_pairs("gas_drift_128", {"batch1", "batch4", "batch5", "batch8"}, StepSize());
}

TYPED_TEST(RealData, RawGasDriftByLineSearch) {
  ITSPACE_NEEDS_DATA("gas_drift_128");
  this->check_pairs("gas_drift_128", {"batch1", "batch4", "batch5", "batch8"}, StepSize::line_search());
}

// n < d: the covariance of 157 samples in 1024 dimensions is singular.
TYPED_TEST(RealData, FewSamplesInManyDimensions) {
  ITSPACE_NEEDS_DATA("office_caltech_googlenet1024");
  this->check_pairs("office_caltech_googlenet1024", {"dslr", "webcam"}, StepSize());
}

}  // namespace
}  // namespace itspace::test
