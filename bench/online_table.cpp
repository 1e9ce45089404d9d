// SPDX-License-Identifier: Apache-2.0
//
// Following a stream: what a batch costs beside the products it must make, how near the followed covariance is to the
// exact one of a window on real data, and how long the drift alarm runs without drift and takes with one. Markdown, as
// in docs/online.md.
//
//   itspace_online cost            one observation of 256 x 2048 float32, rank 16, 2 steps
//   itspace_online gas FOLDER      gas_drift_128 in the order of time
//   itspace_online drift [N]       N batches for each figure of the alarm (default 20000)
#include <itspace/io.hpp>
#include <itspace/itspace.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace itspace;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
// Rows with variances 1/i in a fixed basis, which is the identity: no kernel looks at zeros.
template <Storage Scalar>
Block<Scalar> normal_rows(Index rows, Index cols, std::uint64_t stream) {
  Block<Scalar> out(rows, cols);
  Random(1, stream).fill_normal<Scalar>(out);
  for (Index j = 0; j < cols; ++j) out.col(j) *= static_cast<Scalar>(1 / std::sqrt(1.0 + static_cast<double>(j)));
  return out;
}

// Medians of what is done in turns, so that a machine that grows slower does so for all of them.
std::vector<double> medians_in_turns(int times, const std::vector<std::function<void()>>& works) {
  std::vector<std::vector<double>> all(works.size());
  for (int i = 0; i < times; ++i)
    for (std::size_t k = 0; k < works.size(); ++k) {
      const auto before = Clock::now();
      works[k]();
      all[k].push_back(milliseconds_since(before));
    }
  std::vector<double> out;
  for (const auto& one : all) out.push_back(median(one));
  return out;
}

// What an observation must do: a pass over the rows of the batch and of what is kept for each step and for the last
// objective, and, to keep the leading part of them, one product with k columns into the rows and one out of them.
void cost() {
  constexpr Index n = 256, d = 2048, r = 16, steps = 2, kept = 4 * r, classes = 6;
  std::printf(
      "| threads | observe, ms | of it the covariance | K+1 products of rank r, ms | and two of rank k, ms | ratio to "
      "all | balanced over %ld classes, ms |\n|---|---|---|---|---|---|---|\n",
      static_cast<long>(classes));
  const auto measure = [&] {
    OnlineAligner<float> aligner({.rank = r, .steps = steps, .stream = {.half_life = 20}});
    OnlineTarget<float> target({.half_life = 20, .kept_rank = kept});
    OnlineAlignerOptions by_class{.rank = r, .steps = steps, .stream = {.half_life = 20}};
    by_class.stream.balance = ClassBalance{.shares = Vector::Ones(classes)};
    OnlineAligner<float> balanced(by_class);
    Predicted predicted;
    for (Index i = 0; i < n; ++i) predicted.labels.push_back(i % classes);
    std::vector<Block<float>> batches;
    for (std::uint64_t i = 0; i < 25; ++i) batches.push_back(normal_rows<float>(n, d, i));
    const FactorTarget<float> rows(Block<float>(normal_rows<float>(n + kept + 2, d, 0).transpose()));
    const Block<float> y = normal_rows<float>(d, r, 1), wide = normal_rows<float>(d, kept, 2);
    Block<float> out(d, r), wide_out(d, kept);
    std::size_t first = 0, second = 0, third = 0;
    const std::vector<std::function<void()>> works{
        [&] { aligner.observe(batches[first++ % batches.size()]); },
        [&] { target.update(batches[second++ % batches.size()]); },
        [&] {
          for (Index k = 0; k <= steps; ++k) rows.apply(y, out);
        },
        [&] { rows.apply(wide, wide_out); },
        [&] { balanced.observe(batches[third++ % batches.size()], {}, predicted); }};
    medians_in_turns(5, works);
    const std::vector<double> ms = medians_in_turns(60, works);
    std::printf("| %ld | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", static_cast<long>(threads()), ms[0], ms[1],
                ms[2], ms[3], ms[0] / (ms[2] + ms[3]), ms[4]);
    std::fflush(stdout);
  };
  const Index most = threads();
  for (Index count = 1; count <= most; count *= 2) {
    set_threads(count);
    measure();
  }
}

