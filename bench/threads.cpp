// SPDX-License-Identifier: Apache-2.0
//
// How steps, products and maps scale with threads: each beside the BLAS call, or the sweep over memory, that it is
// measured against, in one run, medians.
//
//   itspace_threads [MOST_THREADS] [SECONDS]     SECONDS: for each figure (default 0.5)
#include <itspace/itspace.hpp>

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace itspace;
using Clock = std::chrono::steady_clock;

Index most_threads = 1;
double seconds_for_each = 0.5;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}
double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}
template <class Work>
double median_of(const Work& work) {
  constexpr std::size_t fewest = 5, most = 200;
  work();
  std::vector<double> times;
  for (const auto begin = Clock::now();
       times.size() < fewest || (times.size() < most && milliseconds_since(begin) < 1e3 * seconds_for_each);) {
    const auto before = Clock::now();
    work();
    times.push_back(milliseconds_since(before));
  }
  return median(times);
}

void gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE side, Index m, Index n, Index k, const float* a, Index lda, const float* b,
          Index ldb, float* c, Index ldc) {
  cblas_sgemm(order, side, CblasNoTrans, int(m), int(n), int(k), 1, a, int(lda), b, int(ldb), 0, c, int(ldc));
}
void gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE side, Index m, Index n, Index k, const double* a, Index lda,
          const double* b, Index ldb, double* c, Index ldc) {
  cblas_dgemm(order, side, CblasNoTrans, int(m), int(n), int(k), 1, a, int(lda), b, int(ldb), 0, c, int(ldc));
}

// Sigma y, by rows and by columns.
template <class Scalar>
double blas_symmetric(const Block<Scalar>& sigma, const Block<Scalar>& y, Block<Scalar>& out) {
  const Index d = sigma.rows(), r = y.cols();
  const double by_rows =
      median_of([&] { gemm(CblasRowMajor, CblasNoTrans, d, r, d, sigma.data(), d, y.data(), r, out.data(), r); });
  const double by_columns =
      median_of([&] { gemm(CblasColMajor, CblasNoTrans, d, r, d, sigma.data(), d, y.data(), d, out.data(), d); });
  return std::min(by_rows, by_columns);
}

// BLAS's threads stay awake for tens of milliseconds after a call, on the processors that ours are to be measured on.
void let_blas_sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

// The time from one on_step to the next, the first two left out.
template <class Scalar, class Target>
double step(const Target& target, const Block<Scalar>& start, Solver solver) {
  std::vector<double> times;
  AlignOptions options;
  options.steps = 8;
  options.solver = solver;
  for (const auto begin = Clock::now(); times.size() < 6 || milliseconds_since(begin) < 1e3 * seconds_for_each;) {
    Clock::time_point before;
    align<Scalar>(target, start, options, [&](const Step& row, const ConstBlockView<Scalar>&) {
      if (row.index > 1) times.push_back(milliseconds_since(before));
      before = Clock::now();
      return StepAction::proceed;
    });
  }
  return median(times);
}

// Smooth, of full rank, and far from the smallest numbers.
template <class Scalar>
Block<Scalar> covariance(Index d) {
  Block<Scalar> sigma(d, d);
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j) {
      const double u = double(i - j) / 40;
      sigma(i, j) = Scalar(1 / ((1 + u * u) * (1 + 0.002 * double(i)) * (1 + 0.002 * double(j))));
    }
  return sigma;
}
// Rough: eigenvalues fall like 1/i^2, as those of features do, and not below the rounding of float32.
template <class Scalar>
Block<Scalar> rough_covariance(Index d) {
  Block<Scalar> sigma(d, d);
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j) sigma(i, j) = Scalar(std::exp(-std::abs(double(i - j)) / 40));
  return sigma;
}
template <class Scalar>
Block<Scalar> normal(Index rows, Index cols) {
  Block<Scalar> block(rows, cols);
  Random(7).fill_normal<Scalar>(block);
  return block;
}

template <class Visit>
void for_each_count(const Visit& visit) {
  for (Index count = 1; count <= most_threads; count *= 2) {
    set_threads(count);
    visit(static_cast<long>(count));
    std::fflush(stdout);
  }
}

enum Extra { none = 0, ritz = 1, mixed = 2, rough = 4 };

