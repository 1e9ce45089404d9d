// SPDX-License-Identifier: Apache-2.0
//
// Complexity: what a run costs is products with Sigma, and they are counted where they
// are made. K steps and the objective of the last
// iterate are K + 1 passes, K without it; a random start is one more, and so is a completion.
#include "runs.hpp"

#include <itspace/covariance.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

// A dense target that counts, and insists that its trace is asked only after the first product.
class Counting {
 public:
  explicit Counting(const Block<double>& sigma) : sigma_(sigma) {}

  Index dim() const { return sigma_.rows(); }
  double trace() const {
    EXPECT_GT(passes_, 0) << "trace() was asked before the first apply()";
    return sigma_.trace();
  }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const {
    ++passes_;
    columns_ += y.cols();
    out.noalias() = sigma_ * y;
  }

  Index passes() const { return passes_; }
  Index columns() const { return columns_; }

 private:
  const Block<double>& sigma_;

 protected:
  mutable Index passes_ = 0, columns_ = 0;
};

// The same with a factor.
class CountingFactored : public Counting {
 public:
  CountingFactored(const Block<double>& sigma, const Block<double>& factor) : Counting(sigma), factor_(factor) {}

  Index factor_cols() const { return factor_.cols(); }
  void apply_factor_transposed(const ConstBlockView<double>& in, BlockView<double> out) const {
    ++passes_;
    out.noalias() = factor_.transpose() * in;
  }
  void apply_factor(const ConstBlockView<double>& in, BlockView<double> out) const {
    ++passes_;
    out.noalias() = factor_ * in;
  }

 private:
  const Block<double>& factor_;
};

class Passes : public ::testing::Test {
 protected:
  const Problem<double> problem_ = make_problem<double>({.dim = 17, .rank = 4, .seed = 1});
};

TEST_F(Passes, OnePerStepAndOneForTheLastObjective) {
  for (const Index steps : {0, 1, 2, 7}) {
    for (const StepSize& size : {StepSize(), StepSize::alpha(0.9), StepSize::line_search()}) {
      for (const Route route : {Route::automatic, Route::qr, Route::gram}) {
        SCOPED_TRACE(std::to_string(steps) + " " + std::string(name(route)));
        const Counting target(problem_.sigma);
        AlignOptions options;
        options.route = route;
        const auto result = run<double>(target, problem_.start, steps, size, options);
        EXPECT_EQ(target.passes(), steps + 1);
        EXPECT_EQ(result.trace.passes_total, steps + 1);
        ASSERT_EQ(result.trace.steps.size(), std::size_t(steps) + 1);
        EXPECT_EQ(target.columns(), (steps + 1) * 4);
      }
    }
  }
}

TEST_F(Passes, PassesOfEachIterate) {
  const Counting target(problem_.sigma);
  const auto result = run<double>(target, problem_.start, 5, StepSize::alpha(0.9));
  for (Index k = 0; k <= 5; ++k) EXPECT_EQ(result.trace.steps[std::size_t(k)].passes, k);
}

TEST_F(Passes, TheLastObjectiveCanBeSwitchedOff) {
  for (const Index steps : {1, 2, 7}) {
    const Counting target(problem_.sigma);
    AlignOptions options;
    options.evaluate_last = false;
    const auto result = run<double>(target, problem_.start, steps, StepSize::alpha(0.9), options);
    EXPECT_EQ(target.passes(), steps);
    EXPECT_EQ(result.trace.passes_total, steps);
  }
}

TEST_F(Passes, ARandomStartIsOneMore) {
  for (const Index steps : {0, 1, 5}) {
    const Counting target(problem_.sigma);
    AlignOptions options;
    options.steps = steps;
    const auto result = align_here<double>(target, 4, options);
    EXPECT_EQ(target.passes(), steps + 2);
    EXPECT_EQ(result.trace.passes_total, steps + 2);
    for (Index k = 0; k <= steps; ++k) EXPECT_EQ(result.trace.steps[std::size_t(k)].passes, k + 1);
  }
}

TEST_F(Passes, ACompletionIsOneMoreWhereItHappens) {
  Block<double> start = problem_.start;
  start.col(1).setZero();
  const Counting target(problem_.sigma);
  const auto result = run<double>(target, start, 3, StepSize::alpha(0.9));
  EXPECT_EQ(result.trace.passes_total, 5);
  EXPECT_EQ(target.passes(), 5);
  EXPECT_LE(target.columns(), 4 * 4 + 1 + 8);  // and it is narrow: one direction to fill, eight more to draw well
  EXPECT_EQ(result.trace.steps[1].passes, 2);

  const Counting plain(problem_.sigma);
  AlignOptions options;
  options.completion = false;
  EXPECT_EQ(run<double>(plain, start, 3, StepSize::alpha(0.9), options).trace.passes_total, 4);
  EXPECT_EQ(plain.passes(), 4);
}

