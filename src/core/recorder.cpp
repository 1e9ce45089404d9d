// SPDX-License-Identifier: Apache-2.0
#include "core/recorder.hpp"

#include <cmath>
#include <utility>

namespace itspace {

Recorder::Recorder(Index dim, Index rank, std::string precision, std::optional<double> alpha, double tolerance,
                   std::string solver)
    : tolerance_(tolerance), best_objective_(std::numeric_limits<double>::infinity()) {
  trace_.dim = dim;
  trace_.rank = rank;
  trace_.precision = std::move(precision);
  trace_.solver = std::move(solver);
  trace_.alpha = alpha;
}

double Recorder::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Recorder::iterate_made(const std::optional<StepMade>& step) {
  Step row;
  row.index = static_cast<Index>(trace_.steps.size());
  row.passes = trace_.passes_total;
  row.seconds = seconds();
  if (step) {
    row.alpha = step->alpha;
    row.step_squared = step->step_squared;
    row.promised_descent = step->promised_descent;
    row.objective_bound = step->objective_bound;
  }
  trace_.steps.push_back(row);
}

std::optional<Status> Recorder::evaluated(const Certificate& certificate, const Evaluation& evaluation) {
  Step& row = trace_.steps.back();
  row.objective = evaluation.objective;
  row.certificate_gap = certificate.gap;
  row.feasibility = certificate.feasibility;
  row.orthogonality = certificate.orthogonality;
  row.gram_rank = certificate.rank;
  row.route = evaluation.route;
  row.seconds = seconds();
  const double uncertainty_before = std::exchange(uncertainty_, certificate.uncertainty);
  allowance_ = evaluation.allowance;
  several_routes_ |= single_route_.has_value() && *single_route_ != evaluation.route;
  single_route_ = evaluation.route;
  if (row.objective <= best_objective_) {
    best_objective_ = row.objective;
    trace_.best = row.index;
  }
  if (row.index == 0) return std::nullopt;

  const double before = trace_.steps[trace_.steps.size() - 2].objective;
  row.actual_descent = before - row.objective;
  // Where nothing is promised (a line search that left (0, 2)), not moving away is still owed.
  const double owed = std::isnan(row.promised_descent) ? 0.0 : row.promised_descent;
  row.certified = row.actual_descent >= owed - evaluation.allowance - uncertainty_before;
  if (!*row.certified) return Status::certificate_failed;
  if (tolerance_ > 0 && row.actual_descent <= tolerance_ * before) return Status::converged;
  return std::nullopt;
}

void Recorder::not_evaluated() {
  Step& row = trace_.steps.back();
  row.seconds = seconds();
  if (row.objective_bound <= best_objective_ + allowance_) trace_.best = row.index;
}

Trace Recorder::finish(Status status) {
  trace_.status = status;
  trace_.route = several_routes_ || !single_route_ ? Route::automatic : *single_route_;
  return std::move(trace_);
}

}  // namespace itspace
