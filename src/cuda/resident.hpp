// SPDX-License-Identifier: Apache-2.0
//
// The fused run (fused.hpp) with all of Sigma on the chip: float, up to 16 columns, d up to 2048 on a device with 128
// multiprocessors or more. See resident_steps.cuh.
#pragma once

#include "cuda/fused.hpp"

namespace itspace::cuda::kernels {

// Whether the current device can.
bool resident_is_possible(int dim, int rank);
std::size_t resident_memory_bytes();
// As launch_fused().
bool launch_resident(cudaStream_t stream, const FusedJob<float>& job, unsigned char* memory, double* log);

}  // namespace itspace::cuda::kernels
