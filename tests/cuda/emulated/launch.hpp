// SPDX-License-Identifier: Apache-2.0
//
// Kernels on the host, for a machine without a GPU: the sources of src/cuda as they are (translate.cmake rewrites how
// they are launched), a block of threads after the other, each thread a fiber that runs until it meets a barrier.
// What a kernel may not rely on is turned against it: threads take turns in an order that differs from launch to
// launch, shared memory is full of NaN before each block, copies that were begun arrive at the wait for them and not
// before.
//
// It shows what a kernel computes, and where a barrier is missing; of time, of clusters, and of the copy engine it
// shows nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

// What nvcc declares by itself.
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#undef __align__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
// A block runs at a time.
#define __shared__ static

using std::isfinite;

namespace itspace::test::emulated {

struct Thread {
  uint3 thread, block;
};
// Of the thread that runs, and of its launch.
inline Thread here;
inline dim3 block_size, grid_size;

// Runs body for each thread of each block.
void run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body);
// The shared memory that a launch asked for.
void* dynamic_shared();

void meet_block();
void meet_warp();
// A word that lanes of a warp show each other. Each lane of the warp has to come.
constexpr int warp_size = 32;
struct Word {
  double a, b;
};
const Word* exchange(const Word& mine);

void begin_copy(void* to, const void* from, std::size_t bytes);
void finish_copies();

// launching(kernel, grid, block, bytes, stream)(arguments).
template <class Kernel>
auto launching(Kernel kernel, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t) {
  return [=](auto... arguments) { run(grid, block, shared_bytes, [&] { kernel(arguments...); }); };
}

inline int this_lane() {
  return static_cast<int>(here.thread.x + block_size.x * (here.thread.y + block_size.y * here.thread.z)) % warp_size;
}

}  // namespace itspace::test::emulated

#define threadIdx (::itspace::test::emulated::here.thread)
#define blockIdx (::itspace::test::emulated::here.block)
#define blockDim (::itspace::test::emulated::block_size)
#define gridDim (::itspace::test::emulated::grid_size)

inline void __syncthreads() {
  ::itspace::test::emulated::meet_block();
}
inline void __syncwarp() {
  ::itspace::test::emulated::meet_warp();
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int other) {
  static_assert(sizeof(T) <= sizeof(double));
  ::itspace::test::emulated::Word word{};
  std::memcpy(&word.a, &value, sizeof(T));
  const auto* words = ::itspace::test::emulated::exchange(word);
  std::memcpy(&value, &words[::itspace::test::emulated::this_lane() ^ other].a, sizeof(T));
  return value;
}
template <class T>
T atomicMax(T* to, T value) {
  const T before = *to;
  if (value > before) *to = value;
  return before;
}
inline int atomicOr(int* to, int value) {
  const int before = *to;
  *to |= value;
  return before;
}
inline long long __double_as_longlong(double value) {
  long long bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// As the runtime has them, for any kernel: a block may ask for as much as one of compute capability 9 has.
template <class... Arguments>
cudaError_t cudaFuncSetAttribute(void (*)(Arguments...), cudaFuncAttribute, int bytes) {
  return bytes <= 227 * 1024 ? cudaSuccess : cudaErrorInvalidValue;
}
template <class... Arguments>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void (*)(Arguments...)) {
  return cudaSuccess;
}
