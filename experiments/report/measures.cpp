// SPDX-License-Identifier: Apache-2.0
#include "measures.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace itspace::experiments::report {
namespace {

constexpr double relative_rise = 1e-10;

std::vector<const Run*> runs_of(const AlignmentInstance& instance, const std::string& method) {
  std::vector<const Run*> runs;
  for (const Run& run : instance.runs) {
    if (run.method == method && !run.rows.empty()) runs.push_back(&run);
  }
  return runs;
}

double median_over(const std::vector<const Run*>& runs, const std::function<double(const Run&)>& quantity) {
  std::vector<double> values;
  for (const Run* run : runs) values.push_back(quantity(*run));
  return median(std::move(values));
}

// A total of the run, shared out over its steps.
double per_step(const Run& run, double total) {
  const Index steps = run.rows.back().step - run.rows.front().step;
  return steps > 0 ? total / static_cast<double>(steps) : no_number;
}

Passage passage_at(const Run& run, const Row& row) {
  return {row.algorithm_seconds(), run.preprocessing_seconds + row.algorithm_seconds(),
          static_cast<double>(row.passes)};
}

Passage median_passage(const std::vector<Passage>& passages) {
  std::vector<double> algorithm, end_to_end, passes;
  for (const Passage& passage : passages) {
    algorithm.push_back(passage.algorithm_seconds);
    end_to_end.push_back(passage.end_to_end_seconds);
    passes.push_back(passage.passes);
  }
  return {median(algorithm), median(end_to_end), median(passes)};
}

void append_new(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::vector<std::string> methods_in_order(const Results& results, const std::vector<std::string>& present) {
  std::vector<std::string> ordered;
  for (const MethodInfo& method : results.methods) {
    if (std::find(present.begin(), present.end(), method.id) != present.end()) append_new(ordered, method.id);
  }
  for (const std::string& id : present) append_new(ordered, id);
  return ordered;
}

bool answers(const DriftRow& row, const std::string& method, const std::string& map, Index budget) {
  return row.method == method && (row.map == map || row.map.empty()) && (row.budget == budget || row.budget == 0);
}

}  // namespace

Passage first_passage(const Run& run, double threshold) {
  for (const Row& row : run.rows) {
    if (row.gap <= threshold) return passage_at(run, row);
  }
  return {};
}

Rises count_rises(const Run& run) {
  Rises result;
  for (std::size_t i = 1; i < run.rows.size(); ++i) {
    const double before = run.rows[i - 1].objective, after = run.rows[i].objective;
    ++result.steps;
    // An objective that is no number has not been shown to fall.
    if (!(after <= before + relative_rise * std::abs(run.rows.front().objective))) ++result.rises;
  }
  return result;
}

MethodMeasures measure(const AlignmentInstance& instance, const std::string& method,
                       const std::vector<double>& thresholds) {
  const auto runs = runs_of(instance, method);
  MethodMeasures measures;
  measures.method = method;
  measures.runs = static_cast<Index>(runs.size());
  for (const double threshold : thresholds) {
    std::vector<Passage> passages;
    for (const Run* run : runs) passages.push_back(first_passage(*run, threshold));
    measures.passages.push_back(median_passage(passages));
  }
  std::vector<Passage> whole;
  for (const Run* run : runs) whole.push_back(passage_at(*run, run->rows.back()));
  measures.whole = median_passage(whole);
  // The upper median: with two seeds of which one did not arrive, the time is "not reached" and the gap must be too.
  std::vector<double> gaps;
  for (const Run* run : runs) gaps.push_back(run->rows.back().gap);
  measures.final_gap = upper_median(std::move(gaps));
  measures.preprocessing_seconds = median_over(runs, [](const Run& run) { return run.preprocessing_seconds; });
  measures.update_per_step =
      median_over(runs, [](const Run& run) { return per_step(run, run.rows.back().update_seconds); });
  measures.projection_per_step =
      median_over(runs, [](const Run& run) { return per_step(run, run.rows.back().projection_seconds); });
  measures.evaluation_per_step =
      median_over(runs, [](const Run& run) { return per_step(run, run.rows.back().evaluation_seconds); });
  measures.seconds_per_step =
      median_over(runs, [](const Run& run) { return per_step(run, run.rows.back().algorithm_seconds()); });
  return measures;
}

std::vector<MethodMeasures> measure_all(const AlignmentInstance& instance, const Results& results) {
  std::vector<std::string> present;
  for (const Run& run : instance.runs) {
    if (!run.rows.empty()) append_new(present, run.method);
  }
  std::vector<MethodMeasures> all;
  for (const std::string& id : methods_in_order(results, present)) {
    all.push_back(measure(instance, id, results.thresholds));
  }
  return all;
}

Speedup speedup(const MethodMeasures& base, const MethodMeasures& method, std::size_t threshold, Clock clock) {
  Speedup result;
  const double seconds = method.passages.at(threshold).seconds(clock);
  if (!std::isfinite(seconds)) {
    result.not_reached = true;
    return result;
  }
  double base_seconds = base.passages.at(threshold).seconds(clock);
  if (!std::isfinite(base_seconds)) {
    base_seconds = base.whole.seconds(clock);
    result.at_least = true;
  }
  if (seconds > 0 && std::isfinite(base_seconds)) result.ratio = base_seconds / seconds;
  return result;
}

Records measure_records(const Results& results) {
  Records records;
  std::vector<std::string> present;
  for (const AlignmentInstance& instance : results.alignment) {
    if (instance.runs.empty()) continue;
    records.dim = std::max(records.dim, instance.info.dim);
    for (const Run& run : instance.runs) append_new(present, run.method);
  }
  for (const std::string& id : methods_in_order(results, present)) {
    MethodRecord record;
    record.method = id;
    std::vector<double> seconds;
    for (const AlignmentInstance& instance : results.alignment) {
      for (const Run* run : runs_of(instance, id)) {
        const Rises rises = count_rises(*run);
        record.rises.rises += rises.rises;
        record.rises.steps += rises.steps;
        if (instance.info.dim == records.dim) seconds.push_back(per_step(*run, run->rows.back().algorithm_seconds()));
      }
    }
    record.seconds_per_step = median(std::move(seconds));
    records.methods.push_back(record);
  }
  return records;
}

std::vector<DriftGroup> drift_groups(const DriftInstance& instance) {
  std::vector<DriftGroup> groups;
  for (const DriftCell& cell : instance.cells) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const DriftGroup& known) {
      return known.drift == cell.drift && known.severity == cell.severity;
    });
    if (group == groups.end()) group = groups.insert(group, DriftGroup{cell.drift, cell.severity, {}});
    group->cells.push_back(&cell);
  }
  return groups;
}

