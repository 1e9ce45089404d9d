// SPDX-License-Identifier: Apache-2.0
#include "cuda/error.hpp"

#include <itspace/cuda/device.hpp>

#include "core/require.hpp"

#include <stdexcept>

namespace itspace::cuda {
namespace {

std::string amount(std::size_t bytes) {
  return text(bytes, " bytes (", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0), " GiB)");
}

std::string remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
      return "; this itspace was compiled for other GPUs: build it with -DCMAKE_CUDA_ARCHITECTURES for yours "
             "(90 for compute capability 9.0)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
      return "; the device cannot be used again in this process";
    default:
      return "";
  }
}

}  // namespace

void fail(cudaError_t error, std::string_view what) {
  throw std::runtime_error(
      text("CUDA: ", what, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")", remedy(error)));
}

std::string no_device_text(cudaError_t error) {
  if (error == cudaSuccess) return "";
  if (error == cudaErrorInsufficientDriver)
    return "no CUDA device: there is no NVIDIA driver here, or it is older than this itspace's CUDA; install a newer "
           "one, or compute on the CPU";
  if (error == cudaErrorNoDevice)
    return "no CUDA device: the driver finds none (CUDA_VISIBLE_DEVICES may hide them); compute on the CPU";
  return text("no CUDA device: ", cudaGetErrorString(error), " (", cudaGetErrorName(error), "); compute on the CPU");
}

std::string no_such_device_text(int ordinal, int count) {
  return text("CUDA device ", ordinal, " was asked for, and this machine has ", count,
              count == 1 ? " device" : " devices", ", numbered from 0; name one of them");
}

std::string old_device_text(std::string_view name, int major, int minor) {
  if (major > least_major || (major == least_major && minor >= least_minor)) return "";
  return text("CUDA device ", name, " has compute capability ", major, '.', minor, ", and ", least_major, '.',
              least_minor, " is the lowest that itspace's kernels are written for; compute on the CPU");
}

std::string out_of_memory_text(std::size_t asked, std::size_t free, std::size_t total) {
  return text("CUDA device out of memory: ", amount(asked), " were asked for, ", amount(free), " of ", amount(total),
              " are free; use float32, a smaller problem, or a device with more memory");
}

}  // namespace itspace::cuda