TEST_F(Passes, TheProbeIsFree) {
  const Counting target(problem_.sigma);
  AlignOptions options;
  options.probe = true;
  const auto result = run<double>(target, problem_.start, 4, StepSize::alpha(0.9), options);
  EXPECT_EQ(target.passes(), 5);
  EXPECT_EQ(result.trace.passes_total, 5);
  EXPECT_LE(target.columns(), 5 * 5);  // one column beside Y
}

TEST_F(Passes, StoppingEarlySavesThem) {
  const Counting target(problem_.sigma);
  AlignOptions options;
  options.steps = 10;
  const auto result =
      align_here<double>(target, problem_.start, options, [](const Step& step, const ConstBlockView<double>&) {
        return step.index == 3 ? StepAction::stop : StepAction::proceed;
      });
  EXPECT_EQ(target.passes(), 4);
  EXPECT_EQ(result.trace.passes_total, 4);
}

// Whatever happens in a run, the trace counts the calls that the target saw: on every route, with every solver and step
// size, from starts that need completion, a better route or nothing at all.
TEST_F(Passes, TheTraceCountsTheCallsOfTheTarget) {
  const Index d = 17, r = 4;
  std::vector<Block<double>> starts{problem_.start, Block<double>::Zero(d, r), problem_.start, problem_.start,
                                    1e-9 * problem_.start};
  starts[2].col(1).setZero();
  starts[3].col(2) = starts[3].col(0);
  const std::vector<Block<double>> covariances{
      problem_.sigma, Block<double>::Zero(d, d),
      make_problem<double>({.dim = d, .rank = r, .seed = 3, .spectrum = Spectrum::rank_deficient}).sigma};
  for (std::size_t c = 0; c < covariances.size(); ++c) {
    const Block<double> factor = truncate<double>(covariances[c], d);
    for (std::size_t s = 0; s < starts.size(); ++s) {
      for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::factor, Route::root}) {
        for (const Index variant : {0, 1, 2, 3, 4, 5}) {
          AlignOptions options;
          options.steps = variant == 5 ? 0 : 4;
          options.route = route;
          options.evaluate_last = variant != 1;
          if (variant == 2) options.step_size = StepSize::line_search();
          if (variant == 3) options.probe = true;
          if (variant == 4) options.solver = Solver::ritz;
          const bool by_factor = route == Route::factor || route == Route::root;
          if ((variant == 3 && by_factor) || (variant == 4 && (by_factor || route == Route::gram))) continue;
          SCOPED_TRACE("covariance " + std::to_string(c) + " start " + std::to_string(s) + " variant " +
                       std::to_string(variant) + " " + std::string(name(route)));
          const CountingFactored factored(covariances[c], factor);
          const Index counted = align_here<double>(factored, starts[s], options).trace.passes_total;
          EXPECT_EQ(counted, factored.passes());
          if (route == Route::factor) continue;
          const Counting plain(covariances[c]);
          const Trace trace = align_here<double>(plain, starts[s], options).trace;
          EXPECT_EQ(trace.passes_total, plain.passes());
          for (std::size_t k = 1; k < trace.steps.size(); ++k)
            EXPECT_LE(trace.steps[k - 1].passes, trace.steps[k].passes);
          const Counting drawn(covariances[c]);
          const Index from_drawn = align_here<double>(drawn, r, options).trace.passes_total;
          EXPECT_EQ(from_drawn, drawn.passes());
        }
      }
    }
  }
}

// T'Q and T P: both are sweeps over the data.
TEST_F(Passes, TheFactorRouteSweepsTwice) {
  const Block<double> factor = truncate<double>(problem_.sigma, 17);
  const CountingFactored target(problem_.sigma, factor);
  AlignOptions options;
  options.route = Route::factor;
  const auto result = run<double>(target, problem_.start, 3, StepSize::alpha(0.9), options);
  for (Index k = 0; k <= 3; ++k) EXPECT_EQ(result.trace.steps[std::size_t(k)].passes, 2 * k);
  EXPECT_EQ(result.trace.passes_total, 7);
}

}  // namespace
}  // namespace itspace::test
