// SPDX-License-Identifier: Apache-2.0
//
// What `itspace align` tells its user: a line for each iterate as it comes, and a summary in plain words.
#pragma once

#include "input.hpp"
#include "text.hpp"

#include <itspace/trace.hpp>

#include <optional>
#include <string>
#include <utility>

namespace itspace::cli {

class AlignReport {
 public:
  // `floor`: the smallest objective the rank allows, if it was asked for; adds a column with the gap to it. `goal`:
  // what the objective is the distance to.
  explicit AlignReport(std::optional<double> floor, std::string goal = "the target")
      : floor_(floor), goal_(std::move(goal)) {}

  std::string heading() const;
  std::string row(const Step& step);  // rows come in order: the first one is the start
  // Several lines: how far it came, whether every step kept its promise, how the run ended.
  std::string summary(const Trace& trace) const;

 private:
  std::optional<double> floor_;
  std::string goal_;
  double start_objective_ = not_a_number;
};

// The objective of the returned iterate, or the bound on it where nobody evaluated it.
double best_objective(const Trace& trace);
// An input: where it is, what it was taken for and why.
template <Storage Scalar>
Json input_json(const Input<Scalar>& input) {
  return {{"path", input.request.path.string()}, {"taken_for", name(input.kind)}, {"why", input.why}};
}
// Objectives, floor, gaps, status and the whole trace.
Json align_json(const Trace& trace, std::optional<double> floor);

}  // namespace itspace::cli
