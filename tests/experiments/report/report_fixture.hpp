// SPDX-License-Identifier: Apache-2.0
//
// Made-up results for the tests of the report: plausible shapes, invented numbers, nothing measured.
#pragma once

#include "report/table.hpp"
#include "results.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace itspace::experiments::fixture {

// 17 methods, nine alignment instances (one failed, one skipped) and four of covdrift (one failed), three seeds, with
// thresholds missed, objectives that rise, and adaptation that hurts.
Results made_up_results();

// A run with these gaps after each step; step k takes k seconds of update and k/2 of projection, and 3 passes.
Run run_with_gaps(const std::string& method, std::uint64_t seed, const std::vector<double>& gaps, double slow = 1);
// One alignment instance of these runs, three methods, thresholds 0.1 and 0.02.
Results small_results(std::vector<Run> runs);

DriftCell drift_cell(std::uint64_t seed, double clean, double none, double paper, double base);
DriftInstance drift_instance(std::vector<DriftCell> cells);

// By value: the table is often a temporary.
report::TableRow row_named(const report::Table& table, const std::string& label);
std::string text_of(const report::Cell& cell);

}  // namespace itspace::experiments::fixture
