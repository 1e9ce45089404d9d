// SPDX-License-Identifier: Apache-2.0
//
// Misuse of align and of its options throws std::invalid_argument that names the value and the limit.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/start.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace itspace::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

template <class Call>
void expect_misuse(std::initializer_list<std::string> parts, Call&& call) {
  expect_throws_naming<std::invalid_argument>(parts, std::forward<Call>(call));
}

class Misuse : public ::testing::Test {
 protected:
  const Problem<double> problem_ = make_problem<double>({.dim = 7, .rank = 3, .seed = 1});
  const DenseTarget<double> target_{problem_.sigma};

  void align_with(const AlignOptions& options) { align<double>(target_, problem_.start, options); }
};

TEST_F(Misuse, AlphaOutsideZeroTwo) {
  expect_misuse({"0", "2"}, [] { StepSize::alpha(0); });
  expect_misuse({"2"}, [] { StepSize::alpha(2); });
  expect_misuse({"-0.5", "2"}, [] { StepSize::alpha(-0.5); });
  expect_misuse({"2.5", "2"}, [] { StepSize::alpha(2.5); });
  expect_misuse({"nan"}, [] { StepSize::alpha(nan); });
  expect_misuse({"inf"}, [] { StepSize::alpha(inf); });
}

TEST_F(Misuse, LambdaNotPositive) {
  expect_misuse({"0"}, [] { StepSize::lambda(0); });
  expect_misuse({"-3", "positive"}, [] { StepSize::lambda(-3); });
  expect_misuse({"nan"}, [] { StepSize::lambda(nan); });
  expect_misuse({"inf"}, [] { StepSize::lambda(inf); });
}

// alpha = 2 lambda/(1 + 2 lambda) rises from 0 to 1 with lambda, over all of its range.
TEST_F(Misuse, EveryLambdaHasAnAlpha) {
  double last = 0;
  for (int exponent = -1074; exponent <= 1023; ++exponent) {
    const double lambda = std::ldexp(1.0, exponent), alpha = StepSize::lambda(lambda).resolve(3);
    const long double expected = 2 * static_cast<long double>(lambda) / (1 + 2 * static_cast<long double>(lambda));
    ASSERT_GE(alpha, last) << lambda;
    ASSERT_LE(alpha, 1) << lambda;
    ASSERT_LE(std::abs(alpha - expected), 2 * std::numeric_limits<double>::epsilon() * expected) << lambda;
    last = alpha;
  }
  EXPECT_EQ(StepSize::lambda(std::numeric_limits<double>::max()).resolve(1), 1);
}

TEST_F(Misuse, NegativeSteps) {
  expect_misuse({"-1", "0"}, [&] { align_with({.steps = -1}); });
}

TEST_F(Misuse, NegativeTolerance) {
  AlignOptions options;
  options.tolerance = -0.25;
  expect_misuse({"-0.25", "0"}, [&] { align_with(options); });
  options.tolerance = nan;
  expect_misuse({"nan"}, [&] { align_with(options); });
}

TEST_F(Misuse, NegativeGramRegularization) {
  AlignOptions options;
  options.route = Route::gram;
  options.gram_regularization = -0.125;
  expect_misuse({"-0.125", "0"}, [&] { align_with(options); });
  options.gram_regularization = inf;
  expect_misuse({"inf"}, [&] { align_with(options); });
}

TEST_F(Misuse, StartOfAnotherDimension) {
  const Block<double> start = Block<double>::Ones(5, 2);
  expect_misuse({"5", "7"}, [&] { align<double>(target_, start); });
}

TEST_F(Misuse, StartWithoutColumns) {
  const Block<double> start(7, 0);
  expect_misuse({"0"}, [&] { align<double>(target_, start); });
}

TEST_F(Misuse, RankOutsideOneToD) {
  expect_misuse({"0", "7"}, [&] { align<double>(target_, 0); });
  expect_misuse({"-2", "7"}, [&] { align<double>(target_, -2); });
  expect_misuse({"8", "7"}, [&] { align<double>(target_, 8); });
  expect_misuse({"0", "7"}, [&] { random_start<double>(target_, 0); });
  expect_misuse({"8", "7"}, [&] { random_start<double>(target_, 8); });
}

TEST_F(Misuse, FactorRouteWithoutAFactor) {
  AlignOptions options;
  options.route = Route::factor;
  expect_misuse({"factor"}, [&] { align_with(options); });
}

// Nothing of the target is touched before the options are in order.
TEST_F(Misuse, IsFoundBeforeAnyWork) {
  struct Untouchable {
    Index dim() const { return 7; }
    double trace() const { throw std::logic_error("asked for the trace"); }
    void apply(const ConstBlockView<double>&, BlockView<double>) const { throw std::logic_error("applied"); }
  };
  const Untouchable target;
  expect_misuse({"-1"}, [&] { align<double>(target, problem_.start, {.steps = -1}); });
  expect_misuse({"9"}, [&] { align<double>(target, 9); });
}

}  // namespace
}  // namespace itspace::test
