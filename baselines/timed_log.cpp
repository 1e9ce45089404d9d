// SPDX-License-Identifier: Apache-2.0
#include "baselines/timed_log.hpp"

namespace itspace::baselines {

TimedLog::TimedLog(Index dim, Index rank, std::string solver, OnStep<double> on_step) : on_step_(std::move(on_step)) {
  Trace& trace = timed_.result.trace;
  trace.dim = dim;
  trace.rank = rank;
  trace.solver = std::move(solver);
  trace.precision = "float64";
}

bool TimedLog::report(Block<double> factor, double step_size) {
  Result<double>& result = timed_.result;
  Step row;
  row.index = static_cast<Index>(result.trace.steps.size());
  row.alpha = step_size;
  row.passes = passes_;
  row.seconds = update_ + projection_;
  timed_.timing.update_seconds.push_back(update_);
  timed_.timing.projection_seconds.push_back(projection_);
  result.trace.steps.push_back(row);
  result.trace.passes_total = passes_;
  result.trace.best = row.index;
  result.iterates.push_back(std::move(factor));
  if (!on_step_ || on_step_(row, result.iterates.back()) == StepAction::proceed) return true;
  result.trace.status = Status::stopped;
  return false;
}

TimedResult TimedLog::finish(double target_trace) {
  timed_.result.trace.target_trace = target_trace;
  if (!timed_.result.iterates.empty()) timed_.result.factor = timed_.result.iterates.back();
  return std::move(timed_);
}

}  // namespace itspace::baselines
