// SPDX-License-Identifier: Apache-2.0
#include "cuda/fused.hpp"

#include "cuda/error.hpp"
#include "cuda/fused_root.cuh"
#include "cuda/row_product.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace itspace::cuda::kernels {
namespace {

constexpr int log_scalars = 16, norm_count = 3;
enum class Ended { no, stepped, not_rooted, doubtful };

// A guess of sqrt(lambda_min/lambda_max) of the first G; and how much of an energy may be rounding.
[[maybe_unused]] constexpr double first_lowest = 1e-4, most_doubt = 5e-2;
template <class T>
constexpr double epsilon = sizeof(T) == 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16;

struct PolynomialList {
  FusedPolynomial of[most_fused_polynomials];
  int count;
};

// Sums in fixed point: added in any order they are the same. G has a second word for the digits below the first.
template <int R>
struct alignas(128) Sums {
  unsigned long long g[R * R], g_low[R * R], yy[R * R], ww[R];
};
[[maybe_unused]] constexpr double low_scale = 1099511627776.0;  // 2^40

struct Scales {
  double g, yy, ww;  // units in one
};

template <class T, int R>
struct Arguments {
  CUtensorMap sigma;  // boxes of tile_rows x round_columns
  RowLayout layout;
  int rank, steps;
  T* caller_y;
  std::size_t caller_stride;
  T* y[2];        // dim x R, by y_place(); rows to a multiple of 512, of zeros
  Sums<R>* sums;  // three: used, read, cleared
  unsigned* barrier;
  double* partial_norms;  // [2][blocks][norm_count]
  double* log;            // [steps + 1][log_scalars]
  Scales scales;
  double alpha;
  double trace;       // of Sigma
  double least_norm;  // of Sigma, from its trace
  PolynomialList polynomials;
};

template <class T, int R>
struct Shared {
  RootWorkspace<R> root;  // first: inverse_root() finds it there
  RowShared<T, R> product;
  double columns[R], squares[R];
};

[[maybe_unused]] __device__ __forceinline__ unsigned long long fixed(double v) {
  return static_cast<unsigned long long>(__double2ll_rn(v));
}

// The steps. See fused.hpp.
template <class T, int R>
__global__ void __launch_bounds__(fused_threads, 1) fused_steps(const __grid_constant__ Arguments<T, R> arguments) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  Shared<T, R>& shared = *reinterpret_cast<Shared<T, R>*>(memory);
  T* const w_rows = reinterpret_cast<T*>(memory + sizeof(Shared<T, R>));  // this block's rows of W
  T* const y_rows = w_rows + arguments.layout.rows_per_block * R;         // and of Y
  constexpr int mld = m_stride<R>;
  const int thread = threadIdx.x;
  RowProduct<T, R> product(&arguments.sigma, arguments.layout,
                           reinterpret_cast<T*>(memory + arguments.layout.stages_at), shared.product);
  const int first_row = product.first_row(), rows = product.rows();
  double lowest = first_lowest, best_objective = INFINITY;
  unsigned epoch = 0;
  for (int i = thread; i < arguments.polynomials.count; i += fused_threads)
    shared.root.polynomials[i] = arguments.polynomials.of[i];
  // Y comes in as the caller has it and is kept with R columns.
  for (int e = thread; e < rows * R; e += fused_threads) {
    const int row = first_row + e / R, column = e % R;
    const T value = column < arguments.rank ? arguments.caller_y[row * arguments.caller_stride + column] : T(0);
    y_rows[e] = value;
    arguments.y[0][y_place<T, R>(row, column)] = value;
  }
  fence_copies();
  grid_barrier(arguments.barrier, epoch);
  fence_copies();
  product.wait_for_resident_rows();

