// SPDX-License-Identifier: Apache-2.0
//
// How far a square matrix is from its transpose: a block of threads for each pair of tiles across the diagonal, so that
// both are read along their rows.
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {
namespace {

constexpr int tile = 32, tile_rows = 8;

// |x| as an integer of the same order; NaN is the largest of all.
__device__ unsigned long long ordered(double x) {
  return static_cast<unsigned long long>(__double_as_longlong(x)) & 0x7fffffffffffffffull;
}

__device__ unsigned long long larger(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}

// Raises the largest found so far to the largest of the block's, by one thread: some thousand atomics on one value, and
// not a million of them, which would take longer than reading the matrix.
__device__ void raise_by_block(unsigned long long value, unsigned long long* found) {
  __shared__ unsigned long long of_warp[tile_rows];
  for (int offset = tile / 2; offset > 0; offset /= 2) value = larger(value, __shfl_xor_sync(~0u, value, offset));
  __syncthreads();
  if (threadIdx.x == 0) of_warp[threadIdx.y] = value;
  __syncthreads();
  if (threadIdx.x != 0 || threadIdx.y != 0) return;
  for (int warp = 1; warp < tile_rows; ++warp) value = larger(value, of_warp[warp]);
  if (value > 0) atomicMax(found, value);
}

template <class T>
__global__ void find_facts(In<T> a, Index tiles, unsigned long long* found) {
  __shared__ T across[tile][tile + 1];
  const Index d = a.rows;
  unsigned long long asymmetry = 0, largest = 0, negative = 0;
  for (Index pair = blockIdx.x; pair < tiles * tiles; pair += gridDim.x) {
    const Index low = pair / tiles * tile, high = pair % tiles * tile;
    if (low > high) continue;  // the same for all threads of the block
    __syncthreads();
    T upper[tile / tile_rows];  // asked for together with the tile across, before anything waits
#pragma unroll
    for (int k = 0; k < tile / tile_rows; ++k) {
      const int i = static_cast<int>(threadIdx.y) + k * tile_rows;
      const Index row = high + i, col = low + threadIdx.x;
      if (row < d && col < d) across[i][threadIdx.x] = a.data[row * a.stride + col];
      if (low + i < d && high + threadIdx.x < d) upper[k] = a.data[(low + i) * a.stride + high + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile / tile_rows; ++k) {
      const int i = static_cast<int>(threadIdx.y) + k * tile_rows;
      const Index row = low + i, col = high + threadIdx.x;
      if (row >= d || col >= d) continue;
      const double here = upper[k], there = across[threadIdx.x][i];
      asymmetry = larger(asymmetry, ordered(here - there));
      largest = larger(largest, larger(ordered(here), ordered(there)));
      if (row == col && here < 0) negative = larger(negative, ordered(here));
    }
  }
  // The largest is the same in any order.
  raise_by_block(asymmetry, found + 0);
  raise_by_block(largest, found + 1);
  raise_by_block(negative, found + 2);
}

}  // namespace

template <class T>
void covariance_facts(cudaStream_t stream, In<T> a, unsigned long long* found) {
  const Index tiles = over(a.rows, tile);
  if (tiles == 0) return;
  const Index blocks = tiles * tiles < most_blocks ? tiles * tiles : most_blocks;
  find_facts<T><<<static_cast<unsigned>(blocks), dim3(tile, tile_rows), 0, stream>>>(a, tiles, found);
  check_launch("launching a look at a covariance");
}
template void covariance_facts<float>(cudaStream_t, In<float>, unsigned long long*);
template void covariance_facts<double>(cudaStream_t, In<double>, unsigned long long*);

}  // namespace itspace::cuda::kernels
