// SPDX-License-Identifier: Apache-2.0
//
// One run of align over the ranks of a job, on features that each rank makes for itself: a row of a table on rank 0.
//
//   mpirun -n P itspace_mpi_scaling rows|columns N D R STEPS [heading]
//
// rows: the samples are spread and Y is on every rank (mpi::FeatureRows); columns: the features are, and the rows of Y
// with them (mpi::FeatureColumns in mpi::Space). A step is a pass and what belongs to it; seconds are the slowest
// rank's.
#include <itspace/align.hpp>
#include <itspace/mpi/align.hpp>
#include <itspace/mpi/targets.hpp>
#include <itspace/threads.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using itspace::Block;
using itspace::Index;
namespace mpi = itspace::mpi;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Entry (i, j): uniform, of a size that falls with j, and a mean; made of (i, j) alone, whatever the number of ranks.
Block<float> make_features(Index first_row, Index rows, Index first_col, Index cols) {
  Block<float> z(rows, cols);
  for (Index i = 0; i < rows; ++i) {
    float* row = z.row(i).data();
    for (Index j = 0; j < cols; ++j) {
      std::uint64_t x = static_cast<std::uint64_t>(first_row + i) * 0x9E3779B97F4A7C15u +
                        static_cast<std::uint64_t>(first_col + j) * 0xBF58476D1CE4E5B9u;
      x ^= x >> 31;
      x *= 0x94D049BB133111EBu;
      x ^= x >> 29;
      const float uniform = static_cast<float>(x >> 40) * 0x1p-24f - 0.5f;
      row[j] = 1.0f + uniform * 8.0f / (1.0f + 0.01f * static_cast<float>(first_col + j));
    }
  }
  return z;
}

double largest(const mpi::Communicator& ranks, double value) {
  std::vector<double> values(static_cast<std::size_t>(ranks.size()), 0.0);
  values[static_cast<std::size_t>(ranks.rank())] = value;
  ranks.sum(values);
  return *std::max_element(values.begin(), values.end());
}

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

struct Outcome {
  double seconds = 0, made = 0, objective = 0, begin_gib = 0;
  mpi::Traffic traffic;
  Index passes = 0;
};

// What the model says of the memory of a rank: its data and, for each row of Y that it has, so many values of r each.
double model_gib(bool by_rows, Index data, Index own_rows_of_y, Index samples, Index rank, double begin) {
  constexpr double gib = 1024.0 * 1024 * 1024, value = sizeof(float);
  const double blocks = 6 + (rank + 8.0) / rank;  // start, Y, Q, W, B, the best; W of a completion (r + 8 columns)
  double bytes = value * static_cast<double>(data) + blocks * value * static_cast<double>(own_rows_of_y * rank);
  if (by_rows) bytes += 3 * 8.0 * static_cast<double>(own_rows_of_y);  // three vectors of d in double: the means
  if (!by_rows) bytes += value * static_cast<double>(samples * rank);  // the n x r block that is summed
  const double one_round =
      static_cast<double>(std::min<Index>(Index(1) << 22, (by_rows ? own_rows_of_y : samples) * rank));
  return begin + (bytes + 2 * value * one_round) / gib;
}

template <class Target, class Align>
Outcome timed(const mpi::Communicator& ranks, const Target& target, Align align, Index rank, Index steps) {
  itspace::AlignOptions options;
  options.steps = steps;
  options.completion = true;
  Outcome outcome;
  const mpi::Traffic before = ranks.traffic();
  const auto begin = std::chrono::steady_clock::now();
  const auto result = align(target, rank, options);
  outcome.seconds = seconds_since(begin);
  const mpi::Traffic after = ranks.traffic();
  outcome.traffic = {after.messages - before.messages, after.bytes - before.bytes, after.seconds - before.seconds};
  outcome.passes = result.trace.steps.back().passes + 1;  // and one for the last objective
  outcome.objective = result.trace.steps.back().objective;
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: mpirun -n P itspace_mpi_scaling rows|columns N D R STEPS [heading]\n");
    return 2;
  }
  const mpi::Environment environment;
  const mpi::Communicator ranks = mpi::Communicator::world();
  const bool by_rows = std::strcmp(argv[1], "rows") == 0;
  const Index n = std::atol(argv[2]), d = std::atol(argv[3]), r = std::atol(argv[4]), steps = std::atol(argv[5]);
  const double begin_gib = peak_gib();

  const auto begin = std::chrono::steady_clock::now();
  Block<float> z = by_rows ? make_features(ranks.first_row(n), ranks.own_rows(n), 0, d)
                           : make_features(0, n, ranks.first_row(d), ranks.own_rows(d));
  const Index data = z.rows() * z.cols();
  const double generated = seconds_since(begin);
  Outcome outcome;
  double constructed = 0;
  const auto construct = std::chrono::steady_clock::now();
  if (by_rows) {
    const mpi::FeatureRows<float> target(ranks, std::move(z));
    constructed = seconds_since(construct);
    outcome = timed(
        ranks, target,
        [](const auto& t, Index rank, const auto& options) { return itspace::align<float>(t, rank, options); }, r,
        steps);
  } else {
    const mpi::FeatureColumns<float> target(ranks, d, std::move(z));
    constructed = seconds_since(construct);
    outcome = timed(
        ranks, target,
        [](const auto& t, Index rank, const auto& options) { return mpi::align<float>(t, rank, options); }, r, steps);
  }
  const auto passes = static_cast<double>(outcome.passes);
  const double own = static_cast<double>(ranks.own_rows(by_rows ? d : n)) * static_cast<double>(r) * sizeof(float);
  const double all = static_cast<double>(by_rows ? d : n) * static_cast<double>(r) * sizeof(float);
  const double foretold = (all - own) + (ranks.size() - 1) * own;  // of the large blocks, without stamps and small sums
  const double seconds = largest(ranks, outcome.seconds / passes),
               talk = largest(ranks, outcome.traffic.seconds / passes);
  const double peak = largest(ranks, peak_gib());
  const double model = largest(ranks, model_gib(by_rows, data, by_rows ? d : ranks.own_rows(d), n, r, begin_gib));
  const double made = largest(ranks, generated), built = largest(ranks, constructed);
  if (ranks.rank() != 0) return 0;
  if (argc > 6)
    std::printf(
        "| spread | ranks | threads | n | d | r | passes | s/pass | of it waiting | GFLOP/s | MB sent/pass | foretold "
        "| "
        "messages/pass | GiB/rank | model | W2^2 | s to make, to build |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  const double flops = 4.0 * static_cast<double>(n) * static_cast<double>(d) * static_cast<double>(r);
  std::printf(
      "| %s | %d | %ld | %ld | %ld | %ld | %ld | %.4f | %.4f | %.1f | %.3f | %.3f | %.1f | %.3f | %.3f | %.6g | %.1f, "
      "%.1f |\n",
      argv[1], ranks.size(), static_cast<long>(itspace::threads()), static_cast<long>(n), static_cast<long>(d),
      static_cast<long>(r), static_cast<long>(outcome.passes), seconds, talk, flops / seconds / 1e9,
      static_cast<double>(outcome.traffic.bytes) / passes / 1e6, foretold / 1e6,
      static_cast<double>(outcome.traffic.messages) / passes, peak, model, outcome.objective, made, built);
  return 0;
}
