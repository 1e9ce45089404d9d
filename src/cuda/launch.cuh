// SPDX-License-Identifier: Apache-2.0
//
// What the kernels' files share.
#pragma once

#include "cuda/error.hpp"
#include "cuda/kernels.hpp"

namespace itspace::cuda::kernels {

constexpr Index over(Index count, Index size) {
  return (count + size - 1) / size;
}

// One thread for each value of a block, or a loop where there are more values than threads.
constexpr int threads_per_block = 256;
constexpr Index most_blocks = 4096;

inline unsigned blocks_for(Index values) {
  const Index blocks = over(values, threads_per_block);
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

// Calls visit(i, j) for each value.
template <class Visit>
__global__ void for_each_value(Index rows, Index cols, Visit visit) {
  const Index values = rows * cols, step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index e = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; e < values; e += step)
    visit(e / cols, e % cols);
}

template <class Visit>
void launch_for_each(cudaStream_t stream, Index rows, Index cols, const Visit& visit, const char* what) {
  if (rows <= 0 || cols <= 0) return;
  for_each_value<<<blocks_for(rows * cols), threads_per_block, 0, stream>>>(rows, cols, visit);
  check_launch(what);
}

}  // namespace itspace::cuda::kernels
