// SPDX-License-Identifier: Apache-2.0
//
// One certified step at d = 2048, r = 16 in each precision: float32, mixed (data float32, arithmetic double), float64.
// The same values in each, so what differs is the bytes that are read and the width of the arithmetic.
#include <itspace/itspace.hpp>

#include <benchmark/benchmark.h>

#include <cmath>

namespace itspace::bench {
namespace {

constexpr Index dim = 2048, samples = 4096, rank = 16, steps = 10;

// Features with a power-law spectrum, their covariance, and a start near their leading part.
template <Storage Data>
struct Problem {
  Block<Data> features, sigma, start;

  static const Problem& instance() {
    static const Problem problem;
    return problem;
  }

 private:
  Problem() : features(draw()), sigma(covariance<Data>(features)), start(dim, rank) {
    start = features.topRows(rank).transpose() / std::sqrt(Data(rank));
  }
  static Block<Data> draw() {
    Block<float> values(samples, dim);  // the same in every type
    Random(1).fill_normal<float>(values);
    for (Index j = 0; j < dim; ++j) values.col(j) *= 1 / std::sqrt(static_cast<float>(j + 1));
    return values.cast<Data>();
  }
};

template <Storage Scalar>
void time_steps(benchmark::State& state, TargetRef<Scalar> target, const Block<Scalar>& start) {
  for (auto _ : state) {
    const Trace trace = align<Scalar>(target, start, {.steps = steps}).trace;
    state.SetIterationTime((trace.steps.back().seconds - trace.steps.front().seconds) / double(steps));
    if (trace.status != Status::step_limit) state.SkipWithError("a step was not certified");
  }
}

template <Storage Scalar, Storage Data>
void dense_step(benchmark::State& state) {
  const auto& problem = Problem<Data>::instance();
  const DenseTarget<Scalar, Data> target(borrow(problem.sigma));
  time_steps<Scalar>(state, target, problem.start.template cast<Scalar>());
}
template <Storage Scalar, Storage Data>
void features_step(benchmark::State& state) {
  const auto& problem = Problem<Data>::instance();
  const FeaturesTarget<Scalar, Data> target(borrow(problem.features));
  time_steps<Scalar>(state, target, problem.start.template cast<Scalar>());
}

BENCHMARK(dense_step<float, float>)->Name("dense_step_float32")->UseManualTime();
BENCHMARK(dense_step<double, float>)->Name("dense_step_mixed")->UseManualTime();
BENCHMARK(dense_step<double, double>)->Name("dense_step_float64")->UseManualTime();
BENCHMARK(features_step<float, float>)->Name("features_step_float32")->UseManualTime();
BENCHMARK(features_step<double, float>)->Name("features_step_mixed")->UseManualTime();
BENCHMARK(features_step<double, double>)->Name("features_step_float64")->UseManualTime();

}  // namespace
}  // namespace itspace::bench
