// SPDX-License-Identifier: Apache-2.0
//
// How a kernel of the fused run is launched: all blocks at once, in clusters.
#pragma once

#include "cuda/error.hpp"
#include "cuda/row_product.cuh"

#include <cuda_runtime.h>

#include <cstddef>

namespace itspace::cuda::kernels {

struct FusedLaunch {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};

  FusedLaunch(int blocks, int cluster, std::size_t shared_bytes, cudaStream_t stream) {
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(fused_threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
  }
  FusedLaunch(const FusedLaunch&) = delete;
  FusedLaunch& operator=(const FusedLaunch&) = delete;
};

template <class Kernel>
void ask_for_shared_memory(Kernel kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "asking for shared memory");
}

}  // namespace itspace::cuda::kernels
