// SPDX-License-Identifier: Apache-2.0
//
// What CUDA refuses, in words: std::runtime_error that names what was asked for, what there is, and a way out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace itspace::cuda {

[[noreturn]] void fail(cudaError_t error, std::string_view what);

// `what`: what was being done, "launching the Gram matrices".
inline void check(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess) fail(error, what);
}
// After a launch, which says nothing by itself.
inline void check_launch(std::string_view what) {
  check(cudaGetLastError(), what);
}

// The texts by themselves, so that they can be read where there is no device.
std::string no_device_text(cudaError_t error);  // empty for cudaSuccess
std::string no_such_device_text(int ordinal, int count);
std::string old_device_text(std::string_view name, int major, int minor);
std::string out_of_memory_text(std::size_t asked, std::size_t free, std::size_t total);

}  // namespace itspace::cuda