  for (int step = 0;; ++step) {
    product.run(arguments.y[step & 1], (step & 1) != 0, w_rows);

    // G = Y'W, Y'Y and the diagonal of W'W, over this block's rows.
    Sums<R>& sums = arguments.sums[step % 3];
    for (int e = thread; e < R * R; e += fused_threads) {
      const int i = e / R, j = e % R;
      double g = 0, yy = 0, ww = 0;
      for (int row = 0; row < rows; ++row) {
        const double yi = y_rows[row * R + i], yj = y_rows[row * R + j], wj = w_rows[row * R + j];
        g = fma(yi, wj, g);
        yy = fma(yi, yj, yy);
        if (i == 0) ww = fma(wj, wj, ww);
      }
      const double high = rint(g * arguments.scales.g);
      atomicAdd(&sums.g[e], fixed(high));
      atomicAdd(&sums.g_low[e], fixed(fma(g, arguments.scales.g, -high) * low_scale));
      atomicAdd(&sums.yy[e], fixed(yy * arguments.scales.yy));
      if (i == 0) atomicAdd(&sums.ww[j], fixed(ww * arguments.scales.ww));
    }
    grid_barrier(arguments.barrier, epoch);

    const auto number = [](unsigned long long v) { return static_cast<double>(static_cast<long long>(v)); };
    for (int e = thread; e < R * R; e += fused_threads) {
      const int i = e / R, j = e % R, f = j * R + i;
      const double a = number(__ldcg(&sums.g[e])) + number(__ldcg(&sums.g_low[e])) / low_scale;
      const double b = number(__ldcg(&sums.g[f])) + number(__ldcg(&sums.g_low[f])) / low_scale;
      shared.root.g[i * mld + j] = 0.5 * (a + b) / arguments.scales.g;
    }
    __syncthreads();
    double yy_squares[1] = {0};
    for (int e = thread; e < R * R; e += fused_threads) {
      const double yy = number(__ldcg(&sums.yy[e])) / arguments.scales.yy;
      yy_squares[0] += yy * yy;
    }
    if (thread < R) {
      // ||w_j||^2/||y_j||^2 <= ||Sigma||^2.
      const double ww = number(__ldcg(&sums.ww[thread])) / arguments.scales.ww;
      const double yy = number(__ldcg(&sums.yy[thread * R + thread])) / arguments.scales.yy;
      shared.columns[thread] = yy > 0 ? ww / yy : 0;
      shared.squares[thread] = yy;
    }
    block_sums(yy_squares, shared.root.sums);
    // Columns that Y does not have: another direction as long as the first, by itself.
    const int rank = arguments.rank;
    if (thread >= rank && thread < R) shared.root.g[thread * mld + thread] = shared.root.g[0];
    double target_norm = 0;
    double y_squared = 0;
    for (int j = 0; j < rank; ++j) {
      target_norm = fmax(target_norm, shared.columns[j]);
      y_squared += shared.squares[j];
    }
    target_norm = fmax(sqrt(target_norm), arguments.least_norm);
    const double longest_squared = sqrt(yy_squares[0]);  // >= ||Y||_2^2
    // The sums of two steps ago are read by nobody any more.
    if (blockIdx.x == 0) {
      auto* old = reinterpret_cast<unsigned long long*>(&arguments.sums[(step + 1) % 3]);
      for (int i = thread; i < static_cast<int>(sizeof(Sums<R>) / 8); i += fused_threads) old[i] = 0;
    }
    __syncthreads();
    const Root root = inverse_root<R>(arguments.polynomials.count, lowest, rank);
    // sqrt(lambda_min/lambda_max) >= 1/sqrt(||M||^2 g_norm); the next G is another one, at first by much.
    lowest = (step < 3 ? 0.05f : 0.6f) * rsqrtf(static_cast<float>(root.norm_squared * root.g_norm));
    // The share of the energies that may be rounding: noise ||Y||^2 ||M||^2, noise = 2 eps ||Sigma||.
    const double doubt = 2 * epsilon<T> * target_norm * longest_squared * root.norm_squared;
    const Ended ended = !root.converged ? Ended::not_rooted : !(doubt <= most_doubt) ? Ended::doubtful : Ended::stepped;

    // The best iterate so far is the caller's.
    const double objective = fmax(0.0, y_squared + arguments.trace - 2 * root.nuclear_norm);
    if (ended == Ended::stepped && objective <= best_objective) {
      best_objective = objective;
      for (int e = thread; e < rows * R; e += fused_threads)
        if (e % R < rank) arguments.caller_y[(first_row + e / R) * arguments.caller_stride + e % R] = y_rows[e];
      __syncthreads();
    }

    // B and Y+ of this block's rows. A row is R threads' work.
    double norms[norm_count] = {};
    const bool steps_on = ended == Ended::stepped && step < arguments.steps;
    T* next_y = arguments.y[(step + 1) & 1];
    for (int e = thread; e < rows * R; e += fused_threads) {
      const int row = e / R, j = e % R;
      double b = 0, bm = 0;  // of B and of BM
#pragma unroll
      for (int k = 0; k < R; ++k) {
        const double wk = w_rows[row * R + k];
        b = fma(wk, shared.root.m[k * mld + j], b);
        bm = fma(wk, shared.root.t[k * mld + j], bm);
      }
      const double yv = y_rows[row * R + j], stored = static_cast<T>(b);
      norms[0] += stored * stored;
      norms[1] += (stored - yv) * (stored - yv);
      norms[2] += bm * bm;
      if (steps_on) {
        const T value = static_cast<T>((1 - arguments.alpha) * yv + arguments.alpha * stored);
        y_rows[e] = value;
        next_y[y_place<T, R>(first_row + row, j)] = value;
      }
    }
    fence_copies();
    block_sums(norms, shared.root.sums);
    if (thread == 0)
      for (int n = 0; n < norm_count; ++n)
        arguments.partial_norms[((step & 1) * gridDim.x + blockIdx.x) * norm_count + n] = norms[n];
    grid_barrier(arguments.barrier, epoch);
    fence_copies();

    if (blockIdx.x == gridDim.x - 1) {
      double* log = arguments.log + static_cast<std::size_t>(step) * log_scalars;
      double all_norms[norm_count] = {};
      for (int b = thread; b < static_cast<int>(gridDim.x); b += fused_threads)
        for (int n = 0; n < norm_count; ++n)
          all_norms[n] += __ldcg(&arguments.partial_norms[((step & 1) * gridDim.x + b) * norm_count + n]);
      block_sums(all_norms, shared.root.sums);
      if (thread == 0) {
        log[0] = y_squared;
        log[13] = objective;
        log[14] = all_norms[2];
        log[1] = all_norms[0];
        log[2] = all_norms[1];
        log[3] = root.nuclear_norm;
        log[4] = root.orthogonality;
        log[5] = root.asymmetry;
        log[6] = root.norm_squared;
        log[7] = root.trace;
        log[8] = root.g_norm;
        log[9] = target_norm;
        log[10] = longest_squared;
        log[11] = root.products;
        log[12] = static_cast<double>(ended);
      }
    }
    if (!steps_on) break;
  }
#endif
}

