// SPDX-License-Identifier: Apache-2.0
//
// The baselines do what they are named for: they reach the floor, they count their passes, what they say of themselves
// is true, and warm starts help. A comparison against a broken competitor would be worth nothing.
#include "baselines/baselines.hpp"
#include "problems.hpp"

#include <itspace/targets.hpp>

#include <itspace/distance.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <functional>
#include <vector>

namespace itspace::test {
namespace {

struct Counting {
  const DenseTarget<double>& base;
  mutable Index applies = 0;
  Index dim() const { return base.dim(); }
  double trace() const { return base.trace(); }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const {
    ++applies;
    base.apply(y, out);
  }
};

struct Named {
  const char* name;
  Result<double> (*run)(TargetRef<double>, Index, const Block<double>*, const baselines::Options&);
  bool nystrom;
};
const std::vector<Named> block_methods{
    {"randomized_svd", baselines::randomized_svd, false},
    {"lobpcg", baselines::lobpcg, false},
    {"block_krylov", baselines::block_krylov, false},
    {"block_krylov, Nystrom", baselines::block_krylov, true},
};

TEST(Baselines, ReachTheFloorAndCountTheirPasses) {
  const auto p = make_problem<double>({.dim = 100, .rank = 4, .seed = 2});
  const DenseTarget<double> dense(p.sigma);
  const double floor = double(p.oracle.floor(4)), first = double(p.oracle.objective(p.start));
  for (const Named& method : block_methods) {
    for (const Block<double>* start : {static_cast<const Block<double>*>(nullptr), &p.start}) {
      SCOPED_TRACE(::testing::Message() << method.name << (start ? ", warm" : ", cold"));
      const Counting target{dense};
      const auto result = method.run(target, 4, start, {.passes = 6, .nystrom = method.nystrom});
      EXPECT_EQ(target.applies, result.trace.passes_total);
      EXPECT_EQ(result.trace.passes_total, 6);
      const double last = double(p.oracle.objective(result.factor));
      EXPECT_LT((last - floor) / (first - floor), 0.05);
      for (std::size_t i = 0; i < result.iterates.size(); ++i) {
        const double objective = double(p.oracle.objective(result.iterates[i]));
        EXPECT_GE(objective, floor - 1e-12 * first);
        if (!method.nystrom) {
          EXPECT_NEAR(result.trace.steps[i].objective, objective, 1e-10 * first);
        }
      }
    }
  }
}

// One direction of variance 1, the others from 1e-8 down: raw features of unequal scales. What rounding leaves of the
// small ones must not pass for variance, however many passes there are.
TEST(Baselines, DoNotGetWorseOnBadlyScaledSpectra) {
  Vector lambda(100);
  for (Index i = 0; i < 100; ++i) lambda(i) = i == 0 ? 1.0 : 1e-8 * std::pow(0.8, double(i));
  Draw draw(3);
  const Matrix factor = factor_with_spectrum(lambda, draw);
  const Block<double> sigma = block<double>(covariance_from(factor));
  const DenseTarget<double> target(sigma);
  const double floor = lambda.tail(100 - 8).sum();
  for (const Named& method : block_methods) {
    SCOPED_TRACE(method.name);
    const auto result = method.run(target, 8, nullptr, {.passes = 10, .nystrom = method.nystrom});
    const double last = target_distance_squared<double>(result.factor, target);
    EXPECT_LE(std::abs(last - floor), 100 * eps<double>);
  }
}

#ifdef ITSPACE_HAS_SPECTRA
TEST(Baselines, LanczosFindsTheLeadingPart) {
  const auto p = make_problem<double>({.dim = 100, .rank = 4, .seed = 2});
  const DenseTarget<double> dense(p.sigma);
  const Counting target{dense};
  const auto result = baselines::lanczos(target, 4, &p.start, 1e-10, 1000, {});
  EXPECT_EQ(target.applies, result.trace.passes_total);
  EXPECT_NEAR(double(p.oracle.objective(result.factor)), double(p.oracle.floor(4)), 1e-9 * double(p.oracle.trace()));
}
#endif

}  // namespace
}  // namespace itspace::test