template <class Scalar>
void dense(Index d, Index r, int extra = none) {
  const Block<Scalar> sigma = extra & rough ? rough_covariance<Scalar>(d) : covariance<Scalar>(d);
  const Block<Scalar> y = normal<Scalar>(d, r);
  Block<Scalar> out(d, r);
  const DenseTarget<Scalar> target(borrow(sigma));
  for_each_count([&](long count) {
    const double blas = blas_symmetric<Scalar>(sigma, y, out);
    let_blas_sleep();
    const double product = median_of([&] { target.apply(y, out); });
    const double paper = step<Scalar>(target, y, Solver::paper);
    std::printf("| dense %s%s, d=%ld r=%ld | %ld | %.3f | %.3f (%.2f) | %.3f (%.2f) |",
                sizeof(Scalar) == 4 ? "f32" : "f64", extra & rough ? " rough" : "", long(d), long(r), count, blas,
                product, product / blas, paper, paper / blas);
    if (extra & ritz) {
      const double time = step<Scalar>(target, y, Solver::ritz);
      std::printf(" Ritz %.3f (%.2f steps)", time, time / paper);
    }
    if constexpr (std::same_as<Scalar, float>) {
      if (extra & mixed) {
        const DenseTarget<double, float> wide(borrow(sigma));
        const double time = step<double>(wide, normal<double>(d, r), Solver::paper);
        std::printf(" mixed %.3f (%.2f steps)", time, time / paper);
      }
    }
    std::printf(" |\n");
  });
}

void features(Index n, Index d, Index r) {
  const Block<float> z = normal<float>(n, d), y = normal<float>(d, r);
  Block<float> p(n, r), out(d, r);
  const FeaturesTarget<float> target(borrow(z));
  for_each_count([&](long count) {
    const double first =
        median_of([&] { gemm(CblasRowMajor, CblasNoTrans, n, r, d, z.data(), d, y.data(), r, p.data(), r); });
    const double by_rows =
        median_of([&] { gemm(CblasRowMajor, CblasTrans, d, r, n, z.data(), d, p.data(), r, out.data(), r); });
    const double by_columns =
        median_of([&] { gemm(CblasColMajor, CblasNoTrans, d, r, n, z.data(), d, p.data(), n, out.data(), d); });
    const double blas = first + std::min(by_rows, by_columns);
    let_blas_sleep();
    const double product = median_of([&] { target.apply(y, out); });
    const double paper = step<float>(target, y, Solver::paper);
    std::printf("| features f32, n=%ld d=%ld r=%ld | %ld | %.3f (two) | %.3f (%.2f) | %.3f (%.2f) | |\n", long(n),
                long(d), long(r), count, blas, product, product / blas, paper, paper / blas);
  });
}

void map(Index n, Index d, Index r) {
  Block<float> x = normal<float>(n, d);
  // It shrinks, so that applying it again and again stays among the numbers.
  const LowRankGaussian from{normal<double>(d, r), Eigen::VectorXd::Constant(d, 0.1), 1.0};
  LowRankGaussian to{from.factor, Eigen::VectorXd::Constant(d, 0.2), 0.8};
  to.factor *= 0.7;
  const TransportMap map(from, to);
  for_each_count([&](long count) {
    const double sweep = median_of([&] {
      std::vector<std::thread> threads;
      for (long t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
          float* values = x.data() + x.size() / count * t;
          for (Index i = 0; i < x.size() / count; ++i) values[i] *= 1.0000001f;
        });
      for (auto& thread : threads) thread.join();
    });
    const double time = median_of([&] { map.apply<float>(x); });
    std::printf("| map f32, %ld x %ld, r=%ld | %ld | %.1f (read and written once) | %.1f (%.2f) | | |\n", long(n),
                long(d), long(r), count, sweep, time, time / sweep);
  });
}

void small(Index d, Index r) {
  const Block<double> sigma = covariance<double>(d);
  set_threads(1);
  const double time = step<double>(DenseTarget<double>(borrow(sigma)), normal<double>(d, r), Solver::paper);
  std::printf("| dense f64, d=%ld r=%ld | 1 | | | %.4f | |\n", long(d), long(r), time);
}

}  // namespace

int main(int count, char** arguments) {
  most_threads = count > 1 ? std::atol(arguments[1]) : threads();
  if (count > 2) seconds_for_each = std::atof(arguments[2]);
  if (most_threads < 1 || most_threads > 4096 || !(seconds_for_each > 0)) {
    std::fprintf(stderr, "usage: itspace_threads [MOST_THREADS] [SECONDS], 1 to 4096 threads, seconds above 0\n");
    return 2;
  }
  std::printf(
      "| problem | threads | BLAS, ms | product (of BLAS) | step (of BLAS) | others |\n|---|---|---|---|---|---|\n");
  small(64, 8);
  small(256, 16);
  dense<float>(2048, 16, ritz);
  dense<float>(4096, 16);
  dense<float>(8192, 16, ritz | mixed);
  dense<float>(16384, 16);
  dense<float>(2048, 64);
  dense<float>(2048, 64, rough);
  dense<double>(2048, 16);
  dense<double>(2048, 64);
  dense<double>(2048, 64, rough);
  dense<float>(2048, 256, rough);
  dense<float>(2048, 1024, rough);
  features(2048, 2048, 16);
  features(16384, 2048, 16);
  map(100000, 2048, 16);
  return 0;
}
