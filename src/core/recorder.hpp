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
};

// What the pass at Y_k showed.
struct Evaluation {
  double objective = 0;
  double allowance = 0;  // the rounding granted to a promise: Look::allowance
  Route route = Route::qr;
};

template <Storage Scalar>
std::string precision_name() {
  return std::same_as<Scalar, float> ? "float32" : "float64";
}

class Recorder {
 public:
  // `dim`, `rank`, `precision`, `alpha`, `solver` as in Trace.
  Recorder(Index dim, Index rank, std::string precision, std::optional<double> alpha, double tolerance,
           std::string solver);

  void add_passes(Index passes) { trace_.passes_total += passes; }
  void set_target_trace(double trace) { trace_.target_trace = trace; }
  double target_trace() const { return trace_.target_trace; }

  // The iterate of the next row has been made (with the passes so far), by `step`; none for the start.
  void iterate_made(const std::optional<StepMade>& step);

  // Completes the row. Returns the status the run must end with now, if it must.
  std::optional<Status> evaluated(const Certificate& certificate, const Evaluation& evaluation);
  // Completes the row of an iterate that is not evaluated. It is the best one if its bound says so.
  void not_evaluated();

  const Step& row() const { return trace_.steps.back(); }
  bool last_is_best() const { return trace_.best == row().index; }
  Trace finish(Status status);

 private:
  double seconds() const;

  Trace trace_;
  std::optional<Route> single_route_;
  bool several_routes_ = false;
  double tolerance_;
  double best_objective_;
  double allowance_ = 0;
  double uncertainty_ = 0;  // of the last evaluated objective
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace itspace