// W and Y of a block's rows lie before the stages.
template <class T, int R>
ProductLayout<T, R> layout_of(int dim, const Limits& limits) {
  return {dim, limits, sizeof(Shared<T, R>), 2 * R * sizeof(T), true};
}

struct Memory {
  std::size_t y, sums, barrier, norms, total;  // where each begins

  template <class T, int R>
  static Memory of(const ProductLayout<T, R>& layout, int dim) {
    const auto round_up = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    Memory m{};
    m.sums = 2 * padded_rows(dim) * R * sizeof(T);
    m.barrier = m.sums + round_up(3 * sizeof(Sums<R>));
    m.norms = m.barrier + 256;
    m.total = m.norms + static_cast<std::size_t>(2) * layout.blocks * norm_count * sizeof(double);
    return m;
  }
};

template <class T, int R>
FusedPlan plan_with(int dim, int steps) {
  const Limits limits = limits_of_device();
  if (limits.major != 9) return {};
  const ProductLayout<T, R> layout = layout_of<T, R>(dim, limits);
  if (!layout.fits) return {};
  return {true, Memory::of(layout, dim).total, static_cast<std::size_t>(steps + 1) * log_scalars};
}

// A power of two that brings numbers up to `bound` into 62 bits.
double units_for(double bound) {
  return std::ldexp(1.0, 60 - std::ilogb(bound));
}

