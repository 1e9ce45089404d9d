// SPDX-License-Identifier: Apache-2.0
//
// How a run ends: stop rules, numbers that are not finite, promises that are broken; and what it hands back each time:
// the best iterate and the trace up to it.
#include "runs.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace itspace::test {
namespace {

// A dense target that misbehaves from its n-th product on.
class Faulty {
 public:
  Faulty(const Block<double>& sigma, int good_products, double factor)
      : sigma_(sigma), good_products_(good_products), factor_(factor) {}

  Index dim() const { return sigma_.rows(); }
  double trace() const { return sigma_.trace(); }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const {
    out.noalias() = sigma_ * y;
    if (products_++ >= good_products_) out *= factor_;
  }

 private:
  const Block<double>& sigma_;
  int good_products_;
  double factor_;
  mutable int products_ = 0;
};

class Outcome : public ::testing::Test {
 protected:
  const Problem<double> problem_ = make_problem<double>({.dim = 17, .rank = 4, .seed = 1});
  const DenseTarget<double> target_{problem_.sigma};

  // The factor is the iterate that the trace calls best, and no evaluated iterate is better.
  static void expect_best(const Result<double>& result) {
    ASSERT_LT(std::size_t(result.trace.best), result.iterates.size());
    EXPECT_EQ(result.factor, result.iterates[std::size_t(result.trace.best)]);
    const double best = result.trace.steps[std::size_t(result.trace.best)].objective;
    for (const Step& step : result.trace.steps) {
      if (!std::isnan(step.objective)) {
        EXPECT_LE(best, step.objective);
      }
    }
  }
};

TEST_F(Outcome, StepLimit) {
  const auto result = run<double>(target_, problem_.start, 4, StepSize::alpha(0.9));
  EXPECT_EQ(result.status(), Status::step_limit);
  EXPECT_EQ(result.trace.steps.size(), 5u);
  EXPECT_EQ(result.trace.best, 4);
  expect_best(result);
}

TEST_F(Outcome, NoSteps) {
  const auto result = run<double>(target_, problem_.start, 0, StepSize());
  EXPECT_EQ(result.status(), Status::step_limit);
  ASSERT_EQ(result.trace.steps.size(), 1u);
  EXPECT_EQ(result.factor, problem_.start);
  EXPECT_FALSE(result.trace.steps[0].certified.has_value());
  EXPECT_TRUE(std::isnan(result.trace.steps[0].step_squared));
  EXPECT_TRUE(std::isnan(result.trace.steps[0].promised_descent));
  EXPECT_TRUE(std::isnan(result.trace.steps[0].actual_descent));
}

TEST_F(Outcome, ConvergedByTheRelativeDecrease) {
  AlignOptions options;
  options.tolerance = 1e-3;
  const auto result = run<double>(target_, problem_.start, 200, StepSize::alpha(1), options);
  EXPECT_EQ(result.status(), Status::converged);
  const auto& steps = result.trace.steps;
  ASSERT_GT(steps.size(), 2u);
  ASSERT_LT(steps.size(), 201u);
  EXPECT_LE(steps.back().actual_descent, 1e-3 * steps[steps.size() - 2].objective);
  for (std::size_t k = 1; k + 1 < steps.size(); ++k) {
    EXPECT_GT(steps[k].actual_descent, 1e-3 * steps[k - 1].objective);
  }
  expect_best(result);
}

TEST_F(Outcome, ZeroToleranceNeverConverges) {
  const auto result = run<double>(target_, problem_.start, 50, StepSize::alpha(1));
  EXPECT_EQ(result.status(), Status::step_limit);
  EXPECT_EQ(result.trace.steps.size(), 51u);
}

TEST_F(Outcome, StoppedByTheCaller) {
  for (const Index last : {0, 1, 3}) {
    AlignOptions options;
    options.steps = 10;
    options.keep_iterates = true;
    const auto result =
        align_here<double>(target_, problem_.start, options, [last](const Step& step, const ConstBlockView<double>&) {
          return step.index == last ? StepAction::stop : StepAction::proceed;
        });
    EXPECT_EQ(result.status(), Status::stopped);
    EXPECT_EQ(result.trace.steps.size(), std::size_t(last) + 1);
    expect_best(result);
  }
}

TEST_F(Outcome, EveryIterateIsShownOnceInOrderAndComplete) {
  for (const bool evaluate_last : {true, false}) {
    AlignOptions options;
    options.steps = 5;
    options.keep_iterates = true;
    options.evaluate_last = evaluate_last;
    std::vector<Step> seen;
    std::vector<Block<double>> views;
    const auto result =
        align_here<double>(target_, problem_.start, options, [&](const Step& step, const ConstBlockView<double>& y) {
          seen.push_back(step);
          views.emplace_back(y);
          return StepAction::proceed;
        });
    ASSERT_EQ(seen.size(), 6u);
    ASSERT_EQ(result.iterates.size(), 6u);
    EXPECT_EQ(result.iterates[0], problem_.start);
    for (std::size_t k = 0; k < 6; ++k) {
      EXPECT_EQ(seen[k].index, Index(k));
      EXPECT_EQ(views[k], result.iterates[k]);
      EXPECT_EQ(seen[k].certified, result.trace.steps[k].certified);
      EXPECT_EQ(seen[k].passes, result.trace.steps[k].passes);
      if (k < 5 || evaluate_last) {
        EXPECT_EQ(seen[k].objective, result.trace.steps[k].objective);
      }
      if (k > 0) {
        EXPECT_GE(seen[k].seconds, seen[k - 1].seconds);
      }
    }
  }
}

TEST_F(Outcome, IteratesOnlyOnRequest) {
  AlignOptions options;
  options.steps = 3;
  EXPECT_TRUE(align_here<double>(target_, problem_.start, options).iterates.empty());
}

// An exception of the caller's own passes through unharmed.
TEST_F(Outcome, CallbackExceptionsPassThrough) {
  EXPECT_THROW(align_here<double>(
                   target_, problem_.start, {},
                   [](const Step&, const ConstBlockView<double>&) -> StepAction { throw std::out_of_range("mine"); }),
               std::out_of_range);
}

TEST_F(Outcome, NotFiniteEndsWithTheLastGoodIterate) {
  for (const double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const int good : {0, 1, 3}) {
      for (const StepSize& size : {StepSize::alpha(0.9), StepSize::line_search()}) {
        SCOPED_TRACE(std::to_string(poison) + " after " + std::to_string(good));
        const Faulty target(problem_.sigma, good, poison);
        const auto result = run<double>(target, problem_.start, 8, size);
        EXPECT_EQ(result.status(), Status::not_finite);
        EXPECT_TRUE(result.factor.allFinite());
        EXPECT_EQ(result.factor.rows(), 17);
        EXPECT_EQ(result.factor.cols(), 4);
        ASSERT_FALSE(result.trace.steps.empty());
        EXPECT_LT(result.trace.steps.size(), 8u);
        if (good > 1) {
          // Better than the start, by the oracle.
          EXPECT_LT(problem_.oracle.objective(wide(result.factor)), problem_.oracle.objective(wide(problem_.start)));
        }
      }
    }
  }
}

