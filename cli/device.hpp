// SPDX-License-Identifier: Apache-2.0
//
// --device: where a run computes. The CPU unless a GPU is asked for; nothing is sent to one silently.
#pragma once

#include "problem.hpp"

#include <itspace/align.hpp>

#include <CLI/App.hpp>

#include <optional>

namespace itspace::cli {

struct DeviceChoice {
  std::optional<int> cuda = {};  // the number of the GPU
};

CLI::Option* add_device(CLI::App& app, DeviceChoice& value);

// Two halves of it are in device_cuda.cpp or, in a build without itspace::cuda, in device_missing.cpp.

// @throws std::runtime_error where the device is not to be had.
void check_device(const DeviceChoice& device);

// align() on the GPU that was chosen. The start and what comes back are in the host's memory.
template <Storage Scalar, Storage Data>
Result<Scalar> align_on_gpu(const DeviceChoice& device, const ProblemTarget<Scalar, Data>& target,
                            const std::optional<Block<Scalar>>& start, Index rank, const AlignOptions& options,
                            const OnStep<Scalar>& on_step);

}  // namespace itspace::cli
