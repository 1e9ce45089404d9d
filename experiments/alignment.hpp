// SPDX-License-Identifier: Apache-2.0
//
// Covariance alignment under a rank budget (the paper's Experiment I): every method takes the source's covariance
// toward the target's; the gap of each iterate comes from the exact evaluator, outside the clocks.
#pragma once

#include "instances.hpp"
#include "methods.hpp"

namespace itspace::experiments {

struct AlignmentOptions {
  Index rank = 16;
  Index steps = 20;
  std::vector<std::uint64_t> seeds{0, 1, 2};  // each keeps its own `kept_rows` share of the rows
  double kept_rows = 0.8;
  Index sample_ot_rows = 1000;       // at most so many rows of each side for sample OT
  double enough = 1e-3;              // a method whose steps cost d^3 stops once its gap is below; 0: all steps
  std::vector<std::string> methods;  // ids; empty: all
};

// @throws std::invalid_argument (values), Interrupted.
AlignmentInstance run_alignment(const Instance& instance, const AlignmentOptions& options, const Watch& watch);

}  // namespace itspace::experiments
