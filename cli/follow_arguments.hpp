// SPDX-License-Identifier: Apache-2.0
//
// What `itspace follow` is told: on the command line, and by the state that it goes on from.
#pragma once

#include "follow_gate.hpp"
#include "input.hpp"
#include "step_arguments.hpp"

#include <itspace/online.hpp>

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace itspace::cli {

struct FollowArguments {
  std::vector<std::string> files;
  std::optional<Index> rank, steps, window, keep, batch, reference;
  double half_life = std::numeric_limits<double>::quiet_NaN();
  double run_length = std::numeric_limits<double>::quiet_NaN();
  std::string unit;
  StepArguments step;
  std::uint64_t seed = 0;
  std::filesystem::path state, out, source_labels;
  std::vector<std::string> predicted;
  GateArguments gate;
  Precision precision = Precision::automatic;
  bool quiet = false;
};

// Standard input.
bool is_stream(const std::string& path);

void add_follow_options(CLI::App& app, FollowArguments& given);
// @throws std::invalid_argument where they contradict themselves.
void check_arguments(const FollowArguments& given);
// Those of a new stream.
OnlineAlignerOptions options_of(const FollowArguments& given);
// What was given must be what the state has; what was not given is taken from there. @throws std::invalid_argument.
void check_same(const FollowArguments& given, const OnlineAlignerOptions& found);

}  // namespace itspace::cli