template <class T, int R>
bool launch_with(cudaStream_t stream, const FusedJob<T>& job, unsigned char* memory, double* log) {
  const Limits limits = limits_of_device();
  const ProductLayout<T, R> layout = layout_of<T, R>(job.dim, limits);
  const Memory places = Memory::of(layout, job.dim);
  Arguments<T, R> arguments{};
  if (!describe_sigma(job.sigma, job.stride, job.dim, layout.tile_rows, &arguments.sigma)) return false;
  arguments.layout = layout.rows;
  arguments.rank = job.rank;
  arguments.steps = job.steps;
  arguments.caller_y = job.y;
  arguments.caller_stride = job.y_stride;
  arguments.y[0] = reinterpret_cast<T*>(memory);
  arguments.y[1] = reinterpret_cast<T*>(memory + places.sums / 2);
  arguments.sums = reinterpret_cast<Sums<R>*>(memory + places.sums);
  arguments.barrier = reinterpret_cast<unsigned*>(memory + places.barrier);
  arguments.partial_norms = reinterpret_cast<double*>(memory + places.norms);
  arguments.log = log;
  // ||Y|| stays below this: ||Y+|| <= |1 - alpha| ||Y|| + alpha (tr Sigma)^(1/2).
  const double growth = job.alpha <= 1 ? 1 : job.alpha / (2 - job.alpha);
  const double most_y = 1.01 * std::max(job.y_squared, growth * growth * job.trace);
  arguments.scales = {units_for(most_y * job.trace), units_for(most_y), units_for(most_y * job.trace * job.trace)};
  arguments.alpha = job.alpha;
  arguments.trace = job.trace;
  arguments.least_norm = job.trace / std::sqrt(static_cast<double>(job.dim));
  arguments.polynomials.count = std::min(job.polynomial_count, most_fused_polynomials);
  std::copy_n(job.polynomials, arguments.polynomials.count, arguments.polynomials.of);
  for (int k = 0; k <= job.steps; ++k) log[static_cast<std::size_t>(k) * log_scalars + 12] = 0;

  check(cudaMemsetAsync(memory + places.sums, 0, places.norms - places.sums, stream), "clearing sums");
  // Rows of Y beyond the last are zeros.
  const std::size_t used = static_cast<std::size_t>(job.dim) * R * sizeof(T);
  if (used < places.sums / 2)
    for (T* y : arguments.y)
      check(cudaMemsetAsync(reinterpret_cast<unsigned char*>(y) + used, 0, places.sums / 2 - used, stream),
            "clearing rows");
  void* const kernel = reinterpret_cast<void*>(fused_steps<T, R>);
  check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(layout.shared_bytes)),
      "asking for shared memory");
  void* list[] = {&arguments};
  check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(layout.blocks)), dim3(fused_threads), list,
                                    layout.shared_bytes, stream),
        "launching the fused steps");
  return true;
}

}  // namespace

template <class T>
FusedPlan plan_fused(int dim, int rank, int steps) {
  return rank <= 16 ? plan_with<T, 16>(dim, steps) : plan_with<T, 32>(dim, steps);
}
template <class T>
bool launch_fused(cudaStream_t stream, const FusedJob<T>& job, unsigned char* memory, double* log) {
  return job.rank <= 16 ? launch_with<T, 16>(stream, job, memory, log) : launch_with<T, 32>(stream, job, memory, log);
}
std::vector<FusedRow> read_fused(const double* log, int steps) {
  std::vector<FusedRow> rows;
  for (int k = 0; k <= steps; ++k) {
    const double* at = log + static_cast<std::size_t>(k) * log_scalars;
    if (at[12] == static_cast<double>(Ended::no)) break;
    FusedRow row;
    row.y_squared = at[0];
    row.b_squared = at[1];
    row.difference_squared = at[2];
    row.nuclear_norm = at[3];
    row.orthogonality = at[4];
    row.asymmetry = at[5];
    row.root_norm_squared = at[6];
    row.root_trace = at[7];
    row.g_norm = at[8];
    row.target_norm = at[9];
    row.longest_squared = at[10];
    row.products = static_cast<int>(at[11]);
    row.certifiable = at[12] == static_cast<double>(Ended::stepped);
    row.objective = at[13];
    row.doubtful_image = at[14];
    rows.push_back(row);
  }
  return rows;
}

template FusedPlan plan_fused<float>(int, int, int);
template FusedPlan plan_fused<double>(int, int, int);
template bool launch_fused(cudaStream_t, const FusedJob<float>&, unsigned char*, double*);
template bool launch_fused(cudaStream_t, const FusedJob<double>&, unsigned char*, double*);

}  // namespace itspace::cuda::kernels
