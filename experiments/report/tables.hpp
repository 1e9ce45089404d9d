// SPDX-License-Identifier: Apache-2.0
//
// Which tables an experiment has. Only instances that were run appear, save in not_run_table.
#pragma once

#include "measures.hpp"
#include "table.hpp"

namespace itspace::experiments::report {

Table methods_table(const Results& results);
Table not_run_table(const Results& results);

// Covariance alignment.
Table time_to_gap_table(const Results& results, Clock clock);  // methods by instances
Table passes_table(const Results& results);
Table speedup_table(const Results& results);
Table behaviour_table(const Results& results);  // the paper's table of baselines, measured
Table instance_table(const Results& results, const AlignmentInstance& instance);  // both clocks, passes, time per step

// CovDrift.
Table drift_summary_table(const Results& results);
Table drift_table(const Results& results, const DriftInstance& instance, const DriftGroup& group);

// The budget at which methods are compared: 5 where it was run, else the largest.
Index focus_budget(const Results& results);

// All of them, in the order of the page.
std::vector<Table> all_tables(const Results& results);

// What stands out, in sentences with the numbers in them.
std::vector<std::string> alignment_findings(const Results& results);
std::vector<std::string> covdrift_findings(const Results& results);

bool was_run(const AlignmentInstance& instance);
bool was_run(const DriftInstance& instance);
std::string display_title(const InstanceInfo& info);
// "scale, s_max = 1.7" or "natural shift".
std::string drift_name(const DriftGroup& group);

}  // namespace itspace::experiments::report
