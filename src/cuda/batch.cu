// SPDX-License-Identifier: Apache-2.0
#include "cuda/batch.hpp"

#include "cuda/error.hpp"
#include "cuda/fused_root.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace itspace::cuda::kernels {
namespace {

constexpr int batch_warps = 4, batch_threads = 32 * batch_warps;
// Blocks that a multiprocessor holds: with more of them registers are spilled, which costs more than it hides.
template <class T>
constexpr int blocks_at_once = sizeof(T) == 4 ? 5 : 4;

// As in fused.cu: a guess of sqrt(lambda_min/lambda_max) of the first G, and how much of an energy may be rounding.
constexpr double first_lowest = 1e-4, most_doubt = 5e-2;
// Roots are made in plain double: sizes of far from one are the general solver's.
constexpr double smallest_size = 1e-30, largest_size = 1e30;
constexpr double epsilon32 = 1.1920928955078125e-07;
template <class T>
constexpr double epsilon_of = sizeof(T) == 4 ? epsilon32 : 2.220446049250313e-16;

template <class T>
struct BatchArguments {
  BatchJob<T> job;
  FusedPolynomial polynomials[most_fused_polynomials];
  BatchLog log;
  bool by_vectors;  // Sigmas begin at multiples of 16 bytes
};

// Sums of Gram matrices: where there is one tile of 8 x 8, each warp has rows of its own; else tiles.
template <int R>
constexpr int gram_slices = R == 8 ? batch_warps : 1;

template <int R>
struct GramParts {
  double g[R * R], yy[R * R], ww[R];
};

template <int R>
struct BatchShared {
  RootWorkspace<R, batch_warps> root;  // first: root_by_block() finds it there
  GramParts<R> parts[gram_slices<R>];
  double columns[R], squares[R];
};

__host__ __device__ constexpr int up_to(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

template <class T, int R>
std::size_t shared_bytes(int dim) {
  const auto d = static_cast<std::size_t>(dim);
  return sizeof(BatchShared<R>) + (2 * static_cast<std::size_t>(up_to(dim, 8)) * R + d * d) * sizeof(T);
}

// Four values side by side, aligned.
template <class T>
struct alignas(16) Four {
  T of[4];
};

// w = Sigma y. A thread has four columns of two rows that lie 32 apart, which share what is read of y; Sigma, which is
// symmetric, is read by its columns, so that the lanes of a warp read values side by side.
template <class T, int R>
__device__ __forceinline__ void multiply_sigma(const T* sigma, const T* y, int dim, T* w) {
  const int pairs = up_to(dim, 64) / 2;
  for (int e = static_cast<int>(threadIdx.x); e < pairs * (R / 4); e += batch_threads) {
    const int pair = e % pairs, first = e / pairs * 4, row = pair / 32 * 64 + pair % 32;
    if (row >= dim) continue;
    const bool has_other = row + 32 < dim;
    const T* const here = sigma + row;
    const T* const there = has_other ? here + 32 : here;
    T sum[2][4] = {};
#pragma unroll 8
    for (int k = 0; k < dim; ++k) {
      const T s[2] = {here[k * dim], there[k * dim]};
      const Four<T> of_y = *reinterpret_cast<const Four<T>*>(y + k * R + first);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        sum[0][c] = fma(s[0], of_y.of[c], sum[0][c]);
        sum[1][c] = fma(s[1], of_y.of[c], sum[1][c]);
      }
    }
    Four<T> out[2];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      out[0].of[c] = sum[0][c];
      out[1].of[c] = sum[1][c];
    }
    *reinterpret_cast<Four<T>*>(w + row * R + first) = out[0];
    if (has_other) *reinterpret_cast<Four<T>*>(w + (row + 32) * R + first) = out[1];
  }
}

// Y'W, Y'Y and the diagonal of W'W, by tiles.
template <class T, int R>
__device__ __forceinline__ void gram_tiles(const T* y, const T* w, int dim, GramParts<R>* parts) {
  constexpr int tiles = R / 8, mine = tiles_of_warp<R, batch_warps>, slices = gram_slices<R>;
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31, quad = lane >> 2,
            k0 = lane & 3, slice = slices > 1 ? warp : 0;
  GramParts<R>& part = parts[slice];
#pragma unroll 1
  for (int m = 0; m < mine; ++m) {
    const int tile = slices > 1 ? 0 : warp * mine + m, i0 = tile / tiles * 8, j0 = tile % tiles * 8;
    double g[2] = {0, 0}, yy[2] = {0, 0}, ww = 0;
    for (int row = 4 * slice + k0; row < up_to(dim, 8); row += 4 * slices) {
      const double yi = y[row * R + i0 + quad], yj = y[row * R + j0 + quad], wj = w[row * R + j0 + quad];
      multiply_double_tile(g, yi, wj);
      multiply_double_tile(yy, yi, yj);
      ww = fma(wj, wj, ww);
    }
    const int at = (i0 + quad) * R + j0 + 2 * k0;
    part.g[at] = g[0];
    part.g[at + 1] = g[1];
    part.yy[at] = yy[0];
    part.yy[at + 1] = yy[1];
    ww += __shfl_xor_sync(~0u, ww, 1);
    ww += __shfl_xor_sync(~0u, ww, 2);
    if (i0 == j0 && k0 == 0) part.ww[j0 + quad] = ww;
  }
}

