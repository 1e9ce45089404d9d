// SPDX-License-Identifier: Apache-2.0
#include "core/recorder.hpp"

#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

// Why a product is not finite, where the trace alone, which is a double, tells.
std::string overflow_in(const Trace& trace) {
  const double largest =
      trace.precision == "float32" ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  if (!(trace.target_trace > largest)) return "";
  return text("the target's trace, a sum of squares, is ", trace.target_trace, ", and ", trace.precision, " ends at ",
              largest, ": the squares overflow");
}

}  // namespace

Recorder::Recorder(Index dim, Index rank, std::string precision, std::optional<double> alpha, double tolerance,
                   Solver solver, std::chrono::steady_clock::time_point begin)
    : tolerance_(tolerance), best_objective_(std::numeric_limits<double>::infinity()), begin_(begin) {
  trace_.dim = dim;
  trace_.rank = rank;
  trace_.precision = std::move(precision);
  trace_.solver = name(solver);
  trace_.alpha = alpha;
}

void Recorder::go_on_behind(Trace trace) {
  trace_ = std::move(trace);
  trace_.reason.clear();
  best_objective_ = trace_.steps[static_cast<std::size_t>(trace_.best)].objective;
  for (const Step& row : trace_.steps) note_route(row.route);
  repeats_ = true;
}

void Recorder::note_route(std::optional<Route> route) {
  if (!route) return;
  several_routes_ |= single_route_.has_value() && route != single_route_;
  single_route_ = route;
}

void Recorder::expect_at_once(Index rows) {
  trace_.steps.reserve(static_cast<std::size_t>(rows));
  seconds_of_all_ = seconds();
}

double Recorder::seconds() const {
  if (seconds_of_all_) return *seconds_of_all_;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Recorder::iterate_made(const std::optional<StepMade>& step, Index passes) {
  const auto index = static_cast<Index>(trace_.steps.size());
  Step& row = trace_.steps.emplace_back();
  row.index = index;
  row.passes = passes;
  row.seconds = seconds();
  if (step) {
    row.alpha = step->alpha;
    row.step_squared = step->step_squared;
    row.promised_descent = step->promised_descent;
    row.objective_bound = step->objective_bound;
    doubt_ = step->doubt;
  }
}

std::optional<Status> Recorder::evaluated(const Certificate& certificate, const Measured& measured) {
  Step& row = trace_.steps.back();
  if (std::exchange(repeats_, false)) {
    // Sums over many samples may have been made in another order, by other ranks.
    constexpr double of_sums = 1e-10;
    const double off = std::abs(measured.objective - row.objective);
    const double known = 2 * (measured.resolution + row.resolution) + of_sums * trace_.target_trace;
    require(measured.target_version != row.target_version || !(off > known), "the checkpoint says that W2^2 is ",
            row.objective, " at step ", row.index, ", and to this target it is ", measured.objective,
            ": it was made with another target; resume with that one, or begin without the checkpoint");
    return std::nullopt;
  }
  row.objective = measured.objective;
  row.resolution = measured.resolution;
  row.certificate_gap = certificate.gap;
  row.feasibility = certificate.feasibility;
  row.orthogonality = certificate.orthogonality;
  row.gram_rank = certificate.rank;
  row.route = measured.route;
  row.target_version = measured.target_version;
  row.seconds = seconds();
  note_route(measured.route);
  const Step* before = row.index > 0 ? &trace_.steps[trace_.steps.size() - 2] : nullptr;
  // Distances to two targets are not compared: the best is sought anew, and the step was promised nothing of this one.
  const bool comparable = before != nullptr && before->target_version == row.target_version;
  if (row.objective <= best_objective_ || (before != nullptr && !comparable)) {
    best_objective_ = row.objective;
    trace_.best = row.index;
  }
  if (!comparable) return std::nullopt;

  row.actual_descent = before->objective - row.objective;
  // Not moving away is owed up to what is known of F, whatever was promised.
  const double resolution = before->resolution + row.resolution;
  row.allowance = resolution + (promised_nothing() ? 0.0 : std::min(doubt_, row.promised_descent));
  row.certified = row.actual_descent >= -resolution &&
                  (promised_nothing() || row.actual_descent >= row.promised_descent - row.allowance);
  if (!*row.certified) return Status::certificate_failed;
  if (tolerance_ > 0 && row.actual_descent <= tolerance_ * before->objective) return Status::converged;
  return std::nullopt;
}

bool Recorder::promised_nothing() const {
  return !(row().promised_descent > 0);
}

void Recorder::not_evaluated(Index target_version) {
  Step& row = trace_.steps.back();
  row.target_version = target_version;
  row.seconds = seconds();
  if (row.objective_bound <= best_objective_) trace_.best = row.index;
}

const Trace& Recorder::complete(Status status, Index passes_total) {
  trace_.passes_total = passes_total;
  trace_.status = status;
  if (status == Status::not_finite && trace_.reason.empty()) trace_.reason = overflow_in(trace_);
  trace_.route = several_routes_ || !single_route_ ? Route::automatic : *single_route_;
  return trace_;
}

Trace Recorder::finish(Status status, Index passes_total) {
  complete(status, passes_total);
  return std::move(trace_);
}

}  // namespace itspace
