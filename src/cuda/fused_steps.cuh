// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the fused run (fused.hpp), for the file that launches it.
#pragma once

#include "cuda/cluster_product.cuh"
#include "cuda/features_product.cuh"
#include "cuda/fused_root.cuh"
#include "cuda/half_product.cuh"
#include "cuda/row_product.cuh"

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace itspace::cuda::kernels {
namespace {

constexpr int log_scalars = 16, norm_count = 3;
enum class Ended { no, stepped, not_rooted, doubtful };

// A guess of sqrt(lambda_min/lambda_max) of the first G; and how much of an energy may be rounding.
[[maybe_unused]] constexpr double first_lowest = 1e-4, most_doubt = 5e-2;
// ||Y||^2 of a start: sums are in fixed point and roots in plain double.
[[maybe_unused]] constexpr double least_squared = 1e-60, most_squared = 1e60;
// Rows of Y that lie together.
constexpr int y_unit = 16;
template <class T>
constexpr double epsilon = sizeof(T) == 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16;

struct PolynomialList {
  FusedPolynomial of[most_fused_polynomials];
  int count;
};

// Sums in fixed point: added in any order they are the same. G has a second word for the digits below the first.
template <int R>
struct alignas(128) Sums {
  static constexpr int pairs = R * (R + 1) / 2;
  unsigned long long g[pairs], g_low[pairs], yy[pairs], ww[R];
};
[[maybe_unused]] constexpr double low_scale = 1099511627776.0;  // 2^40

struct Scales {
  double g, yy, ww;  // units in one
};

// Rows of W by the tensor cores where they multiply to float's accuracy, else by fused multiplications. A large Sigma
// is read by half.
enum class Reads { all, half };
template <class T, int R, Reads reads>
struct ProductOf {
  using Type = RowProduct<T, R>;
  using Plan = RowPlan<T, R>;
};
template <>
struct ProductOf<float, 16, Reads::all> {
  using Type = ClusterProduct<16>;
  using Plan = ClusterPlan<16>;
};
template <class T>
struct ProductOf<T, half_rank, Reads::half> {
  using Type = HalfProduct<T>;
  using Plan = HalfPlan<T>;
};
// Of features: in float alone.
template <int Boxes>
struct ProductOfFeatures {
  using Type = FeaturesProduct<Boxes>;
  using Plan = FeaturesPlan<Boxes>;
};
template <class Product>
constexpr bool is_of_features = false;
template <int Boxes>
constexpr bool is_of_features<FeaturesProduct<Boxes>> = true;
// Where blocks make parts of each other's rows of W.
template <class Product>
constexpr bool leaves_parts = is_of_features<Product>;
template <class T>
constexpr bool leaves_parts<HalfProduct<T>> = true;

// Of: a ProductOf, or ProductOfFeatures.
template <class T, int R, class Of>
struct Arguments {
  CUtensorMap sigma;  // or of features
  typename Of::Type::Layout layout;
  int rank, steps, most_rows;  // of a block
  const T* start;
  T* best;  // where the best iterate goes
  std::size_t start_stride, best_stride;
  T* y[2];        // dim x R, by put_y(); then rows of zeros, to what the product reads
  Sums<R>* sums;  // three: used, read, cleared
  unsigned* barrier;
  double* partial_norms;  // [2][blocks][norm_count]
  double* log;            // [steps + 1][log_scalars]
  double alpha, growth;   // ||Y||^2 stays below growth tr Sigma or that of the start
  double trace;           // of Sigma
  double least_norm;      // of Sigma, from its trace
  PolynomialList polynomials;
};

template <class T, int R, class Of>
struct Shared {
  RootWorkspace<R> root;  // first: inverse_root() finds it there
  typename Of::Type::Shared product;
  double target_norm, longest_squared;  // ||Sigma||_2 from below, ||Y'Y||_F
  double logged[log_scalars];           // of the step before, but for its norms
};

[[maybe_unused]] __device__ __forceinline__ unsigned long long fixed(double v) {
  return static_cast<unsigned long long>(__double2ll_rn(v));
}

// Of the entries (i, j), i <= j, of a symmetric matrix those of this thread: the n-th is number n fused_threads +
// thread of them all, column by column, so that sums of a warp lie side by side.
template <int R>
class PairsOfThread {
 public:
  static constexpr int most = (Sums<R>::pairs + fused_threads - 1) / fused_threads;

  __device__ PairsOfThread() {
#pragma unroll
    for (int n = 0; n < most; ++n) {
      const int pair = number(n);
      column_[n] = 0;
      while ((column_[n] + 1) * (column_[n] + 2) / 2 <= pair) ++column_[n];
    }
  }
  // visit(n, pair, i, j)
  template <class Visit>
  __device__ __forceinline__ void for_each(Visit visit) const {
#pragma unroll
    for (int n = 0; n < most; ++n)
      if (const int pair = number(n), j = column_[n]; pair < Sums<R>::pairs) visit(n, pair, pair - j * (j + 1) / 2, j);
  }

 private:
  __device__ static int number(int n) {
    return n * fused_threads + static_cast<int>(threadIdx.x);
  }
  int column_[most];
};

// A power of two that brings numbers up to `bound` into 62 bits.
[[maybe_unused]] __device__ __forceinline__ double units_for(double bound) {
  return ldexp(1.0, 60 - ilogb(bound));
}

// Rows of W and Y in double, where they are float: some at a time, in memory that the product leaves free.
template <class T, int R, class Product>
constexpr bool widens = std::is_same_v<T, float>&& R == 16 && !is_of_features<Product>;
[[maybe_unused]] constexpr int wide_rows = 64;

// The steps. See fused.hpp.
template <class T, int R, class Of>
__global__ void __launch_bounds__(fused_threads, 1) fused_steps(const __grid_constant__ Arguments<T, R, Of> arguments) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<T, R, Of>*>(memory);
  T* const w_rows = reinterpret_cast<T*>(memory + sizeof(shared));  // this block's rows of W
  T* const y_rows = w_rows + arguments.most_rows * R;               // and of Y
  constexpr int mld = m_stride<R>;
  const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
  using Product = typename Of::Type;
  Product product(&arguments.sigma, arguments.layout, reinterpret_cast<T*>(memory + arguments.layout.stages_at),
                  shared.product);
  const int rows = product.rows(), rank = arguments.rank;
  const PairsOfThread<R> pairs;
  double lowest = first_lowest, best_objective = INFINITY;
  unsigned epoch = 0;
  for (int i = thread; i < arguments.polynomials.count; i += fused_threads)
    shared.root.polynomials[i] = arguments.polynomials.of[i];
  // The start comes in as the caller has it and is kept with R columns.
  double start_squared[1] = {0};
  for (int e = thread; e < rows * R; e += fused_threads) {
    const int row = product.row(e / R), column = e % R;
    const T value = column < rank ? arguments.start[row * arguments.start_stride + column] : T(0);
    y_rows[e] = value;
    Product::put_y(arguments.y[0], row, column, value);
    start_squared[0] = fma(static_cast<double>(value), static_cast<double>(value), start_squared[0]);
  }
  fence_global_copies();
  block_sums(start_squared, shared.root.sums);
  if (thread == 0) arguments.partial_norms[blockIdx.x] = start_squared[0];
  grid_barrier(arguments.barrier, epoch);
  fence_global_copies();
  double all_squared[1] = {0};
  for (int b = thread; b < static_cast<int>(gridDim.x); b += fused_threads)
    all_squared[0] += __ldcg(&arguments.partial_norms[b]);
  block_sums(all_squared, shared.root.sums);
  // ||Y|| stays below this: ||Y+|| <= |1 - alpha| ||Y|| + alpha (tr Sigma)^(1/2).
  const double trace = arguments.trace, most_y = 1.01 * fmax(all_squared[0], arguments.growth * trace);
  product.wait_for_resident_rows();
  if (!(all_squared[0] > least_squared && most_y < most_squared)) {  // as not rooted
    if constexpr (leaves_parts<Product>) product.finish();
    return;
  }
  const Scales scales{units_for(most_y * trace), units_for(most_y), units_for(most_y * trace * trace)};

  // Visits this block's rows of W and Y, all or some at a time: visit(first, count, w, y).
  bool all_wide = false;  // of this step's rows
  const auto for_rows = [&](auto visit) {
    if constexpr (widens<T, R, Product>) {
      auto* const wide_w = reinterpret_cast<double*>(shared.product.partial[0]);
      auto* const wide_y = reinterpret_cast<double*>(shared.product.partial[1]);
      for (int first = 0; first < rows; first += wide_rows) {
        const int count = min(wide_rows, rows - first);
        if (!all_wide) {
          __syncthreads();
          for (int e = thread; e < count * R; e += fused_threads) {
            wide_w[e] = w_rows[first * R + e];
            wide_y[e] = y_rows[first * R + e];
          }
          __syncthreads();
        }
        visit(first, count, wide_w, wide_y);
      }
      all_wide = rows <= wide_rows;
    } else {
      visit(0, rows, w_rows, y_rows);
    }
  };
  // By one warp of the last block, once all norms of that step are there.
  const auto write_log = [&](int step) {
    double all[norm_count] = {};
    for (int b = lane; b < static_cast<int>(gridDim.x); b += 32)
      for (int n = 0; n < norm_count; ++n)
        all[n] += __ldcg(&arguments.partial_norms[((step & 1) * gridDim.x + b) * norm_count + n]);
    warp_sums(all);
    double* const to = arguments.log + static_cast<std::size_t>(step) * log_scalars;
    if (lane < log_scalars)
      to[lane] = lane == 1 ? all[0] : lane == 2 ? all[1] : lane == 14 ? all[2] : shared.logged[lane];
  };

  for (int step = 0;; ++step) {
    all_wide = false;
    if constexpr (leaves_parts<Product>) {
      product.multiply(arguments.y[step & 1], (step & 1) != 0);
      grid_barrier(arguments.barrier, epoch);
      product.add_up(w_rows);
    } else {
      product.run(arguments.y[step & 1], (step & 1) != 0, w_rows);
    }

    // The symmetric part of G = Y'W, Y'Y and the diagonal of W'W, over this block's rows.
    Sums<R>& sums = arguments.sums[step % 3];
    double g[PairsOfThread<R>::most] = {}, yy[PairsOfThread<R>::most] = {}, ww[PairsOfThread<R>::most] = {};
    for_rows([&](int, int count, const auto* w, const auto* y) {
      pairs.for_each([&](int n, int, int i, int j) {
        for (int row = 0; row < count; ++row) {
          const double yi = y[row * R + i], yj = y[row * R + j], wi = w[row * R + i], wj = w[row * R + j];
          g[n] = fma(yi, wj, fma(yj, wi, g[n]));
          yy[n] = fma(yi, yj, yy[n]);
          ww[n] = fma(wi, wj, ww[n]);
        }
      });
    });
    pairs.for_each([&](int n, int pair, int i, int j) {
      const double of_g = 0.5 * g[n] * scales.g, high = rint(of_g);
      atomicAdd(&sums.g[pair], fixed(high));
      atomicAdd(&sums.g_low[pair], fixed((of_g - high) * low_scale));
      atomicAdd(&sums.yy[pair], fixed(yy[n] * scales.yy));
      if (i == j) atomicAdd(&sums.ww[j], fixed(ww[n] * scales.ww));
    });
    grid_barrier(arguments.barrier, epoch);

    const auto number = [](unsigned long long v) { return static_cast<double>(static_cast<long long>(v)); };
    double of_yy[2] = {0, 0};  // ||Y'Y||^2 and ||Y||^2
    double of_column = 0;      // the second warp: ||w_j||^2/||y_j||^2 <= ||Sigma||^2
    if (warp == 1 && lane < R) {
      const double of_w = number(__ldcg(&sums.ww[lane])), of_y = number(__ldcg(&sums.yy[lane * (lane + 3) / 2]));
      of_column = of_y > 0 ? of_w / of_y * (scales.yy / scales.ww) : 0;
    }
    pairs.for_each([&](int, int pair, int i, int j) {
      // Columns that Y does not have: another direction as long as the first, by itself.
      const int from = i == j && i >= rank ? 0 : pair;
      const unsigned long long high = __ldcg(&sums.g[from]), low = __ldcg(&sums.g_low[from]);
      const double of_y = number(__ldcg(&sums.yy[pair])) * (1 / scales.yy);
      const double of_g = (number(high) + number(low) * (1 / low_scale)) * (1 / scales.g);
      shared.root.g[i * mld + j] = of_g;
      shared.root.g[j * mld + i] = of_g;
      of_yy[0] = fma(i == j ? of_y : 2 * of_y, of_y, of_yy[0]);
      if (i == j) of_yy[1] += of_y;
    });
    block_sums(of_yy, shared.root.sums);
    const double y_squared = of_yy[1];
    // What there is time for while the first warp finds the root.
    const auto meanwhile = [&] {
      if (warp == 1) {
        const double largest = warp_largest(of_column);
        if (lane == 0) {
          shared.target_norm = fmax(sqrt(largest), arguments.least_norm);
          shared.longest_squared = sqrt(of_yy[0]);
        }
        if (step > 0 && blockIdx.x == gridDim.x - 1) write_log(step - 1);
      }
      // The sums of two steps ago are read by nobody any more.
      if (warp >= 2 && blockIdx.x == 0) {
        auto* old = reinterpret_cast<unsigned long long*>(&arguments.sums[(step + 1) % 3]);
        for (int i = thread - 64; i < static_cast<int>(sizeof(Sums<R>) / 8); i += fused_threads - 64) old[i] = 0;
      }
    };
    const Root root = inverse_root<R>(arguments.polynomials.count, lowest, rank, meanwhile);
    // sqrt(lambda_min/lambda_max) >= 1/(||M|| g_norm^(1/2)); the next G is another one, at first by much.
    lowest = (step < 3 ? 0.05f : 0.6f) * rsqrtf(static_cast<float>(root.largest_squared * root.g_norm));
    // The share of the energies that may be rounding: noise ||Y||^2 ||M||^2, noise = 2 eps ||Sigma||.
    const double doubt = 2 * epsilon<T> * shared.target_norm * shared.longest_squared * root.norm_squared;
    const Ended ended = !root.converged ? Ended::not_rooted : !(doubt <= most_doubt) ? Ended::doubtful : Ended::stepped;

    // The best iterate so far is the caller's.
    const double objective = fmax(0.0, y_squared + arguments.trace - 2 * root.nuclear_norm);
    if (ended == Ended::stepped && objective <= best_objective) {
      best_objective = objective;
      for (int e = thread; e < rows * R; e += fused_threads)
        if (e % R < rank) arguments.best[product.row(e / R) * arguments.best_stride + e % R] = y_rows[e];
      __syncthreads();
    }

    // B and Y+ of this block's rows. A row is R threads' work.
    double norms[norm_count] = {};
    const bool steps_on = ended == Ended::stepped && step < arguments.steps;
    T* next_y = arguments.y[(step + 1) & 1];
    for_rows([&](int first, int count, const auto* w, const auto* y) {
      for (int e = thread; e < count * R; e += fused_threads) {
        const int row = e / R, j = e % R;
        double b = 0, bm = 0;  // of B and of BM
#pragma unroll
        for (int k = 0; k < R; ++k) {
          const double wk = w[row * R + k];
          b = fma(wk, shared.root.m[k * mld + j], b);
          bm = fma(wk, shared.root.t[k * mld + j], bm);
        }
        const double yv = y[e], stored = static_cast<T>(b);
        norms[0] += stored * stored;
        norms[1] += (stored - yv) * (stored - yv);
        norms[2] += bm * bm;
        if (steps_on) {
          const T value = static_cast<T>((1 - arguments.alpha) * yv + arguments.alpha * stored);
          y_rows[first * R + e] = value;
          Product::put_y(next_y, product.row(first + row), j, value);
        }
      }
    });
    fence_global_copies();
    block_sums(norms, shared.root.sums);
    if (thread == 0)
      for (int n = 0; n < norm_count; ++n)
        arguments.partial_norms[((step & 1) * gridDim.x + blockIdx.x) * norm_count + n] = norms[n];
    grid_barrier(arguments.barrier, epoch);
    fence_global_copies();
    if (blockIdx.x == gridDim.x - 1 && thread == 0) {
      double* logged = shared.logged;
      logged[0] = y_squared;
      logged[3] = root.nuclear_norm;
      logged[4] = root.orthogonality;
      logged[5] = root.asymmetry;
      logged[6] = root.norm_squared;
      logged[7] = root.trace;
      logged[8] = root.g_norm;
      logged[9] = shared.target_norm;
      logged[10] = shared.longest_squared;
      logged[11] = root.products;
      logged[12] = static_cast<double>(ended);
      logged[13] = objective;
    }
    if (!steps_on) {
      __syncthreads();
      if (warp == 1 && blockIdx.x == gridDim.x - 1) write_log(step);
      break;
    }
  }
  if constexpr (leaves_parts<Product>) product.finish();
#endif
}

}  // namespace
}  // namespace itspace::cuda::kernels
