// SPDX-License-Identifier: Apache-2.0
//
// What the fused run is made of on a device of compute capability 9.0: the copy engine, a barrier over the grid, sums
// over lanes and blocks.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace itspace::cuda::kernels {

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void make_barrier(unsigned long long* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void expect_bytes(unsigned long long* arrived, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(arrived)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void wait_for(unsigned long long* arrived, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::
          "r"(shared_address(arrived)),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void copy_bulk(void* to, const void* from, unsigned bytes, unsigned long long* arrived) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(arrived))
               : "memory");
}
// What becomes of a copy's lines in the second-level cache. `brief`: they make room before others do; for what is
// larger than the cache, so that what blocks leave each other stays there.
enum class Caching { usual, brief };
template <Caching caching>
__device__ __forceinline__ unsigned long long cache_policy() {
  unsigned long long policy;
  if constexpr (caching == Caching::brief)
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
template <Caching caching = Caching::usual>
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap* map, int column, int row,
                                         unsigned long long* arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(arrived)), "l"(cache_policy<caching>())
      : "memory");
}
// Several boxes side by side, the first of them the `box`-th of the rows.
template <Caching caching = Caching::usual>
__device__ __forceinline__ void copy_boxes(void* to, const CUtensorMap* map, int box, int row,
                                           unsigned long long* arrived) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, "
      "%3, %4}], [%5], %6;" ::"r"(shared_address(to)),
      "l"(map), "r"(0), "r"(row), "r"(box), "r"(shared_address(arrived)), "l"(cache_policy<caching>())
      : "memory");
}
// What threads have written is seen by the copy engine.
__device__ __forceinline__ void fence_copies() {
  asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ __forceinline__ void fence_shared_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void fence_global_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// Of memory that the copy engine fills in turns: a stage, and how often all stages have been gone through before.
struct StageTurn {
  int stage = 0;
  unsigned turn = 0;

  __device__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      ++turn;
    }
  }
};

// All blocks are resident: whoever arrives last lets the others go.
__device__ inline void grid_barrier(unsigned* counter, unsigned& epoch) {
  __syncthreads();
  ++epoch;
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");  // after what the block wrote
    const unsigned all = epoch * gridDim.x;
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < all);
  }
  __syncthreads();
}

// The sums over a warp of N values, which are on their way together.
template <int N>
__device__ __forceinline__ void warp_sums(double (&v)[N]) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    double of_others[N];
#pragma unroll
    for (int n = 0; n < N; ++n) of_others[n] = __shfl_xor_sync(~0u, v[n], offset);
#pragma unroll
    for (int n = 0; n < N; ++n) v[n] += of_others[n];
  }
}
__device__ __forceinline__ double warp_largest(double v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v = fmax(v, __shfl_xor_sync(~0u, v, offset));
  return v;
}

// Sums over the lanes of N values, N >= 32: each halving hands half of them to the other half of the lanes. Afterwards
// a lane holds the N/32 values from `kept` on, in v[0], v[1], ...
template <int Width, int Mask, class T, int N>
__device__ __forceinline__ void scatter_sums(T (&v)[N], int lane, int& kept) {
  if constexpr (Mask > 0) {
    const bool upper = lane & Mask;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const T send = upper ? v[i] : v[i + Width], keep = upper ? v[i + Width] : v[i];
      v[i] = keep + __shfl_xor_sync(~0u, send, Mask);
    }
    if (upper) kept += Width;
    scatter_sums<Width / 2, Mask / 2>(v, lane, kept);
  }
}

// The sum over the block of each of N values; every thread gets it.
template <int N, int Warps>
__device__ void block_sums(double (&v)[N], double (&scratch)[Warps][4]) {
  __syncthreads();
  warp_sums(v);
  if ((threadIdx.x & 31) == 0)
#pragma unroll
    for (int n = 0; n < N; ++n) scratch[threadIdx.x >> 5][n] = v[n];
  __syncthreads();
#pragma unroll
  for (int n = 0; n < N; ++n) {
    double sum = 0;
#pragma unroll
    for (int w = 0; w < Warps; ++w) sum += scratch[w][n];
    v[n] = sum;
  }
}

}  // namespace itspace::cuda::kernels
