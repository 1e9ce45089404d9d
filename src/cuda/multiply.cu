// SPDX-License-Identifier: Apache-2.0
//
// The product of a block with a small matrix.
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {
namespace {

// out rows [first, first + rows) = a m, with both factors on the chip in double, the rows column after column: they are
// read whole before one of `out` is written, so that the two may share memory. A thread makes 4 x 2 values.
constexpr int tile_rows = 4, tile_cols = 2, row_padding = 2;

template <class T>
__global__ void multiply_held(In<T> a, const double* __restrict__ m, Out<T> out, bool add, int rows_per_block) {
  extern __shared__ double chip[];
  const int p = static_cast<int>(a.cols), q = static_cast<int>(out.cols);
  const int stride = rows_per_block + row_padding, pairs = (q + 1) / tile_cols, width = pairs * tile_cols;
  double *held = chip, *factors = chip + p * stride;
  const Index first = static_cast<Index>(blockIdx.x) * rows_per_block;
  const int rows = static_cast<int>(a.rows - first < rows_per_block ? a.rows - first : rows_per_block);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int i = warp; i < rows_per_block; i += warps)
    for (int k = lane; k < p; k += 32)
      held[k * stride + i] = i < rows ? static_cast<double>(a.data[(first + i) * a.stride + k]) : 0;
  for (int k = warp; k < p; k += warps)
    for (int j = lane; j < width; j += 32) factors[k * width + j] = j < q ? m[k * q + j] : 0;
  __syncthreads();
  for (int e = threadIdx.x; e < rows_per_block / tile_rows * pairs; e += blockDim.x) {
    const int i0 = e / pairs * tile_rows, j0 = e % pairs * tile_cols;
    double sum[tile_rows][tile_cols] = {};
#pragma unroll 4
    for (int k = 0; k < p; ++k) {
      const double2 factor = *reinterpret_cast<const double2*>(factors + k * width + j0);
      const double2 low = *reinterpret_cast<const double2*>(held + k * stride + i0);
      const double2 high = *reinterpret_cast<const double2*>(held + k * stride + i0 + 2);
      const double x[tile_rows] = {low.x, low.y, high.x, high.y};
#pragma unroll
      for (int i = 0; i < tile_rows; ++i) {
        sum[i][0] = fma(x[i], factor.x, sum[i][0]);
        sum[i][1] = fma(x[i], factor.y, sum[i][1]);
      }
    }
#pragma unroll
    for (int i = 0; i < tile_rows; ++i)
#pragma unroll
      for (int j = 0; j < tile_cols; ++j) {
        if (i0 + i >= rows || j0 + j >= q) continue;
        T* to = out.data + (first + i0 + i) * out.stride + j0 + j;
        *to = static_cast<T>(add ? static_cast<double>(*to) + sum[i][j] : sum[i][j]);
      }
  }
}

// For factors of so few values that two blocks of threads share a multiprocessor.
constexpr Index most_held_bytes = 100 * 1024, usual_chip_bytes = 48 * 1024, most_held_rows = 32, fewest_held_rows = 8;
constexpr Index wanted_blocks = 256;

template <class T>
bool launch_held(cudaStream_t stream, In<T> a, const double* m, Out<T> out, bool add) {
  const auto bytes = [&](Index rows) {
    return a.cols * (rows + row_padding + over(out.cols, tile_cols) * tile_cols) * static_cast<Index>(sizeof(double));
  };
  Index rows = most_held_rows;
  while (rows > fewest_held_rows && (bytes(rows) > most_held_bytes || over(a.rows, rows) < wanted_blocks)) rows /= 2;
  if (a.cols <= 0 || bytes(rows) > most_held_bytes) return false;
  if (bytes(rows) > usual_chip_bytes)
    check(cudaFuncSetAttribute(multiply_held<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(most_held_bytes)),
          "asking for memory on the chip");
  multiply_held<T>
      <<<static_cast<unsigned>(over(a.rows, rows)), threads_per_block, static_cast<std::size_t>(bytes(rows)), stream>>>(
          a, m, out, add, static_cast<int>(rows));
  check_launch("launching a product with a small matrix");
  return true;
}

// The same for larger ones: a block of threads holds so many values of `a` alone on the chip.
constexpr Index chip_bytes = usual_chip_bytes;
constexpr Index most_rows_on_chip = 32;
constexpr int rows_per_thread = 4;

// out rows [first, first + rows) = a m. The rows of `a` are read whole before one of `out` is written, so that the two
// may share memory; where they do not share, rows that do not fit on the chip are read where they are.
template <class T, bool on_chip>
__global__ void multiply_rows(In<T> a, const double* __restrict__ m, Out<T> out, bool add, int rows_per_block) {
  extern __shared__ double chip[];
  T* held = reinterpret_cast<T*>(chip);
  const Index first = static_cast<Index>(blockIdx.x) * rows_per_block;
  const int rows = static_cast<int>(a.rows - first < rows_per_block ? a.rows - first : rows_per_block);
  const Index p = a.cols, q = out.cols;
  if (on_chip) {
    for (Index e = threadIdx.x; e < rows * p; e += blockDim.x) {
      const Index i = e / p, k = e - i * p;
      held[e] = a.data[(first + i) * a.stride + k];
    }
    __syncthreads();
  }
  const Index groups = (rows + rows_per_thread - 1) / rows_per_thread;
  for (Index e = threadIdx.x; e < groups * q; e += blockDim.x) {
    const Index j = e % q;
    const int i0 = static_cast<int>(e / q) * rows_per_thread;
    double sum[rows_per_thread] = {};
    const T* row[rows_per_thread];
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const int known = i0 + i < rows ? i0 + i : rows - 1;
      row[i] = on_chip ? held + known * p : a.data + (first + known) * a.stride;
    }
    for (Index k = 0; k < p; ++k) {
      const double factor = m[k * q + j];
#pragma unroll
      for (int i = 0; i < rows_per_thread; ++i) sum[i] = fma(static_cast<double>(row[i][k]), factor, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      if (i0 + i >= rows) break;
      T* to = out.data + (first + i0 + i) * out.stride + j;
      *to = static_cast<T>(add ? static_cast<double>(*to) + sum[i] : sum[i]);
    }
  }
}

// Whether rows of the two may be in the same memory.
template <class T>
bool share_memory(In<T> a, Out<T> out) {
  const T* a_end = a.data + (a.rows - 1) * a.stride + a.cols;
  const T* out_end = out.data + (out.rows - 1) * out.stride + out.cols;
  return a.data < out_end && out.data < a_end;
}

}  // namespace

