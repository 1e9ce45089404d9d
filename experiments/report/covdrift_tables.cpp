// SPDX-License-Identifier: Apache-2.0
//
// Tables and findings of CovDrift.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tables.hpp"

namespace itspace::experiments::report {
namespace {

std::string budget_name(Index budget) {
  return fmt::format("K = {}", budget);
}

std::string map_title(const std::string& map) {
  if (map == "whiten") return "whitening–recoloring";
  if (map == "monge") return "Monge map";
  return map;
}

// mean ± std in percent; marked where it is below no adaptation.
Cell percent_cell(const std::optional<Spread>& value, double none, Mark otherwise = Mark::none) {
  if (!value) return {};
  if (std::isnan(value->mean)) return {{"n/a"}};
  Cell cell{{fmt::format("{:.2f}", value->mean), value->mean, hurts(value->mean, none) ? Mark::hurts : otherwise}};
  if (!std::isnan(value->deviation)) cell.push_back({fmt::format("± {:.2f}", value->deviation), value->deviation});
  return cell;
}

Cell seconds_cell(const std::optional<Spread>& seconds) {
  if (!seconds || std::isnan(seconds->mean)) return {};
  Cell cell{{short_number(seconds->mean), seconds->mean}};
  if (!std::isnan(seconds->deviation)) {
    cell.push_back({fmt::format("± {:.2g}", seconds->deviation), seconds->deviation});
  }
  return cell;
}

const std::vector<std::string> mean_and_std{"mean", "std"};

bool contains(const std::vector<Index>& budgets, Index budget) {
  return std::find(budgets.begin(), budgets.end(), budget) != budgets.end();
}

double none_of(const DriftGroup& group) {
  const auto none = value_at(group, "none", "", 0);
  return none ? none->mean : no_number;
}

std::string instance_line(const DriftInstance& instance) {
  return fmt::format("{}: {} in percent, {} classes{}, chance {:.1f}", display_title(instance.info), instance.metric,
                     instance.classes, instance.closed_set ? " (closed set)" : "", instance.chance);
}

std::vector<Index> summary_budgets(const Results& results) {
  std::vector<Index> budgets;
  if (contains(results.budgets, 2) && focus_budget(results) != 2) budgets.push_back(2);
  if (focus_budget(results) > 0) budgets.push_back(focus_budget(results));
  return budgets;
}

}  // namespace

bool was_run(const DriftInstance& instance) {
  return !instance.cells.empty();
}

Index focus_budget(const Results& results) {
  if (results.budgets.empty()) return 0;
  return contains(results.budgets, 5) ? 5 : *std::max_element(results.budgets.begin(), results.budgets.end());
}

std::string drift_name(const DriftGroup& group) {
  if (group.drift == "none") return "natural shift";
  return fmt::format("{}, s_max = {}", group.drift, short_number(group.severity));
}

Table drift_summary_table(const Results& results) {
  const std::string ours = representative(results);
  const Index focus = focus_budget(results);
  Table table;
  table.id = "covdrift-summary";
  table.title = "CovDrift at a glance";
  table.how_to_read = {
      "Mean ± sample standard deviation over seeds, in percent.",
      "Clean: the same head on the test half without the drift. ↓ marks what is worse than no adaptation.",
      fmt::format("Recovered: the share of the drop from clean to no adaptation that {} wins back at {}, given where "
                  "the drop is at least {:.0f} points.",
                  spoken(results, ours), budget_name(focus), smallest_drop),
      "The strongest other is the best mean outside our family at the same budget."};
  table.row_header = "Drift and map";
  table.columns = {{"clean", "", mean_and_std}, {"no adaptation", "", mean_and_std}, {"mean only", "", mean_and_std}};
  for (const Index budget : summary_budgets(results)) {
    table.columns.push_back({budget_name(budget), spoken(results, ours), mean_and_std});
  }
  table.columns.push_back({fmt::format("t_{} in seconds", focus), spoken(results, ours), mean_and_std});
  table.columns.push_back({"recovered", spoken(results, ours), {"share"}});
  table.columns.push_back({"method", fmt::format("strongest other, {}", budget_name(focus)), {}, " ", true});
  table.columns.push_back({"value", fmt::format("strongest other, {}", budget_name(focus)), mean_and_std});
  for (const DriftInstance& instance : results.covdrift) {
    for (const DriftGroup& group : drift_groups(instance)) {
      const double none = none_of(group), clean = clean_value(group).mean;
      for (const std::string& map : maps_of(group)) {
        TableRow row;
        row.group = instance_line(instance);
        row.label = fmt::format("{}; {}", drift_name(group), map_title(map));
        row.cells.push_back(percent_cell(clean_value(group), no_number, Mark::reference));
        row.cells.push_back(percent_cell(value_at(group, "none", "", 0), no_number, Mark::reference));
        row.cells.push_back(percent_cell(value_at(group, "mean", "", 0), none));
        for (const Index budget : summary_budgets(results)) {
          row.cells.push_back(percent_cell(value_at(group, ours, map, budget), none));
        }
        row.cells.push_back(seconds_cell(seconds_at(group, ours, focus)));
        const auto value = value_at(group, ours, map, focus);
        const auto share = value ? recovered(value->mean, none, clean) : std::nullopt;
        row.cells.push_back(share ? Cell{{fmt::format("{:.0f} %", 100 * *share), *share}} : Cell{});
        const auto other = strongest_other(group, map, focus, results);
        row.cells.push_back(other ? Cell{{title_of(results, other->method)}} : Cell{});
        row.cells.push_back(other ? percent_cell(other->value, none) : Cell{});
        table.rows.push_back(row);
      }
    }
  }
  return table;
}

Table drift_table(const Results& results, const DriftInstance& instance, const DriftGroup& group) {
  const double none = none_of(group);
  const Spread clean = clean_value(group);
  const auto maps = maps_of(group);
  const Index focus = focus_budget(results);
  Table table;
  table.id = fmt::format("covdrift-{}-{}-{}", instance.info.name, group.drift, short_number(group.severity));
  table.title = fmt::format("{}: {}", display_title(instance.info), drift_name(group));
  table.how_to_read = {fmt::format("Clean {:.2f}, chance {:.1f} ({}); {} in percent.", clean.mean, instance.chance,
                                   instance.classes == 2 ? "a coin" : "the most frequent class", instance.metric)};
  table.row_header = "Method";
  for (const std::string& map : maps) {
    for (const Index budget : results.budgets) {
      table.columns.push_back({budget_name(budget), map_title(map), mean_and_std});
    }
  }
  table.columns.push_back({fmt::format("t_{} in seconds", focus), "", mean_and_std});
  std::vector<std::string> methods{"none", "mean"};
  for (const std::string& id : adapting_methods(group, results)) methods.push_back(id);
  methods.push_back("endpoint");
  for (const std::string& id : methods) {
    const bool adapts = id != "none" && id != "mean" && id != "endpoint";
    TableRow row;
    row.label = title_of(results, id);
    row.ours = is_ours(results, id);
    for (const std::string& map : maps) {
      for (const Index budget : results.budgets) {
        row.cells.push_back(
            percent_cell(value_at(group, id, map, budget), none, adapts ? Mark::none : Mark::reference));
      }
    }
    row.cells.push_back(adapts ? seconds_cell(seconds_at(group, id, focus)) : Cell{});
    const bool empty = std::all_of(row.cells.begin(), row.cells.end(), [](const Cell& cell) { return cell.empty(); });
    if (!empty) table.rows.push_back(row);
  }
  return table;
}

std::vector<std::string> covdrift_findings(const Results& results) {
  const std::string ours = representative(results);
  const Index focus = focus_budget(results);
  std::vector<std::string> findings;
  for (const char* map : {"whiten", "monge"}) {
    std::vector<double> shares;
    Index conditions = 0, hurt = 0, ahead = 0, contested = 0;
    for (const DriftInstance& instance : results.covdrift) {
      for (const DriftGroup& group : drift_groups(instance)) {
        const auto maps = maps_of(group);
        if (std::find(maps.begin(), maps.end(), map) == maps.end()) continue;
        const auto value = value_at(group, ours, map, focus);
        if (!value || std::isnan(value->mean)) continue;
        const double none = none_of(group);
        ++conditions;
        if (hurts(value->mean, none)) ++hurt;
        if (const auto share = recovered(value->mean, none, clean_value(group).mean)) shares.push_back(*share);
        if (const auto other = strongest_other(group, map, focus, results)) {
          ++contested;
          // As two decimals show it, a tie is not behind.
          if (value->mean >= other->value.mean - 0.005) ++ahead;
        }
      }
    }
    if (conditions == 0) continue;
    std::string text = fmt::format("With {} at {}, {} ", std::string(map) == "monge" ? "the Monge map" : map_title(map),
                                   budget_name(focus), spoken(results, ours));
    text += hurt == 0 ? fmt::format("never falls below no adaptation in {} {}", conditions,
                                    conditions == 1 ? "condition" : "conditions")
                      : fmt::format("falls below no adaptation in {} of {} {}", hurt, conditions,
                                    conditions == 1 ? "condition" : "conditions");
    if (!shares.empty()) {
      text += fmt::format(
          "; where the drop is at least {:.0f} points ({} of them) it recovers {:.0f} % of it in "
          "the median",
          smallest_drop, shares.size(), 100 * median(shares));
    }
    if (contested > 0) {
      text += fmt::format("; it matches or beats the strongest other method in {} of {}", ahead, contested);
    }
    findings.push_back(text + ".");
  }
  return findings;
}

}  // namespace itspace::experiments::report