// Sigma as the steps need it, and what is known of it.
struct Seen {
  double trace;
  bool is_covariance;
};

// Averages Sigma with its transpose. What no rounding of float explains, or is not finite, is not taken.
template <class T>
__device__ Seen symmetrise(T* sigma, int dim, double (&scratch)[batch_warps][4]) {
  const int thread = static_cast<int>(threadIdx.x);
  T largest = 0, apart = 0, negative = 0;
  double trace[1] = {0};
  bool finite = true;
  // Pairs (i, i + s mod d): lanes meet no bank twice in either of the two.
  const int half = dim / 2, rows = up_to(dim, 32), groups = rows < batch_threads ? batch_threads / rows : 1;
  for (int i = thread % rows; i < dim && thread < rows * groups; i += batch_threads) {
    for (int s = 1 + thread / rows; s <= half; s += groups) {
      if (2 * s == dim && i >= half) continue;  // its pair is another thread's
      const int j = i + s < dim ? i + s : i + s - dim;
      const T a = sigma[i * dim + j], b = sigma[j * dim + i];
      const T difference = a - b;
      finite = finite && difference - difference == 0;  // neither NaN nor infinite
      largest = fmax(largest, fmax(fabs(a), fabs(b)));
      if (difference != 0) {
        sigma[i * dim + j] = sigma[j * dim + i] = (a + b) / 2;
        apart = fmax(apart, fabs(difference));
      }
    }
    if (thread / rows == 0) {
      const T variance = sigma[i * dim + i];
      finite = finite && isfinite(variance);
      largest = fmax(largest, fabs(variance));
      negative = fmax(negative, -variance);
      trace[0] += variance;
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    largest = fmax(largest, __shfl_xor_sync(~0u, largest, offset));
    apart = fmax(apart, __shfl_xor_sync(~0u, apart, offset));
    negative = fmax(negative, __shfl_xor_sync(~0u, negative, offset));
  }
  if ((thread & 31) == 0) {
    scratch[thread >> 5][1] = largest;
    scratch[thread >> 5][2] = apart;
    scratch[thread >> 5][3] = negative;
  }
  finite = __syncthreads_and(finite);
  for (int v = 0; v < batch_warps; ++v) {
    largest = fmax(largest, static_cast<T>(scratch[v][1]));
    apart = fmax(apart, static_cast<T>(scratch[v][2]));
    negative = fmax(negative, static_cast<T>(scratch[v][3]));
  }
  block_sums(trace, scratch);
  const double limit = dim * epsilon32 * largest;
  return {trace[0], finite && apart <= limit && negative <= limit};
}

// One problem. See batch.hpp.
template <class T, int R>
__global__ void __launch_bounds__(batch_threads, blocks_at_once<T>)
    batch_steps(const __grid_constant__ BatchArguments<T> arguments) {
  extern __shared__ __align__(128) unsigned char memory[];
  BatchShared<R>& shared = *reinterpret_cast<BatchShared<R>*>(memory);
  const BatchJob<T>& job = arguments.job;
  const int thread = static_cast<int>(threadIdx.x), warp = thread >> 5, lane = thread & 31;
  const int dim = job.dim, rank = job.rank, rows = up_to(dim, 8);
  T* const y = reinterpret_cast<T*>(memory + sizeof(BatchShared<R>));
  T* const w = y + rows * R;
  T* const sigma = w + rows * R;
  constexpr int mld = m_stride<R>;
  const auto problem = static_cast<std::size_t>(blockIdx.x), block = static_cast<std::size_t>(dim) * rank;
  const T* const given = job.sigma + problem * dim * dim;
  const T* const start = job.start + (job.is_multiplied ? 0 : problem * block);
  T* const result = job.y + problem * block;
  FusedRow* const log = arguments.log.rows + problem * (job.steps + 1);

  if (arguments.by_vectors) {
    constexpr int per = 16 / static_cast<int>(sizeof(T));
    const auto* from = reinterpret_cast<const int4*>(given);
    auto* to = reinterpret_cast<int4*>(sigma);
#pragma unroll 8
    for (int e = thread; e < dim * dim / per; e += batch_threads) to[e] = from[e];
  } else {
#pragma unroll 8
    for (int e = thread; e < dim * dim; e += batch_threads) sigma[e] = given[e];
  }
  for (int i = thread; i < job.polynomial_count; i += batch_threads)
    shared.root.polynomials[i] = arguments.polynomials[i];
  for (int e = thread; e < rows * R; e += batch_threads) {
    const int row = e / R, column = e % R;
    y[e] = row < dim && column < rank ? start[row * rank + column] : T(0);
    w[e] = T(0);
  }
  __syncthreads();
  const Seen seen = symmetrise(sigma, dim, shared.root.sums);
  const double trace = seen.trace;
  if (thread == 0) arguments.log.traces[problem] = trace;
  __syncthreads();
  bool is_plain = seen.is_covariance && trace > smallest_size && trace < largest_size;

  if (job.is_multiplied && is_plain) {
    multiply_sigma<T, R>(sigma, y, dim, w);
    __syncthreads();
    double square[1] = {0};
    for (int e = thread; e < rows * R; e += batch_threads)
      square[0] = fma(static_cast<double>(w[e]), static_cast<double>(w[e]), square[0]);
    block_sums(square, shared.root.sums);
    const double inverse = 1 / sqrt(square[0]), size = sqrt(trace);
    is_plain = square[0] > 0;  // NaN is not
    for (int e = thread; e < rows * R; e += batch_threads) y[e] = static_cast<T>(static_cast<T>(w[e] * inverse) * size);
    __syncthreads();
  }

  double lowest = first_lowest, best_objective = INFINITY;
  for (int step = 0;; ++step) {
    multiply_sigma<T, R>(sigma, y, dim, w);
    __syncthreads();
    gram_tiles<T, R>(y, w, dim, shared.parts);
    __syncthreads();
    double yy_squares[1] = {0};
    for (int e = thread; e < R * R; e += batch_threads) {
      const int i = e / R, j = e % R, f = j * R + i;
      double a = 0, b = 0, yy = 0;
#pragma unroll
      for (int s = 0; s < gram_slices<R>; ++s) {
        a += shared.parts[s].g[e];
        b += shared.parts[s].g[f];
        yy += shared.parts[s].yy[e];
      }
      shared.root.g[i * mld + j] = 0.5 * (a + b);
      yy_squares[0] += yy * yy;
      if (i == j) {
        double ww = 0;
#pragma unroll
        for (int s = 0; s < gram_slices<R>; ++s) ww += shared.parts[s].ww[i];
        // ||w_j||^2/||y_j||^2 <= ||Sigma||^2.
        shared.columns[i] = yy > 0 ? ww / yy : 0;
        shared.squares[i] = yy;
      }
    }
    block_sums(yy_squares, shared.root.sums);
    // Columns that Y does not have: another direction as long as the first, by itself.
    if (thread >= rank && thread < R) shared.root.g[thread * mld + thread] = shared.root.g[0];
    double target_norm = 0, y_squared = 0;
    for (int j = 0; j < rank; ++j) {
      target_norm = fmax(target_norm, shared.columns[j]);
      y_squared += shared.squares[j];
    }
    target_norm = fmax(sqrt(target_norm), trace / sqrt(static_cast<double>(dim)));
    const double longest_squared = sqrt(yy_squares[0]);  // >= ||Y||_2^2
    is_plain = is_plain && y_squared > smallest_size && y_squared < largest_size;
    __syncthreads();
    if (!is_plain) {
      if (thread == 0) log[step].certifiable = false;
      return;
    }
    const Root root = root_by_block<R, batch_warps>(job.polynomial_count, lowest, rank);
    // sqrt(lambda_min/lambda_max) >= 1/sqrt(||M||^2 g_norm); the next G is another one, at first by much.
    lowest = (step < 3 ? 0.05f : 0.6f) * rsqrtf(static_cast<float>(root.norm_squared * root.g_norm));
    // The share of the energies that may be rounding: noise ||Y||^2 ||M||^2, noise = 2 eps ||Sigma||.
    const double doubt = 2 * epsilon_of<T> * target_norm * longest_squared * root.norm_squared;
    const bool certifiable = root.converged && doubt <= most_doubt;
    const double objective = fmax(0.0, y_squared + trace - 2 * root.nuclear_norm);
    if (certifiable && objective <= best_objective) {
      best_objective = objective;
      for (int e = thread; e < dim * rank; e += batch_threads) result[e] = y[e / rank * R + e % rank];
    }
    __syncthreads();

    // B, BM and Y+ by tiles of 8 x 8.
    const bool steps_on = certifiable && step < job.steps;
    const int quad = lane >> 2, k0 = lane & 3;
    double norms[3] = {0, 0, 0};
    for (int tile = warp; tile < rows / 8; tile += batch_warps) {
      const int row = tile * 8 + quad;
      double of_w[R / 4];
#pragma unroll
      for (int k = 0; k < R / 4; ++k) of_w[k] = w[row * R + 4 * k + k0];
#pragma unroll
      for (int column = 0; column < R; column += 8) {
        double b[2] = {0, 0}, bm[2] = {0, 0};
#pragma unroll
        for (int k = 0; k < R / 4; ++k) {
          multiply_double_tile(b, of_w[k], shared.root.m[(4 * k + k0) * mld + column + quad]);
          multiply_double_tile(bm, of_w[k], shared.root.t[(4 * k + k0) * mld + column + quad]);
        }
        T* const here = y + row * R + column + 2 * k0;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const double yv = here[n], stored = static_cast<T>(b[n]);
          norms[0] += stored * stored;
          norms[1] += (stored - yv) * (stored - yv);
          norms[2] += bm[n] * bm[n];
          if (steps_on) here[n] = static_cast<T>((1 - job.alpha) * yv + job.alpha * stored);
        }
      }
    }
    block_sums(norms, shared.root.sums);
    if (thread == 0) {
      FusedRow row;
      row.objective = objective;
      row.y_squared = y_squared;
      row.b_squared = norms[0];
      row.difference_squared = norms[1];
      row.nuclear_norm = root.nuclear_norm;
      row.orthogonality = root.orthogonality;
      row.asymmetry = root.asymmetry;
      row.root_norm_squared = root.norm_squared;
      row.root_trace = root.trace;
      row.doubtful_image = norms[2];
      row.g_norm = root.g_norm;
      row.target_norm = target_norm;
      row.longest_squared = longest_squared;
      row.products = root.products;
      row.certifiable = certifiable;
      log[step] = row;
    }
    if (!steps_on) return;
  }
}

