// SPDX-License-Identifier: Apache-2.0
//
// Many small problems: align_batch from 1 to N threads beside a loop of align over the same problems on one thread.
// Markdown; the loop that someone writes in NumPy is bench/batch_numpy.py, which prints a line of the same table.
//
//   itspace_batch [MOST_THREADS] [PROBLEMS]
#include <itspace/itspace.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace itspace;
using Clock = std::chrono::steady_clock;

template <class Work>
double median_seconds(const Work& work) {
  constexpr int times = 7;
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const auto before = Clock::now();
    work();
    all.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  std::sort(all.begin(), all.end());
  return all[times / 2];
}

// Covariances of 2d samples with standard deviations from 1 to 1/8, one after the other.
template <Storage Scalar>
Block<Scalar> covariances(Index count, Index d) {
  constexpr Index different = 64;  // the others are these again, in memory of their own
  Block<Scalar> all(count * d, d);
  const Index samples = 2 * d;
  for (Index i = 0; i < count; ++i) {
    if (i >= different) {
      all.middleRows(i * d, d) = all.middleRows((i % different) * d, d);
      continue;
    }
    Block<double> x(samples, d);
    Random(1, static_cast<std::uint64_t>(i)).fill_normal<double>(x);
    for (Index j = 0; j < d; ++j) x.col(j) *= std::pow(8.0, -static_cast<double>(j) / static_cast<double>(d));
    for (Index a = 0; a < d; ++a)
      for (Index b = 0; b <= a; ++b)
        all(i * d + a, b) = all(i * d + b, a) =
            static_cast<Scalar>(x.col(a).dot(x.col(b)) / static_cast<double>(samples));
  }
  return all;
}

template <Storage Scalar>
void measure(Index most_threads, Index count, Index d, Index r, Index steps) {
  const Block<Scalar> data = covariances<Scalar>(count, d);
  Block<Scalar> first(count * d, r);
  Random(2).fill_normal<Scalar>(first);
  const MatrixStack<Scalar> targets{data.data(), count, d, d}, starts{first.data(), count, d, r};
  const AlignOptions options{.steps = steps};
  const char* const type = sizeof(Scalar) == 4 ? "f32" : "f64";
  const auto line = [&](const char* what, Index threads, double seconds, double loop) {
    std::printf("| %s %lld x (%lld, %lld), K=%lld | %s | %lld | %.2f | %.2f |\n", type, static_cast<long long>(count),
                static_cast<long long>(d), static_cast<long long>(r), static_cast<long long>(steps), what,
                static_cast<long long>(threads), 1e6 * seconds / static_cast<double>(count), loop / seconds);
    std::fflush(stdout);
  };
  double loop = 0;
  {
    const ThreadScope one(1);
    loop = median_seconds([&] {
      for (Index i = 0; i < count; ++i)
        align<Scalar>(DenseTarget<Scalar>(borrow(targets[i].data(), d, d, d)), starts[i], options);
    });
    line("a loop of align", 1, loop, loop);
  }
  for (Index threads = 1; threads <= most_threads; threads *= 2) {
    const ThreadScope scope(threads);
    line("align_batch", threads, median_seconds([&] { align_batch<Scalar>(targets, starts, options); }), loop);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const Index most_threads = count > 1 ? std::atol(arguments[1]) : threads();
  const Index problems = count > 2 ? std::atol(arguments[2]) : 10000;
  if (most_threads < 1 || most_threads > 4096 || problems < 1) {
    std::fprintf(stderr, "usage: itspace_batch [MOST_THREADS] [PROBLEMS]\n");
    return 2;
  }
  std::printf("| problems | by | threads | us a problem | times the loop of align |\n|---|---|---|---|---|\n");
  measure<double>(most_threads, problems, 64, 8, 2);
  measure<float>(most_threads, problems, 64, 8, 2);
  measure<double>(most_threads, problems / 4, 64, 16, 2);
  measure<double>(most_threads, problems, 16, 4, 2);
  return 0;
}
