// SPDX-License-Identifier: Apache-2.0
//
// itspace_memory [d n r]: the peak memory of align on n x d float32 features, relative to their size. Exit status 1
// above 1.3.
#include <itspace/align.hpp>
#include <itspace/random.hpp>
#include <itspace/targets.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  using namespace itspace;
  const Index d = argc > 1 ? std::atol(argv[1]) : 262144, n = argc > 2 ? std::atol(argv[2]) : 1024;
  const Index r = argc > 3 ? std::atol(argv[3]) : 16;
  if (d < r || n < 2 || r < 1) {
    std::fprintf(stderr, "usage: itspace_memory [d n r], with r <= d and n >= 2\n");
    return 2;
  }
  Block<float> features(n, d);
  const Random random(1);
  for (Index i = 0; i < n; ++i)  // uniform noise with a trend: cheap to draw, with leading directions
    for (Index j = 0; j < d; ++j)
      features(i, j) = static_cast<float>(random.bits(static_cast<std::uint64_t>(i * d + j)) >> 40) * 0x1p-24F +
                       static_cast<float>((i * 31 + j / 4096 * 7) % 97) * 0.01F;
  const FeaturesTarget<float> target(borrow(features));
  const auto result = align<float>(target, r, {.steps = 2});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double peak = static_cast<double>(usage.ru_maxrss) * 1024;
  const double own = static_cast<double>(n) * static_cast<double>(d) * sizeof(float);
  std::printf("features %.0f MiB, peak %.0f MiB, ratio %.3f (limit 1.30), objective %.6g -> %.6g, %s, %.1f s\n",
              own / 1048576, peak / 1048576, peak / own, result.trace.steps.front().objective,
              result.trace.steps.back().objective, std::string(name(result.status())).c_str(),
              result.trace.steps.back().seconds);
  return peak / own <= 1.3 ? 0 : 1;
}
