// SPDX-License-Identifier: Apache-2.0
//
// One certified step at d = 2048, r = 16, float32, against the product it contains and against the paper's own step.
#include <itspace/itspace.hpp>

#include <benchmark/benchmark.h>
#include <cblas.h>
#include <lapacke.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace itspace::bench {
namespace {

constexpr Index dim = 2048, rank = 16, steps = 10;

// A covariance with a power-law spectrum, as features have, and a start from another one: both are covariances of
// synthetic features sharing half of their directions.
struct Problem {
  Block<float> sigma, start;

  Problem() : sigma(features_covariance(1)), start(truncate<float>(features_covariance(2), rank)) {}

  static Block<float> features_covariance(std::uint64_t seed) {
    constexpr Index samples = 1024, shared = 64;
    Block<float> mixing(shared, dim), scores(samples, shared), noise(samples, dim);
    Random(7).fill_normal<float>(mixing);
    Random(seed, 1).fill_normal<float>(scores);
    Random(seed, 2).fill_normal<float>(noise);
    for (Index j = 0; j < shared; ++j) {
      const double own = Random(seed, 3).uniform(static_cast<std::uint64_t>(j)) + 0.5;
      scores.col(j) *= static_cast<float>(own / std::sqrt(static_cast<double>(j) + 1));
    }
    return covariance<float>(scores * mixing + 0.5F * noise);
  }
};

const Problem& problem() {
  static const Problem instance;
  return instance;
}

// The plain product in each orientation that BLAS offers; the ratios take the fastest.
enum Orientation { rows_plain, rows_transposed, cols_plain, cols_transposed };

void sgemm(benchmark::State& state) {
  const auto& [sigma, start] = problem();
  Block<float> out(dim, rank);
  const auto orientation = static_cast<Orientation>(state.range(0));
  const bool by_rows = orientation == rows_plain || orientation == rows_transposed;
  const bool plain = orientation == rows_plain || orientation == cols_plain;
  const int d = static_cast<int>(dim), r = static_cast<int>(rank), ld = by_rows ? r : d;
  for (auto _ : state) {
    cblas_sgemm(by_rows ? CblasRowMajor : CblasColMajor, plain ? CblasNoTrans : CblasTrans, CblasNoTrans, d, r, d, 1.0F,
                sigma.data(), d, start.data(), ld, 0.0F, out.data(), ld);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(sgemm)->DenseRange(rows_plain, cols_transposed);

// The seconds of one step, from the trace: everything between two iterates, certificate and record included.
void time_steps(benchmark::State& state, const AlignOptions& options) {
  const DenseTarget<float> target(borrow(problem().sigma));
  for (auto _ : state) {
    const Trace trace = align<float>(target, problem().start, options).trace;
    state.SetIterationTime((trace.steps.back().seconds - trace.steps.front().seconds) /
                           static_cast<double>(options.steps));
    if (trace.status != Status::step_limit) state.SkipWithError("a step was not certified");
  }
}

void certified_step(benchmark::State& state) {
  time_steps(state, {.steps = steps});
}
void certified_step_gram(benchmark::State& state) {
  time_steps(state, {.steps = steps, .route = Route::gram});
}
void line_search_step(benchmark::State& state) {
  time_steps(state, {.steps = steps, .step_size = StepSize::line_search()});
}
BENCHMARK(certified_step)->UseManualTime();
BENCHMARK(certified_step_gram)->UseManualTime();
BENCHMARK(line_search_step)->UseManualTime();

// From Sigma in memory to Y_1.
void first_iterate(benchmark::State& state) {
  for (auto _ : state) {
    const DenseTarget<float> target(borrow(problem().sigma));
    const auto result = align<float>(target, problem().start, {.steps = 1, .evaluate_last = false});
    benchmark::DoNotOptimize(result.factor.data());
  }
}
BENCHMARK(first_iterate);

// The paper's preprocessing: the principal square root, in float32 as its experiments.
Block<float> principal_root(Block<float> vectors) {
  const auto d = static_cast<int>(dim);
  std::vector<float> values(static_cast<std::size_t>(dim));
  LAPACKE_ssyevd(LAPACK_COL_MAJOR, 'V', 'L', d, vectors.data(), d, values.data());
  Block<float> scaled = vectors;
  for (Index j = 0; j < dim; ++j) scaled.row(j) *= std::sqrt(std::max(0.0F, values[static_cast<std::size_t>(j)]));
  Block<float> root(dim, dim);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, d, d, d, 1.0F, vectors.data(), d, scaled.data(), d, 0.0F,
              root.data(), d);
  return root;
}

void paper_root(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(principal_root(problem().sigma).data());
}
BENCHMARK(paper_root)->Iterations(1)->Unit(benchmark::kMillisecond);

// The paper's Gram route with a ready root S: A = S Y, G = A'A, Q = A G^(-1/2), Y+ = (1 - alpha) Y + alpha S Q. No
// objective, no certificate. Column-major blocks, the orientation in which BLAS multiplies them fastest.
void paper_gram_step(benchmark::State& state) {
  static const Block<float> root = principal_root(problem().sigma);
  using Columns = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
  const int d = static_cast<int>(dim), r = static_cast<int>(rank);
  constexpr float alpha = 0.9F;
  Columns y = problem().start, a(dim, rank), q(dim, rank), gram(rank, rank), m(rank, rank);
  Eigen::VectorXf values(rank);
  const auto product = [&](const Columns& right, Columns& out, float weight, float keep) {
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, d, r, d, weight, root.data(), d, right.data(), d, keep,
                out.data(), d);
  };
  for (auto _ : state) {
    product(y, a, 1.0F, 0.0F);
    cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, r, r, d, 1.0F, a.data(), d, a.data(), d, 0.0F, gram.data(), r);
    LAPACKE_ssyevd(LAPACK_COL_MAJOR, 'V', 'L', r, gram.data(), r, values.data());
    m.noalias() = gram * values.cwiseMax(1e-20F).cwiseSqrt().cwiseInverse().asDiagonal() * gram.transpose();
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, d, r, r, 1.0F, a.data(), d, m.data(), r, 0.0F, q.data(), d);
    product(q, y, alpha, 1.0F - alpha);
    benchmark::DoNotOptimize(y.data());
  }
}
BENCHMARK(paper_gram_step);

// The byte floor: Sigma read once, by as many threads as BLAS has (sasum is threaded where sgemm is).
void read_sigma_once(benchmark::State& state) {
  const auto& sigma = problem().sigma;
  for (auto _ : state) benchmark::DoNotOptimize(cblas_sasum(static_cast<int>(sigma.size()), sigma.data(), 1));
}
BENCHMARK(read_sigma_once);

}  // namespace
}  // namespace itspace::bench