void gas(const std::filesystem::path& folder) {
  constexpr Index n = 64;
  std::vector<Block<double>> stream;
  for (const int month : {1, 2, 3, 4, 5, 6, 8, 9}) {
    const Block<double> all =
        io::open_array(folder / "gas_drift_128" / ("batch" + std::to_string(month) + "_x.npy")).as<double>().view();
    for (Index first = 0; first < all.rows(); first += n)
      stream.emplace_back(all.middleRows(first, std::min(n, all.rows() - first)));
  }
  // On the scale of the first batches.
  const Block<double> first = stream.front();
  const Vector mean_of_first = mean<double>(first), deviations_of_first = deviations<double>(first);
  for (Block<double>& batch : stream) standardise_features<double>(mean_of_first, deviations_of_first, batch);
  std::printf("%zu batches of %ld samples, d = 128\n\n", stream.size(), static_cast<long>(n));
  std::printf(
      "| r | k | half-life | objective, all directions kept | bias of the objective at the same Y, median | worst | "
      "gap to the floor, median |\n|---|---|---|---|---|---|---|\n");
  for (const Index r : {8, 16})
    for (const Index kept : {r, 2 * r, 4 * r})
      for (const double half_life : {5.0, 20.0}) {
        OnlineAligner<double> aligner({.rank = r, .stream = {.half_life = half_life, .kept_rank = kept}});
        OnlineTarget<double> exact({.half_life = half_life, .kept_rank = 128});
        std::vector<double> biases, gaps, objectives;
        for (const Block<double>& batch : stream) {
          aligner.observe(batch);
          exact.update(batch);
          const double truth = evaluate<double>(exact, aligner.factor()).certificate.objective;
          Block<double> sigma(128, 128);
          exact.apply(Block<double>::Identity(128, 128), sigma);
          const double floor = floor_r(exact.trace(), leading_eigenvalues<double>(sigma, r), r);
          biases.push_back(100 * std::abs(aligner.objective() - truth) / floor);
          gaps.push_back(100 * (truth - floor) / floor);
          objectives.push_back(truth);
        }
        std::printf("| %ld | %ld | %g | %.3g | %.2f %% | %.2f %% | %.1f %% |\n", static_cast<long>(r),
                    static_cast<long>(kept), half_life, median(objectives), median(biases),
                    *std::max_element(biases.begin(), biases.end()), median(gaps));
      }
}

// Samples of a batch: their number, and which batch of which stream it is.
using Draw = std::function<Block<double>(Index rows, std::uint64_t stream)>;

Block<double> heavy_rows(Index rows, Index cols, std::uint64_t stream) {  // t(5), one scale for a whole row
  Block<double> out = normal_rows<double>(rows, cols, stream);
  const Random random(2, stream);
  for (Index i = 0; i < rows; ++i) {
    double chi = 0;
    for (std::uint64_t k = 0; k < 5; ++k) {
      const double z = random.normal(static_cast<std::uint64_t>(i) * 5 + k);
      chi += z * z;
    }
    out.row(i) /= std::sqrt(chi / 3);  // variance 1
  }
  return out;
}

void drift(int batches) {
  constexpr Index d = 64, n = 64;
  constexpr int references = 10;
  const Draw normal = [](Index rows, std::uint64_t stream) { return normal_rows<double>(rows, d, stream); };
  const Draw heavy = [](Index rows, std::uint64_t stream) { return heavy_rows(rows, d, stream); };
  struct Change {
    std::string name;
    std::function<void(Block<double>&)> make;
  };
  const std::vector<Change> changes{
      {"mean of the first direction by 0.25 of its deviation", [](Block<double>& z) { z.col(0).array() += 0.25; }},
      {"by 1", [](Block<double>& z) { z.col(0).array() += 1; }},
      {"all deviations by 10 %", [](Block<double>& z) { z *= 1.1; }},
      {"first deviation by 50 %", [](Block<double>& z) { z.col(0) *= 1.5; }},
      {"two directions correlated by 0.7",
       [](Block<double>& z) { z.col(1) = 0.7 * z.col(0) / std::sqrt(2.0) + std::sqrt(1 - 0.49) * z.col(1).eval(); }}};
  std::printf("| samples | reference | stated | measured |");
  for (const Change& change : changes) std::printf(" %s |", change.name.c_str());
  std::printf("\n|---|---|---|---|");
  for (std::size_t i = 0; i < changes.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const auto& [name, draw] : {std::pair{"normal", normal}, std::pair{"t(5)", heavy}})
    for (const Index reference : {10, 20, 40})
      for (const double run_length : {50.0, 200.0, 1000.0}) {
        double alarms = 0;
        std::vector<std::vector<double>> delays(changes.size());
        for (int k = 0; k < references; ++k) {
          std::uint64_t stream = static_cast<std::uint64_t>(k) << 32;
          DriftAlarm alarm({.run_length = run_length,
                            .reference_batches = reference,
                            .rank = 16,
                            .seed = static_cast<std::uint64_t>(k)});
          while (!alarm.watching()) alarm.observe<double>(draw(n, stream++));
          const DriftAlarm learnt = alarm;
          for (int i = 0; i < batches / references; ++i) alarms += alarm.observe<double>(draw(n, stream++)).alarm;
          for (std::size_t c = 0; c < changes.size(); ++c) {
            DriftAlarm fresh = learnt;
            for (int delay = 1;; ++delay) {
              Block<double> batch = draw(n, stream++);
              changes[c].make(batch);
              if (!fresh.observe<double>(batch).alarm && delay < 1000) continue;
              delays[c].push_back(delay);
              break;
            }
          }
        }
        std::printf("| %s | %ld | %g | %.0f |", name, static_cast<long>(reference), run_length,
                    batches / std::max(alarms, 1.0));
        for (const auto& all : delays) std::printf(" %.0f |", median(all));
        std::printf("\n");
        std::fflush(stdout);
      }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "cost") {
    cost();
  } else if (what == "gas" && argc > 2) {
    gas(argv[2]);
  } else if (what == "drift") {
    drift(argc > 2 ? std::atoi(argv[2]) : 20000);
  } else {
    std::fprintf(stderr, "usage: itspace_online cost | gas FOLDER | drift [N]\n");
    return 2;
  }
  return 0;
}
