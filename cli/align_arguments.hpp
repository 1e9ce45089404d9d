// SPDX-License-Identifier: Apache-2.0
//
// What `itspace align` is told: its options, what they must be, and the files that it may write.
#pragma once

#include "arguments.hpp"
#include "checkpoints.hpp"
#include "device.hpp"
#include "ranks.hpp"
#include "step_arguments.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace itspace::cli {

struct AlignArguments {
  TargetArguments target;
  Request start{"start", "--start-as"};
  std::filesystem::path out, trace, iterates;
  Index rank = 0;
  StepArguments step;
  CheckpointArguments checkpoint;
  std::optional<std::uint64_t> memory;
  DeviceChoice device;
  AlignOptions options;  // what is not given on the command line stays the library's
  bool no_completion = false, skip_last = false, floor = false, json = false, quiet = false;
  double rank_timeout = default_rank_timeout;
};

void add_arguments(CLI::App& app, AlignArguments& given);

// @throws std::invalid_argument where options contradict each other, or files are in each other's way.
void check_arguments(const AlignArguments& given);
void check_paths(const AlignArguments& given);
// @throws std::runtime_error where an output cannot be written.
void check_outputs(const AlignArguments& given);

std::filesystem::path iterate_path(const AlignArguments& given, Index index);

}  // namespace itspace::cli
