// SPDX-License-Identifier: Apache-2.0
//
// The product of a block with a small matrix.
#include "cuda/double_tile.cuh"
#include "cuda/launch.cuh"

#include <cuda_pipeline.h>

namespace itspace::cuda::kernels {
namespace {

// out = a m by the tensor cores in double, both factors on the chip: the rows of a block of threads are read whole
// before one of `out` is written, so that the two may share memory. A warp has eight rows, and `tiles` times eight
// columns at a time.
constexpr int rows_of_warp = 8;

// Entries between two rows of `a` on the chip: eight rows of four entries meet no bank twice. And of m, the same for
// four rows of eight.
__host__ __device__ constexpr int a_stride(int p) {
  const int fours = (p + 3) / 4;
  return 4 * (fours + 1 - fours % 2);
}
template <int tiles>
__host__ __device__ constexpr int m_stride_of(int q) {
  return (q + 8 * tiles - 1) / (8 * tiles) * (8 * tiles) + 4;
}
template <int tiles>
__host__ __device__ constexpr std::size_t m_bytes(int p, int q) {
  return static_cast<std::size_t>((p + 3) / 4 * 4) * static_cast<std::size_t>(m_stride_of<tiles>(q)) * sizeof(double);
}

// All copies of a thread are on their way at once.
template <class V>
__device__ __forceinline__ void copy_or_clear(V* to, const V* from, bool is_there) {
  if (is_there)
    __pipeline_memcpy_async(to, from, sizeof(V));
  else
    *to = V(0);
}

template <class T, int warps, int tiles>
__global__ void __launch_bounds__(32 * warps)
    multiply_held(In<T> a, const double* __restrict__ m, Out<T> out, bool add) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int rows_of_block = rows_of_warp * warps;
  const int p = static_cast<int>(a.cols), q = static_cast<int>(out.cols), whole_p = (p + 3) / 4 * 4;
  const int as = a_stride(p), ms = m_stride_of<tiles>(q);
  double* const factors = reinterpret_cast<double*>(memory);
  T* const held = reinterpret_cast<T*>(memory + m_bytes<tiles>(p, q));
  const Index first = static_cast<Index>(blockIdx.x) * rows_of_block;
  const int rows = static_cast<int>(a.rows - first < rows_of_block ? a.rows - first : rows_of_block);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = warp; i < rows_of_block; i += warps)
    for (int k = lane; k < whole_p; k += 32)
      copy_or_clear(held + i * as + k, a.data + (first + i) * a.stride + k, i < rows && k < p);
  for (int k = warp; k < whole_p; k += warps)
    for (int j = lane; j < ms; j += 32) copy_or_clear(factors + k * ms + j, m + k * q + j, k < p && j < q);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const int quad = lane / 4, k0 = lane % 4, row = rows_of_warp * warp + quad;
  const T* const of_row = held + row * as + k0;
  for (int j0 = 0; j0 < q; j0 += 8 * tiles) {
    double sums[tiles][2] = {};
    const double* const of_columns = factors + k0 * ms + j0 + quad;
#pragma unroll 4
    for (int k = 0; k < whole_p; k += 4) {
      const auto x = static_cast<double>(of_row[k]);
#pragma unroll
      for (int j = 0; j < tiles; ++j) multiply_double_tile(sums[j], x, of_columns[k * ms + 8 * j]);
    }
#pragma unroll
    for (int j = 0; j < tiles; ++j)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int column = j0 + 8 * j + 2 * k0 + c;
        if (row >= rows || column >= q) continue;
        T* const to = out.data + (first + row) * out.stride + column;
        *to = static_cast<T>(add ? static_cast<double>(*to) + sums[j][c] : sums[j][c]);
      }
  }
}

constexpr Index usual_chip_bytes = 48 * 1024, wanted_blocks = 256;

template <class T, int warps, int tiles>
bool launch_tiles(cudaStream_t stream, In<T> a, const double* m, Out<T> out, bool add) {
  // For factors of so few values that two blocks of threads share a multiprocessor.
  constexpr std::size_t most_bytes = 100 * 1024;
  constexpr int rows = rows_of_warp * warps;
  const int p = static_cast<int>(a.cols), q = static_cast<int>(out.cols);
  const std::size_t bytes = m_bytes<tiles>(p, q) + static_cast<std::size_t>(rows * a_stride(p)) * sizeof(T);
  if (bytes > most_bytes) return false;
  const auto kernel = multiply_held<T, warps, tiles>;
  if (bytes > static_cast<std::size_t>(usual_chip_bytes))
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most_bytes)),
          "asking for memory on the chip");
  kernel<<<static_cast<unsigned>(over(a.rows, rows)), 32 * warps, bytes, stream>>>(a, m, out, add);
  check_launch("launching a product with a small matrix");
  return true;
}
template <class T, int warps>
bool launch_warps(cudaStream_t stream, In<T> a, const double* m, Out<T> out, bool add) {
  constexpr int few = 3, many = 6;
  return out.cols <= 8 * few ? launch_tiles<T, warps, few>(stream, a, m, out, add)
                             : launch_tiles<T, warps, many>(stream, a, m, out, add);
}
// More warps share m where there are blocks enough all the same, and fewer where they would not fit on the chip.
template <class T>
bool launch_held(cudaStream_t stream, In<T> a, const double* m, Out<T> out, bool add) {
  constexpr int many = 8, few = 2;
  constexpr Index enough = 128 * rows_of_warp * many, most_cols = 1024;  // (more columns do not fit)
  if (a.cols <= 0 || a.cols > most_cols || out.cols > most_cols) return false;
  return (a.rows >= enough && launch_warps<T, many>(stream, a, m, out, add)) ||
         launch_warps<T, few>(stream, a, m, out, add);
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
