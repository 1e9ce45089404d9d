// SPDX-License-Identifier: Apache-2.0
//
// Tables that both experiments share, and all of them in order.
#include "tables.hpp"

#include <algorithm>

namespace itspace::experiments::report {

Table methods_table(const Results& results) {
  Table table;
  table.id = "methods";
  table.title = "The methods and how each was set";
  table.row_header = "Method";
  table.columns = {
      {"id", "", {}, " ", true}, {"family", "", {}, " ", true}, {"step rule and settings", "", {}, " ", true}};
  for (const MethodInfo& method : results.methods) {
    TableRow row;
    row.label = title_of(results, method.id);
    row.ours = method.family == "ours";
    for (const std::string& text : {method.id, method.family, method.settings}) {
      row.cells.push_back(text.empty() ? Cell{} : Cell{{text}});
    }
    table.rows.push_back(row);
  }
  return table;
}

Table not_run_table(const Results& results) {
  Table table;
  table.id = "not-run";
  table.title = "Instances without results";
  table.row_header = "Instance";
  table.columns = {{"outcome", "", {}, " ", true}, {"why, and what to do", "", {}, " ", true}};
  const auto add = [&](const InstanceInfo& info) {
    if (info.outcome == Outcome::done) return;
    const char* outcome = info.outcome == Outcome::failed ? "failed" : "skipped";
    table.rows.push_back({"", display_title(info), {{{outcome}}, {{info.reason}}}, false});
  };
  for (const AlignmentInstance& instance : results.alignment) add(instance.info);
  for (const DriftInstance& instance : results.covdrift) add(instance.info);
  return table;
}

std::vector<Table> all_tables(const Results& results) {
  std::vector<Table> tables;
  const auto add = [&](Table table) {
    if (!table.rows.empty()) tables.push_back(std::move(table));
  };
  add(not_run_table(results));
  if (std::any_of(results.alignment.begin(), results.alignment.end(),
                  [](const AlignmentInstance& instance) { return was_run(instance); })) {
    add(time_to_gap_table(results, Clock::algorithm));
    add(time_to_gap_table(results, Clock::end_to_end));
    add(passes_table(results));
    add(speedup_table(results));
    add(behaviour_table(results));
    for (const AlignmentInstance& instance : results.alignment) {
      if (was_run(instance)) add(instance_table(results, instance));
    }
  }
  add(drift_summary_table(results));
  for (const DriftInstance& instance : results.covdrift) {
    for (const DriftGroup& group : drift_groups(instance)) add(drift_table(results, instance, group));
  }
  add(methods_table(results));
  return tables;
}

}  // namespace itspace::experiments::report