Spread clean_value(const DriftGroup& group) {
  std::vector<double> values;
  for (const DriftCell* cell : group.cells) values.push_back(cell->clean);
  return spread(values);
}

std::optional<Spread> value_at(const DriftGroup& group, const std::string& method, const std::string& map,
                               Index budget) {
  std::vector<double> values;
  for (const DriftCell* cell : group.cells) {
    const auto row = std::find_if(cell->rows.begin(), cell->rows.end(),
                                  [&](const DriftRow& candidate) { return answers(candidate, method, map, budget); });
    if (row != cell->rows.end()) values.push_back(row->value);
  }
  if (values.empty()) return std::nullopt;
  return spread(values);
}

std::optional<Spread> seconds_at(const DriftGroup& group, const std::string& method, Index budget) {
  std::vector<double> values;
  for (const DriftCell* cell : group.cells) {
    for (const DriftRow& row : cell->rows) {
      if (row.method == method && (row.budget == budget || row.budget == 0)) {
        values.push_back(row.adaptation_seconds);
        break;  // the maps of one method share its time
      }
    }
  }
  if (values.empty()) return std::nullopt;
  return spread(values);
}

std::vector<std::string> adapting_methods(const DriftGroup& group, const Results& results) {
  std::vector<std::string> present;
  for (const DriftCell* cell : group.cells) {
    for (const DriftRow& row : cell->rows) {
      if (row.method != "none" && row.method != "mean" && row.method != "endpoint") append_new(present, row.method);
    }
  }
  return methods_in_order(results, present);
}

std::vector<std::string> maps_of(const DriftGroup& group) {
  std::vector<std::string> maps;
  for (const DriftCell* cell : group.cells) {
    for (const DriftRow& row : cell->rows) {
      if (!row.map.empty()) append_new(maps, row.map);
    }
  }
  std::sort(maps.rbegin(), maps.rend());  // whiten, the paper's, before monge
  return maps;
}

std::optional<double> recovered(double value, double none, double clean) {
  const double drop = clean - none;
  if (!(drop >= smallest_drop) || std::isnan(value)) return std::nullopt;
  return (value - none) / drop;
}

bool hurts(double value, double none) {
  return value < none - 0.005;
}

std::optional<Strongest> strongest_other(const DriftGroup& group, const std::string& map, Index budget,
                                         const Results& results) {
  std::optional<Strongest> best;
  for (const std::string& method : adapting_methods(group, results)) {
    if (is_ours(results, method)) continue;
    const auto value = value_at(group, method, map, budget);
    if (value && !std::isnan(value->mean) && (!best || value->mean > best->value.mean)) {
      best = Strongest{method, *value};
    }
  }
  return best;
}

const MethodInfo* find_method(const Results& results, const std::string& id) {
  for (const MethodInfo& method : results.methods) {
    if (method.id == id) return &method;
  }
  return nullptr;
}

std::string title_of(const Results& results, const std::string& id) {
  if (id == "none") return "No adaptation";
  if (id == "mean") return "Mean only";
  if (id == "endpoint") return "Endpoint";
  const MethodInfo* method = find_method(results, id);
  return method && !method->title.empty() ? method->title : id;
}

std::string spoken(const Results& results, const std::string& id) {
  std::string title = title_of(results, id);
  const std::size_t comma = title.find(", ");
  return comma == std::string::npos ? title : title.replace(comma, 2, " (") + ")";
}

bool is_ours(const Results& results, const std::string& id) {
  const MethodInfo* method = find_method(results, id);
  return method && method->family == "ours";
}

std::string representative(const Results& results) {
  for (const char* id : {"paper-1", "paper-0.9"}) {
    if (find_method(results, id)) return id;
  }
  for (const MethodInfo& method : results.methods) {
    if (method.family == "ours") return method.id;
  }
  return "";
}

}  // namespace itspace::experiments::report