template <class T, int R>
bool takes_with(int dim) {
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "asking for the current device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory");
  return shared_bytes<T, R>(dim) <= static_cast<std::size_t>(most);
}

template <class T, int R>
void launch_with(cudaStream_t stream, const BatchJob<T>& job, const BatchLog& log) {
  BatchArguments<T> arguments{};
  arguments.job = job;
  arguments.job.polynomial_count = std::min(job.polynomial_count, most_fused_polynomials);
  std::copy_n(job.polynomials, arguments.job.polynomial_count, arguments.polynomials);
  arguments.log = log;
  constexpr std::uintptr_t unit = 16;
  arguments.by_vectors =
      reinterpret_cast<std::uintptr_t>(job.sigma) % unit == 0 &&
      static_cast<std::uintptr_t>(job.dim) * static_cast<std::uintptr_t>(job.dim) * sizeof(T) % unit == 0;
  const std::size_t bytes = shared_bytes<T, R>(job.dim);
  void* const kernel = reinterpret_cast<void*>(batch_steps<T, R>);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "asking for shared memory");
  batch_steps<T, R><<<static_cast<unsigned>(job.count), batch_threads, bytes, stream>>>(arguments);
  check_launch("launching the steps of a batch");
}

}  // namespace

template <class T>
bool takes_batch(int dim, int rank) {
  if (dim < 1 || rank < 1 || rank > most_fused_rank) return false;
  return rank <= 8 ? takes_with<T, 8>(dim) : rank <= 16 ? takes_with<T, 16>(dim) : takes_with<T, 32>(dim);
}
template <class T>
void launch_batch(cudaStream_t stream, const BatchJob<T>& job, const BatchLog& log) {
  if (job.count <= 0) return;
  if (job.rank <= 8) return launch_with<T, 8>(stream, job, log);
  if (job.rank <= 16) return launch_with<T, 16>(stream, job, log);
  launch_with<T, 32>(stream, job, log);
}

template bool takes_batch<float>(int, int);
template bool takes_batch<double>(int, int);
template void launch_batch(cudaStream_t, const BatchJob<float>&, const BatchLog&);
template void launch_batch(cudaStream_t, const BatchJob<double>&, const BatchLog&);

}  // namespace itspace::cuda::kernels
