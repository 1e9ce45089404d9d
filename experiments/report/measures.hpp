// SPDX-License-Identifier: Apache-2.0
//
// The quantities the tables show, as numbers. Nothing here knows how they will look.
#pragma once

#include "results.hpp"
#include "statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace itspace::experiments::report {

// ---- Covariance alignment ----

enum class Clock { algorithm, end_to_end };  // t_alg = update + projection; preprocessing + t_alg

// The way to the first row with gap <= threshold; not_reached where no row is.
struct Passage {
  double algorithm_seconds = not_reached, end_to_end_seconds = not_reached, passes = not_reached;

  double seconds(Clock clock) const { return clock == Clock::algorithm ? algorithm_seconds : end_to_end_seconds; }
};
Passage first_passage(const Run& run, double threshold);

// A rise is a step after which the objective is larger by more than 1e-10 of what it was at the start: near the floor
// the evaluator resolves no more, since the objective is the small difference of large traces.
struct Rises {
  Index rises = 0, steps = 0;
};
Rises count_rises(const Run& run);

// One method on one instance, medians over the seeds.
struct MethodMeasures {
  std::string method;
  Index runs = 0;
  std::vector<Passage> passages;  // one per threshold
  double final_gap = no_number;   // of the last row
  double preprocessing_seconds = no_number;
  double update_per_step = no_number, projection_per_step = no_number, evaluation_per_step = no_number;
  double seconds_per_step = no_number;  // t_alg
  Passage whole;                        // to the last row
};
MethodMeasures measure(const AlignmentInstance& instance, const std::string& method,
                       const std::vector<double>& thresholds);

// In the order of results.methods, then those that only appear in the runs; methods without runs are left out.
std::vector<MethodMeasures> measure_all(const AlignmentInstance& instance, const Results& results);

// How many times faster `method` passed a threshold than `base`, from the medians.
struct Speedup {
  double ratio = no_number;
  bool at_least = false;  // the base never got there: the ratio is that of its whole run
  bool not_reached = false;
};
Speedup speedup(const MethodMeasures& base, const MethodMeasures& method, std::size_t threshold, Clock clock);

// What every method did over all instances that were run.
struct MethodRecord {
  std::string method;
  Rises rises;
  double seconds_per_step = no_number;  // median over the runs at the largest dimension
};
struct Records {
  Index dim = 0;  // the largest dimension
  std::vector<MethodRecord> methods;
};
Records measure_records(const Results& results);

// ---- CovDrift ----

// The cells of one drift and severity, one per seed.
struct DriftGroup {
  std::string drift;
  double severity = 1;
  std::vector<const DriftCell*> cells;
};
// In the order of first appearance. Points into `instance`.
std::vector<DriftGroup> drift_groups(const DriftInstance& instance);

Spread clean_value(const DriftGroup& group);
// A row without a map or a budget (no adaptation, mean only, a one-shot method) answers for every map and budget.
std::optional<Spread> value_at(const DriftGroup& group, const std::string& method, const std::string& map,
                               Index budget);
std::optional<Spread> seconds_at(const DriftGroup& group, const std::string& method, Index budget);

// Methods of the group beside none, mean and endpoint, in the order of results.methods.
std::vector<std::string> adapting_methods(const DriftGroup& group, const Results& results);
// "whiten" and "monge" where they occur.
std::vector<std::string> maps_of(const DriftGroup& group);

// (value - none)/(clean - none), where the drop clean - none is at least `smallest_drop` points.
inline constexpr double smallest_drop = 2.0;
std::optional<double> recovered(double value, double none, double clean);

// Below no adaptation, by as much as two decimals show.
bool hurts(double value, double none);

// The method of highest mean at a budget outside our family; the first in order where several share it.
struct Strongest {
  std::string method;
  Spread value;
};
std::optional<Strongest> strongest_other(const DriftGroup& group, const std::string& map, Index budget,
                                         const Results& results);

// ---- Names ----

const MethodInfo* find_method(const Results& results, const std::string& id);
std::string title_of(const Results& results, const std::string& id);
// The title as it stands in a sentence: "BW-GD (backtracking)" for "BW-GD, backtracking".
std::string spoken(const Results& results, const std::string& id);
bool is_ours(const Results& results, const std::string& id);
// The method that stands for the paper's where one must: alpha = 1, else 0.9, else the first of our family.
std::string representative(const Results& results);

}  // namespace itspace::experiments::report
