// SPDX-License-Identifier: Apache-2.0
//
// align is re-entrant: threads that share a target get the bits that one thread gets alone. An executable of its own,
// which CI also runs under ThreadSanitizer.
#include "runs.hpp"

#include <itspace/distance.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace itspace::test {
namespace {

constexpr std::size_t threads = 8;

// The same call on every thread at once, and once alone.
template <Storage Scalar>
void expect_same_everywhere(const std::function<Block<Scalar>()>& call) {
  const Block<Scalar> alone = call();
  std::vector<Block<Scalar>> results(threads);
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < threads; ++i) workers.emplace_back([&, i] { results[i] = call(); });
  }
  for (const auto& result : results) EXPECT_EQ(result, alone);
}

template <class Scalar>
class Concurrency : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Concurrency, Scalars);

TYPED_TEST(Concurrency, DenseTarget) {
  const auto p = make_problem<TypeParam>({.dim = 64, .rank = 6, .seed = 1});
  const DenseTarget<TypeParam> target(p.sigma);
  for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::root}) {
    for (const StepSize& size : {StepSize(), StepSize::line_search()}) {
      AlignOptions options;
      options.route = route;
      expect_same_everywhere<TypeParam>([&] { return run<TypeParam>(target, p.start, 4, size, options).factor; });
    }
  }
}

TYPED_TEST(Concurrency, FeaturesTarget) {
  Draw draw(2);
  const Vector lambda = eigenvalues_of(Spectrum::power_law, 48);
  const Block<TypeParam> features = block<TypeParam>(features_with(150, lambda, 10, draw));
  const FeaturesTarget<TypeParam> target(features);
  const auto start = start_from_features<TypeParam>(features, 5);
  for (const Route route : {Route::automatic, Route::factor}) {
    AlignOptions options;
    options.route = route;
    expect_same_everywhere<TypeParam>([&] { return run<TypeParam>(target, start, 4, StepSize(), options).factor; });
  }
}

// Everything that is drawn is drawn from the seed, not from a shared state.
TYPED_TEST(Concurrency, RandomStartsCompletionAndProbe) {
  const auto p = make_problem<TypeParam>({.dim = 64, .rank = 6, .seed = 3});
  const DenseTarget<TypeParam> base(p.sigma);
  const ShiftedTarget<TypeParam> target(base, 0.01);
  const Block<TypeParam> zero = Block<TypeParam>::Zero(64, 6);
  AlignOptions options;
  options.seed = 7;
  options.probe = true;
  expect_same_everywhere<TypeParam>([&] { return align<TypeParam>(target, 6, options).factor; });
  expect_same_everywhere<TypeParam>([&] { return align<TypeParam>(target, zero, options).factor; });
}

// Threads with problems of their own do not meet.
TYPED_TEST(Concurrency, DifferentProblems) {
  std::vector<Problem<TypeParam>> problems;
  for (std::size_t i = 0; i < threads; ++i) {
    problems.push_back(make_problem<TypeParam>({.dim = Index(20 + i), .rank = Index(1 + i), .seed = i}));
  }
  const auto solve = [](const Problem<TypeParam>& p) {
    const DenseTarget<TypeParam> target(p.sigma);
    return run<TypeParam>(target, p.start, 5, StepSize()).factor;
  };
  std::vector<Block<TypeParam>> results(threads);
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < threads; ++i) workers.emplace_back([&, i] { results[i] = solve(problems[i]); });
  }
  for (std::size_t i = 0; i < threads; ++i) EXPECT_EQ(results[i], solve(problems[i]));
}

TEST(ConcurrencyDistance, Distances) {
  const auto p = make_problem<double>({.dim = 30, .rank = 5, .seed = 4});
  const auto q = make_problem<double>({.dim = 30, .rank = 5, .seed = 5});
  expect_same_everywhere<double>([&] {
    Block<double> result(1, 2);
    result << dense_distance_squared<double>(p.sigma, q.sigma), factor_distance_squared(p.factor, q.factor);
    return result;
  });
}

}  // namespace
}  // namespace itspace::test
