// SPDX-License-Identifier: Apache-2.0
//
// Tables and findings of the covariance alignment.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "tables.hpp"

namespace itspace::experiments::report {
namespace {

constexpr const char* base_method = "bw-gd";
constexpr const char* fewest_passes_method = "ritz";
constexpr const char* compared_with_base[] = {"paper-0.9", "paper-1", "paper-line-search", "ritz", "bw-gd-unit"};

struct Measured {
  const AlignmentInstance* instance;
  std::vector<MethodMeasures> methods;

  const MethodMeasures* find(const std::string& id) const {
    const auto found =
        std::find_if(methods.begin(), methods.end(), [&](const MethodMeasures& m) { return m.method == id; });
    return found == methods.end() ? nullptr : &*found;
  }
};

std::vector<Measured> measure_instances(const Results& results) {
  std::vector<Measured> all;
  for (const AlignmentInstance& instance : results.alignment) {
    if (was_run(instance)) all.push_back({&instance, measure_all(instance, results)});
  }
  return all;
}

// Methods that occur anywhere, in the order of the results.
std::vector<std::string> methods_of(const Results& results) {
  std::vector<std::string> ids;
  for (const MethodRecord& record : measure_records(results).methods) ids.push_back(record.method);
  return ids;
}

std::string threshold_name(double threshold) {
  return "gap ≤ " + short_number(threshold);
}

std::vector<std::string> threshold_names(const Results& results) {
  std::vector<std::string> names;
  for (const double threshold : results.thresholds) names.push_back(threshold_name(threshold));
  return names;
}

std::string in_words(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

Part passage_part(double value, double final_gap, bool is_best) {
  if (!std::isfinite(value)) return {fmt::format("NR ({})", short_number(final_gap)), not_reached};
  return {short_number(value), value, is_best ? Mark::best : Mark::none};
}

using Quantity = std::function<double(const Passage&)>;

double best_of(const std::vector<MethodMeasures>& methods, std::size_t threshold, const Quantity& quantity) {
  double best = not_reached;
  for (const MethodMeasures& method : methods) best = std::min(best, quantity(method.passages[threshold]));
  return best;
}

// Methods by instances, a cell holding one number per threshold; the smallest of an instance is marked.
Table passage_matrix(const Results& results, const Quantity& quantity) {
  Table table;
  table.row_header = "Method";
  const auto instances = measure_instances(results);
  for (const Measured& measured : instances) {
    const InstanceInfo& info = measured.instance->info;
    table.columns.push_back({fmt::format("{} (d = {})", info.name, info.dim), "", threshold_names(results), " / "});
  }
  for (const std::string& id : methods_of(results)) {
    TableRow row;
    row.label = title_of(results, id);
    row.ours = is_ours(results, id);
    for (const Measured& measured : instances) {
      Cell cell;
      if (const MethodMeasures* method = measured.find(id)) {
        const std::size_t thresholds = results.thresholds.size();
        for (std::size_t t = 0; t < thresholds; ++t) {
          const double value = quantity(method->passages[t]);
          Part part = passage_part(value, method->final_gap, value == best_of(measured.methods, t, quantity));
          // One remainder is enough for several thresholds missed.
          if (!std::isfinite(value) && t + 1 < thresholds && !std::isfinite(quantity(method->passages[t + 1]))) {
            part.text = "NR";
          }
          cell.push_back(part);
        }
      }
      row.cells.push_back(cell);
    }
    table.rows.push_back(row);
  }
  return table;
}

// The methods that no other undercuts anywhere.
std::vector<std::string> always_fewest(const Results& results) {
  const Quantity passes = [](const Passage& p) { return p.passes; };
  std::vector<std::string> names;
  const std::vector<Measured> instances = measure_instances(results);
  for (const MethodInfo& info : results.methods) {
    const bool everywhere = std::all_of(instances.begin(), instances.end(), [&](const Measured& measured) {
      const MethodMeasures* method = measured.find(info.id);
      for (std::size_t t = 0; method && t < results.thresholds.size(); ++t)
        if (method->passages[t].passes > best_of(measured.methods, t, passes)) return false;
      return method != nullptr;
    });
    if (everywhere) names.push_back(spoken(results, info.id));
  }
  return names;
}

// Where the method that should need the fewest passes does not.
std::string fewest_passes_sentence(const Results& results) {
  const std::string name = spoken(results, fewest_passes_method);
  std::vector<std::string> exceptions;
  std::size_t compared = 0;
  for (const Measured& measured : measure_instances(results)) {
    const MethodMeasures* method = measured.find(fewest_passes_method);
    if (!method) continue;
    const Quantity passes = [](const Passage& p) { return p.passes; };
    for (std::size_t t = 0; t < results.thresholds.size(); ++t) {
      const double fewest = best_of(measured.methods, t, passes);
      if (!std::isfinite(fewest)) continue;
      ++compared;
      const double own = method->passages[t].passes;
      if (own <= fewest) continue;
      std::vector<std::string> winners;
      for (const MethodMeasures& other : measured.methods) {
        if (other.passages[t].passes == fewest) winners.push_back(spoken(results, other.method));
      }
      exceptions.push_back(fmt::format("{} at {}: {} with {}, {} {}", measured.instance->info.name,
                                       threshold_name(results.thresholds[t]), in_words(winners), short_number(fewest),
                                       name, std::isfinite(own) ? "needs " + short_number(own) : "never gets there"));
    }
  }
  if (compared == 0) return "";
  if (exceptions.empty()) {
    return fmt::format("The fewest passes, alone or tied, on every instance and at every threshold: {}.",
                       in_words(always_fewest(results)));
  }
  std::string text =
      fmt::format("{}: not the fewest passes in {} of {} comparisons. ", name, exceptions.size(), compared);
  for (std::size_t i = 0; i < exceptions.size(); ++i) text += (i > 0 ? "; " : "") + exceptions[i];
  return text + ".";
}

// "d²" for "d^2": formulas come as plain text.
std::string with_powers(std::string text) {
  constexpr std::pair<const char*, const char*> powers[] = {{"^2", "²"}, {"^3", "³"}};
  for (const auto& [plain, typeset] : powers) {
    for (std::size_t at = text.find(plain); at != std::string::npos; at = text.find(plain))
      text.replace(at, 2, typeset);
  }
  return text;
}

Part speedup_part(const Speedup& speedup) {
  if (speedup.not_reached) return {"NR", no_number};
  if (std::isnan(speedup.ratio)) return {"n/a", no_number};
  return {(speedup.at_least ? "> " : "") + short_number(speedup.ratio) + "×", speedup.ratio};
}

// "198–320", or one number where they are the same.
std::string range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const std::string first = short_number(*low), last = short_number(*high);
  return first == last ? first : first + "–" + last;
}

std::string speedup_finding(const Results& results, const std::vector<Measured>& instances, const std::string& method,
                            std::size_t threshold) {
  std::vector<double> algorithm, end_to_end;
  std::vector<std::string> lower_bounds;
  for (const Measured& measured : instances) {
    const MethodMeasures *base = measured.find(base_method), *own = measured.find(method);
    if (!base || !own) continue;
    const Speedup fast = speedup(*base, *own, threshold, Clock::algorithm);
    const Speedup whole = speedup(*base, *own, threshold, Clock::end_to_end);
    if (std::isnan(fast.ratio) || std::isnan(whole.ratio)) continue;
    if (fast.at_least) {
      lower_bounds.push_back(measured.instance->info.name);
      continue;
    }
    algorithm.push_back(fast.ratio);
    end_to_end.push_back(whole.ratio);
  }
  if (algorithm.empty()) return "";
  std::string text = fmt::format("To {}, {} is {}× as fast as {} in the paper's clock and {}× end to end ({} {})",
                                 threshold_name(results.thresholds[threshold]), spoken(results, method),
                                 range(algorithm), spoken(results, base_method), range(end_to_end), algorithm.size(),
                                 algorithm.size() == 1 ? "instance" : "instances");
  if (!lower_bounds.empty())
    text += fmt::format("; {} never gets there on {}", spoken(results, base_method), in_words(lower_bounds));
  return text + ".";
}

std::string rises_finding(const Results& results) {
  Rises ours, others;
  std::vector<std::string> rising;
  for (const MethodRecord& record : measure_records(results).methods) {
    Rises& sum = is_ours(results, record.method) ? ours : others;
    sum.rises += record.rises.rises;
    sum.steps += record.rises.steps;
    if (record.rises.rises > 0) {
      rising.push_back(
          fmt::format("{} ({} of {})", spoken(results, record.method), record.rises.rises, record.rises.steps));
    }
  }
  if (ours.steps + others.steps == 0) return "";
  std::string text = ours.rises == 0 ? fmt::format("None of our {} steps raised the objective", ours.steps)
                                     : fmt::format("{} of our {} steps raised the objective", ours.rises, ours.steps);
  return text + (rising.empty() ? "; nor did any other method's." : "; steps that rise: " + in_words(rising) + ".");
}

}  // namespace

bool was_run(const AlignmentInstance& instance) {
  return !instance.runs.empty();
}

std::string display_title(const InstanceInfo& info) {
  return info.title.empty() ? info.name : info.title;
}

Table time_to_gap_table(const Results& results, Clock clock) {
  Table table = passage_matrix(results, [clock](const Passage& passage) { return passage.seconds(clock); });
  const std::string thresholds = in_words(threshold_names(results));
  if (clock == Clock::algorithm) {
    table.id = "time-to-gap";
    table.title = "Time to gap, the paper's clock: seconds of t_alg";
    table.how_to_read = {
        fmt::format("Median over seeds of update plus projection, to {}.", thresholds),
        "NR: not reached, with the median final gap in parentheses. Bold: the fastest of an instance."};
  } else {
    table.id = "time-to-gap-end-to-end";
    table.title = "Time to gap, end to end: seconds of preprocessing and t_alg";
    table.how_to_read = {"The same, with what each method prepares once: a square root, a decomposition, a start.",
                         "Forming the two covariances is shared by all and in neither clock."};
  }
  return table;
}

Table passes_table(const Results& results) {
  Table table = passage_matrix(results, [](const Passage& passage) { return passage.passes; });
  table.id = "passes";
  table.title = "Passes to gap: sweeps over a d × d matrix";
  table.how_to_read = {
      "A pass is one sweep over a d × d matrix, whatever the number of columns it multiplies; a full "
      "eigendecomposition "
      "counts as d of them, and for sample OT it is a sweep over the plan between the samples.",
      "Bold: the fewest of an instance."};
  if (const std::string sentence = fewest_passes_sentence(results); !sentence.empty()) table.findings = {sentence};
  return table;
}

Table speedup_table(const Results& results) {
  Table table;
  table.id = "speedup";
  table.title = "Speedup over " + spoken(results, base_method);
  table.how_to_read = {"Ratios of the medians above; larger is faster.",
                       "“>”: the base never got there, and the ratio is to its whole run. NR: the method itself did "
                       "not get there."};
  table.row_header = "Method";
  for (const char* clock : {"t_alg", "end to end"}) {
    for (const std::string& name : threshold_names(results)) table.columns.push_back({name, clock, {"ratio"}});
  }
  for (const Measured& measured : measure_instances(results)) {
    const MethodMeasures* base = measured.find(base_method);
    if (!base) continue;
    for (const char* id : compared_with_base) {
      const MethodMeasures* method = measured.find(id);
      if (!method) continue;
      TableRow row;
      row.group = fmt::format("{} (d = {})", measured.instance->info.name, measured.instance->info.dim);
      row.label = title_of(results, id);
      row.ours = is_ours(results, id);
      for (const Clock clock : {Clock::algorithm, Clock::end_to_end}) {
        for (std::size_t t = 0; t < results.thresholds.size(); ++t) {
          row.cells.push_back({speedup_part(speedup(*base, *method, t, clock))});
        }
      }
      table.rows.push_back(row);
    }
  }
  return table;
}

Table behaviour_table(const Results& results) {
  const Records records = measure_records(results);
  Table table;
  table.id = "behaviour";
  table.title = "Every method: what it minimises, whether it descends, what a step costs";
  table.how_to_read = {
      "Rises are counted over all runs: steps after which the exact objective W₂² is larger by more than "
      "1e-10 of what it was at the start (what the evaluator resolves), out of all steps.",
      fmt::format("Seconds per step: median of t_alg per step over the runs at d = {}.", records.dim)};
  table.row_header = "Method";
  table.columns = {{"objective", "", {}, " ", true},
                   {"rises / steps", "", {"rises", "steps"}, " / "},
                   {"monotone", "", {}, " ", true},
                   {"cost per step", "", {}, " ", true},
                   {fmt::format("seconds per step (d = {})", records.dim), "", {"median"}}};
  for (const MethodRecord& record : records.methods) {
    const MethodInfo* info = find_method(results, record.method);
    TableRow row;
    row.label = title_of(results, record.method);
    row.ours = is_ours(results, record.method);
    const auto words = [](const std::string& text) { return text.empty() ? Cell{} : Cell{{with_powers(text)}}; };
    row.cells = {words(info ? info->objective : ""),
                 {{std::to_string(record.rises.rises), static_cast<double>(record.rises.rises)},
                  {std::to_string(record.rises.steps), static_cast<double>(record.rises.steps)}},
                 words(record.rises.steps == 0   ? ""
                       : record.rises.rises == 0 ? "yes, in these runs"
                                                 : "no"),
                 words(info ? info->cost : ""),
                 std::isfinite(record.seconds_per_step)
                     ? Cell{{short_number(record.seconds_per_step), record.seconds_per_step}}
                     : Cell{}};
    table.rows.push_back(row);
  }
  return table;
}

Table instance_table(const Results& results, const AlignmentInstance& instance) {
  const auto methods = measure_all(instance, results);
  Table table;
  table.id = "alignment-" + instance.info.name;
  table.title = display_title(instance.info);
  table.row_header = "Method";
  struct Kind {
    const char* name;
    Quantity quantity;
  };
  const Kind kinds[] = {{"t_alg in seconds", [](const Passage& p) { return p.algorithm_seconds; }},
                        {"end to end in seconds", [](const Passage& p) { return p.end_to_end_seconds; }},
                        {"passes", [](const Passage& p) { return p.passes; }}};
  for (const Kind& kind : kinds) {
    for (const std::string& name : threshold_names(results)) table.columns.push_back({name, kind.name, {"median"}});
  }
  table.columns.push_back({"final gap", "", {"median"}});
  table.columns.push_back({"once", "preprocessing", {"median"}});
  for (const char* part : {"update", "projection", "evaluation"}) {
    table.columns.push_back({part, "seconds per step", {"median"}});
  }
  for (const MethodMeasures& method : methods) {
    TableRow row;
    row.label = title_of(results, method.method);
    row.ours = is_ours(results, method.method);
    for (const Kind& kind : kinds) {
      for (std::size_t t = 0; t < results.thresholds.size(); ++t) {
        const double value = kind.quantity(method.passages[t]);
        Part part = passage_part(value, method.final_gap, value == best_of(methods, t, kind.quantity));
        row.cells.push_back({part});
      }
    }
    for (const double value : {method.final_gap, method.preprocessing_seconds, method.update_per_step,
                               method.projection_per_step, method.evaluation_per_step}) {
      row.cells.push_back(std::isfinite(value) ? Cell{{short_number(value), value}} : Cell{});
    }
    table.rows.push_back(row);
  }
  return table;
}

std::vector<std::string> alignment_findings(const Results& results) {
  const auto instances = measure_instances(results);
  std::vector<std::string> findings;
  if (instances.empty()) return findings;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) findings.push_back(sentence);
  };
  for (std::size_t t = 0; t < results.thresholds.size(); ++t) {
    add(speedup_finding(results, instances, representative(results), t));
  }
  // A reader should see at once what a better step rule does for the base.
  if (!results.thresholds.empty()) {
    add(speedup_finding(results, instances, "bw-gd-unit", results.thresholds.size() - 1));
  }
  add(fewest_passes_sentence(results));
  add(rises_finding(results));
  return findings;
}

}  // namespace itspace::experiments::report
