// SPDX-License-Identifier: Apache-2.0
//
// A Ritz step is begun before its iterate is certified where blocks live on a device, and after where they do not: the
// runs are the same.
#include "core/align_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/ritz_solver_impl.hpp"

#include <itspace/targets.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace itspace {
namespace {

template <Storage ScalarType>
class AheadSpace : public HostSpace<ScalarType> {
 public:
  static constexpr bool runs_ahead = true;
};

// Diagonal, with a trace and products that a test may spoil, and another covariance from one version to the next.
template <Storage Scalar>
struct Diagonal {
  SmallVector values = SmallVector::LinSpaced(60, -4, 0).array().exp().matrix();
  Index at_version = 0;
  mutable Index passes = 0;
  Index spoilt_from = std::numeric_limits<Index>::max();
  Scalar spoilt_by = 1;

  Index dim() const { return values.size(); }
  double trace() const { return values.sum(); }
  std::uint64_t version() const { return static_cast<std::uint64_t>(at_version); }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
    out = values.cast<Scalar>().asDiagonal() * y;
    if (passes++ >= spoilt_from) out *= spoilt_by;
  }
};

struct Setting {
  AlignOptions options;
  Index stop_at = -1, moves_at = -1;
  Index spoilt_from = std::numeric_limits<Index>::max();
  double spoilt_by = 1;
  double start_size = 1;
};

template <class S>
std::pair<Trace, Block<typename S::Scalar>> run_in(const Setting& setting) {
  using Scalar = typename S::Scalar;
  Diagonal<Scalar> target;
  target.spoilt_from = setting.spoilt_from;
  target.spoilt_by = static_cast<Scalar>(setting.spoilt_by);
  S space;
  RunContext<S> context(space, target);
  Block<Scalar> start(target.dim(), 3);
  Random(2).fill_normal<Scalar>(start);
  start *= static_cast<Scalar>(setting.start_size);
  auto result =
      run_from(context, std::move(start), 3, setting.options, BasicOnStep<S>([&](const Step& step, const auto&) {
                 if (step.index == setting.moves_at) {
                   target.values.reverseInPlace();
                   ++target.at_version;
                 }
                 return step.index == setting.stop_at ? StepAction::stop : StepAction::proceed;
               }));
  return {std::move(result.trace), std::move(result.factor)};
}

template <Storage Scalar>
void expect_the_same(const Setting& setting) {
  const auto [trace, factor] = run_in<HostSpace<Scalar>>(setting);
  const auto [ahead_trace, ahead_factor] = run_in<AheadSpace<Scalar>>(setting);
  EXPECT_EQ(trace.status, ahead_trace.status);
  EXPECT_EQ(trace.reason, ahead_trace.reason);
  EXPECT_EQ(trace.passes_total, ahead_trace.passes_total);
  EXPECT_EQ(trace.best, ahead_trace.best);
  ASSERT_EQ(trace.steps.size(), ahead_trace.steps.size());
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const Step &row = trace.steps[i], &ahead = ahead_trace.steps[i];
    EXPECT_EQ(row.passes, ahead.passes) << i;
    EXPECT_EQ(row.target_version, ahead.target_version) << i;
    EXPECT_EQ(row.certified, ahead.certified) << i;
    if (row.objective == row.objective) {
      EXPECT_EQ(row.objective, ahead.objective) << i;
    }
    if (row.promised_descent == row.promised_descent) {
      EXPECT_EQ(row.promised_descent, ahead.promised_descent) << i;
    }
  }
  EXPECT_EQ(factor, ahead_factor);
}

TEST(RunAhead, ChangesNothing) {
  std::vector<std::pair<const char*, Setting>> settings;
  const auto add = [&](const char* name, auto change) {
    Setting setting;
    setting.options.solver = Solver::ritz;
    setting.options.steps = 7;
    setting.options.guard = 2;
    change(setting);
    settings.emplace_back(name, setting);
  };
  add("to the end", [](Setting&) {});
  add("few steps", [](Setting& s) { s.options.steps = 1; });
  add("no wide polish", [](Setting& s) { s.options.wide_polish = false; });
  add("last one not evaluated", [](Setting& s) { s.options.evaluate_last = false; });
  add("to rounding", [](Setting& s) { s.options.steps = 60; });
  add("tolerance", [](Setting& s) { s.options.steps = 60, s.options.tolerance = 1e-3; });
  add("stopped", [](Setting& s) { s.stop_at = 3; });
  add("another target", [](Setting& s) { s.moves_at = 2; });
  add("another target before the last step", [](Setting& s) { s.moves_at = 6; });
  add("all of the space", [](Setting& s) { s.options.guard = 57, s.options.steps = 4; });
  add("not finite", [](Setting& s) { s.spoilt_from = 3, s.spoilt_by = std::numeric_limits<double>::quiet_NaN(); });
  add("not finite from the first",
      [](Setting& s) { s.spoilt_from = 0, s.spoilt_by = std::numeric_limits<double>::infinity(); });
  add("no covariance", [](Setting& s) { s.spoilt_from = 3, s.spoilt_by = -1; });
  add("other products than before", [](Setting& s) { s.spoilt_from = 3, s.spoilt_by = 0.9; });
  add("a start of zeros", [](Setting& s) { s.start_size = 0; });
  for (const auto& [name, setting] : settings) {
    SCOPED_TRACE(name);
    expect_the_same<float>(setting);
    expect_the_same<double>(setting);
  }
}

}  // namespace
}  // namespace itspace
