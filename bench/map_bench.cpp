// SPDX-License-Identifier: Apache-2.0
//
// A transport map of rank 16 + 16 on 100,000 x 2048 float32 samples, against the two skinny products it consists of.
#include <itspace/random.hpp>
#include <itspace/transport_map.hpp>

#include <benchmark/benchmark.h>
#include <cblas.h>

namespace itspace::bench {
namespace {

constexpr Index samples = 100000, dim = 2048, rank = 16, width = 2 * rank;

LowRankGaussian model(std::uint64_t seed, double remainder) {
  LowRankGaussian model{Block<double>(dim, rank), Eigen::VectorXd::Constant(dim, 0.1), remainder};
  Random(seed).fill_normal<double>(model.factor);
  return model;
}

Block<float>& data() {
  static Block<float> block = [] {
    Block<float> filled(samples, dim);
    const Random random(3);
    for (Index i = 0; i < filled.size(); ++i)
      filled.data()[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i))) - 0.5F;
    return filled;
  }();
  return block;
}

// Back and forth, so that the values stay what they are.
void map_apply(benchmark::State& state) {
  const TransportMap there(model(1, 0.5), model(2, 0.6)), back = there.inverse();
  bool forth = true;
  for (auto _ : state) {
    (forth ? there : back).apply<float>(data());
    forth = !forth;
  }
}
BENCHMARK(map_apply)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(2);

// inner = X Q and X += inner E, whole: n x d times d x 32, and n x 32 times 32 x d.
void two_skinny_products(benchmark::State& state) {
  Block<float> basis(dim, width), update = Block<float>::Zero(width, dim), inner(samples, width);
  Random(4).fill_normal<float>(basis);
  const int n = static_cast<int>(samples), d = static_cast<int>(dim), m = static_cast<int>(width);
  for (auto _ : state) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, m, d, 1.0F, data().data(), d, basis.data(), m, 0.0F,
                inner.data(), m);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d, m, 1.0F, inner.data(), m, update.data(), d, 1.0F,
                data().data(), d);
    benchmark::DoNotOptimize(data().data());
  }
}
BENCHMARK(two_skinny_products)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(2);

}  // namespace
}  // namespace itspace::bench