TEST_F(Outcome, NotFiniteInTheMatrixItself) {
  for (const double poison : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    Block<double> sigma = problem_.sigma;
    sigma(3, 5) = sigma(5, 3) = poison;
    const DenseTarget<double> target(sigma);
    const auto result = run<double>(target, problem_.start, 3, StepSize());
    EXPECT_EQ(result.status(), Status::not_finite);
    EXPECT_EQ(result.factor, problem_.start);
  }
}

// A start that is not finite is either refused or ends as not_finite; it is never certified.
TEST_F(Outcome, NotFiniteStart) {
  Block<double> start = problem_.start;
  start(2, 1) = std::numeric_limits<double>::quiet_NaN();
  try {
    const auto result = run<double>(target_, start, 3, StepSize());
    EXPECT_EQ(result.status(), Status::not_finite);
  } catch (const std::invalid_argument&) {
    SUCCEED();
  }
}

// A target that changes under way: the objective jumps, the promise is broken, and the run says so.
TEST_F(Outcome, BrokenPromisesAreReported) {
  const Faulty target(problem_.sigma, 3, 0.01);
  const auto result = run<double>(target, problem_.start, 8, StepSize::alpha(0.9));
  EXPECT_EQ(result.status(), Status::certificate_failed);
  const auto& steps = result.trace.steps;
  bool failed = false;
  for (std::size_t k = 1; k < steps.size(); ++k) failed |= steps[k].certified == false;
  EXPECT_TRUE(failed);
  for (std::size_t k = 1; k < 3; ++k) EXPECT_EQ(steps[k].certified, true);
  EXPECT_LE(result.trace.best, 2);
  expect_best(result);
}

// An operator that is not positive semidefinite is found out from the r x r data, or at the latest by the promise.
TEST_F(Outcome, IndefiniteTargetsAreNotCertified) {
  Block<double> sigma = Block<double>::Identity(6, 6);
  sigma.diagonal().tail(3).setConstant(-1);
  const DenseTarget<double> target(sigma);
  const Block<double> start = Block<double>::Identity(6, 6).rightCols(4);
  const auto result = run<double>(target, start, 4, StepSize::alpha(0.9));
  EXPECT_EQ(result.status(), Status::not_a_covariance);
  EXPECT_NE(result.trace.reason.find("eigenvalue of -1"), std::string::npos) << result.trace.reason;
  EXPECT_FALSE(result.trace.certified());
  EXPECT_TRUE(result.factor.allFinite());
}

TEST_F(Outcome, TraceDescribesTheRun) {
  const auto result = run<double>(target_, problem_.start, 2, StepSize::alpha(0.9));
  EXPECT_EQ(result.trace.dim, 17);
  EXPECT_EQ(result.trace.rank, 4);
  EXPECT_EQ(result.trace.solver, "paper");
  EXPECT_EQ(result.trace.alpha, 0.9);
  EXPECT_EQ(result.trace.precision, "float64");
  EXPECT_GT(result.trace.steps.back().seconds, 0);
  const auto single = make_problem<float>({.dim = 3, .rank = 2});
  const DenseTarget<float> target(single.sigma);
  EXPECT_EQ(run<float>(target, single.start, 1, StepSize()).trace.precision, "float32");
}

TEST(Names, RoundTrip) {
  for (const Status status : {Status::step_limit, Status::converged, Status::stopped, Status::certificate_failed,
                              Status::not_finite, Status::not_a_covariance}) {
    EXPECT_EQ(status_named(name(status)), status);
  }
  EXPECT_EQ(name(Status::certificate_failed), "certificate_failed");
  for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::factor, Route::root}) {
    EXPECT_EQ(route_named(name(route)), route);
  }
  EXPECT_EQ(name(Route::automatic), "auto");
  EXPECT_EQ(route_named("nonsense"), std::nullopt);
  EXPECT_EQ(status_named(""), std::nullopt);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    EXPECT_EQ(solver_named(name(solver)), solver);
  }
  EXPECT_EQ(name(Solver::paper), "paper");
  EXPECT_EQ(name(Solver::ritz), "ritz");
  EXPECT_EQ(solver_named("Ritz"), std::nullopt);
}

}  // namespace
}  // namespace itspace::test