template <class T>
bool multiply(cudaStream_t stream, In<T> a, const double* m, Out<T> out, bool add) {
  if (out.rows <= 0 || out.cols <= 0 || launch_held(stream, a, m, out, add)) return true;
  const Index row_bytes = a.cols * static_cast<Index>(sizeof(T));
  constexpr auto what = "launching a product with a small matrix";
  if (row_bytes > chip_bytes) {
    if (share_memory(a, out)) return false;
    const int rows = rows_per_thread;
    multiply_rows<T, false>
        <<<static_cast<unsigned>(over(a.rows, rows)), threads_per_block, 0, stream>>>(a, m, out, add, rows);
    check_launch(what);
    return true;
  }
  Index rows = row_bytes > 0 ? chip_bytes / row_bytes : most_rows_on_chip;
  if (rows > most_rows_on_chip) rows = most_rows_on_chip;
  // Enough blocks to fill the device, and no more rows than the threads of a block can work on at a time.
  while (rows > rows_per_thread &&
         (over(rows, rows_per_thread) * out.cols > 2 * threads_per_block || over(a.rows, rows) < wanted_blocks))
    rows /= 2;
  multiply_rows<T, true>
      <<<static_cast<unsigned>(over(a.rows, rows)), threads_per_block, static_cast<std::size_t>(rows * row_bytes),
         stream>>>(a, m, out, add, static_cast<int>(rows));
  check_launch(what);
  return true;
}

template bool multiply<float>(cudaStream_t, In<float>, const double*, Out<float>, bool);
template bool multiply<double>(cudaStream_t, In<double>, const double*, Out<double>, bool);

}  // namespace itspace::cuda::kernels
