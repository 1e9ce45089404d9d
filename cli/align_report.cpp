// SPDX-License-Identifier: Apache-2.0
//
// Rows, summary and JSON of an alignment.
#include "align_report.hpp"

#include <itspace/covariance.hpp>
#include <itspace/io.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace itspace::cli {

namespace {

constexpr auto columns = "{:>4}  {:>17}  {}{:>11}  {:>10}  {:>10}  {:>9}  {:>6}  {:>9}";

double start_objective(const Trace& trace) {
  return trace.steps.empty() ? not_a_number : trace.steps.front().objective;
}

std::string certified_text(const Step& step) {
  if (step.index == 0) return "";
  if (!step.certified) return "-";
  return *step.certified ? "yes" : "NO";
}

bool broke_its_promise(const Step& step) {
  return !step.certified.value_or(true);
}

std::string progress_text(const Trace& trace, std::optional<double> floor, const std::string& goal) {
  const double from = start_objective(trace), to = best_objective(trace);
  if (std::isnan(from) && std::isnan(to)) return fmt::format("W2^2 to {} was not evaluated.", goal);
  const std::string movement = fmt::format("W2^2 to {}: {} -> {}", goal, number(from), number(to));
  if (!floor) return fmt::format("{} ({} less).", movement, percent(from > 0 ? (from - to) / from : 0.0));
  return fmt::format("{}, {} of the way to {}, the least that rank {} allows.", movement,
                     percent(1 - gap_r(to, from, *floor)), number(*floor), trace.rank);
}

std::string certificate_text(const Trace& trace) {
  if (!trace.certified())
    return std::any_of(trace.steps.begin(), trace.steps.end(), broke_its_promise)
               ? "NOT certified: at least one step broke its promise beyond rounding."
               : fmt::format("NOT certified: the run ended as {}.", name(trace.status));
  if (trace.steps.size() < 2) return "No step was made; the start is returned as it came.";
  const auto steps = trace.steps.size() - 1;
  const auto unknown =
      std::count_if(trace.steps.begin() + 1, trace.steps.end(), [](const Step& step) { return !step.certified; });
  if (unknown > 0)
    return fmt::format(
        "Certified: {} of {} steps were checked against their promise and kept it; the others were not "
        "evaluated (the objective above is then a bound).",
        static_cast<std::ptrdiff_t>(steps) - unknown, steps);
  return fmt::format("Certified: {} kept {} promise.", steps == 1 ? "the step" : fmt::format("all {} steps", steps),
                     steps == 1 ? "its" : "their");
}

std::string ending_text(const Trace& trace) {
  switch (trace.status) {
    case Status::step_limit:
      return "";
    case Status::converged:
      if (!trace.reason.empty()) return fmt::format("Converged: {}.", trace.reason);
      return "Converged: the relative decrease fell to the tolerance.";
    case Status::stopped:
      return "Stopped before the last step, as asked; the best iterate so far is returned.";
    case Status::certificate_failed:
      if (!trace.reason.empty()) return fmt::format("The run ended early: {}.", trace.reason);
      return "A step broke its promise, so the run ended there; the best iterate before it is returned.";
    case Status::not_finite:
      return fmt::format(
          "A product with the target was not finite{}, so the run ended there; the best iterate before it is returned.",
          trace.reason.empty() ? "" : fmt::format(" ({})", trace.reason));
    case Status::not_a_covariance:
      return fmt::format("The target is not a covariance: {}. The start is returned.", trace.reason);
  }
  return "";
}

}  // namespace

std::string AlignReport::heading() const {
  return fmt::format(columns, "step", "objective W2^2", floor_ ? fmt::format("{:>10}  ", "gap") : "", "certificate",
                     "promised", "descent", "certified", "passes", "seconds");
}

std::string AlignReport::row(const Step& step) {
  if (step.index == 0) start_objective_ = step.objective;
  std::string gap;
  if (floor_) {
    const bool known = !std::isnan(step.objective) && !std::isnan(start_objective_);
    gap =
        fmt::format("{:>10}  ", small_number(known ? gap_r(step.objective, start_objective_, *floor_) : not_a_number));
  }
  return fmt::format(columns, step.index, number(step.objective), gap, small_number(step.certificate_gap),
                     small_number(step.promised_descent), small_number(step.actual_descent), certified_text(step),
                     step.passes, fmt::format("{:.4f}", step.seconds));
}

std::string AlignReport::summary(const Trace& trace) const {
  std::string text = progress_text(trace, floor_, goal_) + "\n" + certificate_text(trace);
  if (const auto ending = ending_text(trace); !ending.empty()) text += "\n" + ending;
  return text;
}

double best_objective(const Trace& trace) {
  if (trace.best < 0 || static_cast<std::size_t>(trace.best) >= trace.steps.size()) return not_a_number;
  const Step& best = trace.steps[static_cast<std::size_t>(trace.best)];
  return std::isnan(best.objective) ? best.objective_bound : best.objective;
}

Json align_json(const Trace& trace, std::optional<double> floor) {
  Json json;
  json["status"] = std::string(name(trace.status));
  json["certified"] = trace.certified();
  json["start_objective"] = start_objective(trace);
  json["objective"] = best_objective(trace);
  if (floor) {
    json["floor"] = *floor;
    json["gap"] = gap_r(best_objective(trace), start_objective(trace), *floor);
    for (const Step& step : trace.steps) json["gaps"].push_back(gap_r(step.objective, start_objective(trace), *floor));
  }
  json["trace"] = Json::parse(io::to_json(trace));
  return json;
}

}  // namespace itspace::cli
