// SPDX-License-Identifier: Apache-2.0
//
// The step size of a run, for the commands that make one.
#pragma once

#include <itspace/align.hpp>

#include <CLI/App.hpp>
#include <limits>
#include <string>

namespace itspace::cli {

struct StepArguments {
  std::string alpha;
  double lambda = std::numeric_limits<double>::quiet_NaN();

  // @throws std::invalid_argument where both are given, or one is out of its range.
  StepSize size() const;
};
void add_step_size(CLI::App& app, StepArguments& given, const std::string& group);  // --alpha and --lambda

}  // namespace itspace::cli
