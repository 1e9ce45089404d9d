// SPDX-License-Identifier: Apache-2.0
//
// The trace as it is written, and the judgement over each step: which promise it made, and whether it was kept.
#pragma once

#include <itspace/align.hpp>

#include "core/certificate.hpp"

#include <chrono>
#include <optional>

namespace itspace {

// What is known of a step before its end point is evaluated.
struct StepMade {
  double alpha = 1;
  double step_squared = 0;
  double promised_descent = 0;  // NaN where none is promised
  double objective_bound = 0;
  double doubt = 0;  // rounding in what is promised
};

// Of the step Y + alpha (B - Y), where ||B - Y||^2 is `difference_squared` and B leaves `remainder` of tr Sigma: M(Z) =
// ||Z||^2 + tr Sigma - 2 tr(B'Z) is above F everywhere, 2 gap above it at Y, and has its minimum at B.
inline double promised_descent(double alpha, double difference_squared, double gap) {
  return alpha * (2 - alpha) * difference_squared - 2 * gap;
}
inline double objective_bound(double alpha, double difference_squared, double remainder) {
  return (1 - alpha) * (1 - alpha) * difference_squared + remainder;
}
inline StepMade step_along(double alpha, double difference_squared, double gap, double remainder, double doubt) {
  return {alpha, alpha * alpha * difference_squared, promised_descent(alpha, difference_squared, gap),
          objective_bound(alpha, difference_squared, remainder), doubt};
}

// What the pass at Y_k showed.
struct Measured {
  double objective = 0;
  double resolution = 0;  // EvaluatedPoint::resolution
  Route route = Route::qr;
  Index target_version = 0;
};

template <Storage Scalar>
std::string precision_name() {
  return std::same_as<Scalar, float> ? "float32" : "float64";
}

class ITSPACE_API Recorder {
 public:
  // `dim`, `rank`, `precision`, `alpha`, `solver` as in Trace; `begin`: when the run began.
  Recorder(Index dim, Index rank, std::string precision, std::optional<double> alpha, double tolerance, Solver solver,
           std::chrono::steady_clock::time_point begin);

  // Goes on behind the rows of an earlier stretch of the run. The iterate of the last one is evaluated once more, which
  // changes nothing in its row.
  void go_on_behind(Trace trace);
  bool repeats() const { return repeats_; }

  void set_target_trace(double trace) { trace_.target_trace = trace; }
  double target_trace() const { return trace_.target_trace; }

  // So many rows are known at once, now: room for all of them, and one look at the clock.
  void expect_at_once(Index rows);

  // The iterate of the next row has been made, by `step` (none for the start), after so many passes.
  void iterate_made(const std::optional<StepMade>& step, Index passes);

  // Completes the row. Returns the status the run must end with now, if it must.
  std::optional<Status> evaluated(const Certificate& certificate, const Measured& measured);
  // Completes the row of an iterate that is not evaluated. It is the best one if its bound says so.
  void not_evaluated(Index target_version);

  // The step of the last row promised nothing, so that its failure to descend breaks no promise.
  bool promised_nothing() const;
  // Takes back the last row: its step was not worth taking.
  void discard_row() { trace_.steps.pop_back(); }

  Index rows() const { return static_cast<Index>(trace_.steps.size()); }
  const Step& row() const { return trace_.steps.back(); }
  bool last_is_best() const { return trace_.best == row().index; }
  // Why the run ends as it does, where the status does not say.
  void give_reason(std::string reason) { trace_.reason = std::move(reason); }
  // The whole trace: to look at, or to take.
  const Trace& complete(Status status, Index passes_total);
  Trace finish(Status status, Index passes_total);

 private:
  double seconds() const;
  void note_route(std::optional<Route> route);

  Trace trace_;
  std::optional<Route> single_route_;
  bool several_routes_ = false;
  bool repeats_ = false;
  double tolerance_;
  double best_objective_;
  double doubt_ = 0;  // of the step that made the last row
  std::chrono::steady_clock::time_point begin_;
  std::optional<double> seconds_of_all_;  // where all rows are made at once
};

}  // namespace itspace
