// SPDX-License-Identifier: Apache-2.0
//
// The loop that every solver runs in: look at the iterate, complete its row, hand it out, step.
#pragma once

#include <itspace/align.hpp>

#include "core/recorder.hpp"

#include <optional>
#include <utility>

namespace itspace {

// A Solver has
//   Recorder& recorder();
//   std::optional<Status> look_at(k, last);           the pass at Y_k; completes its row; a status ends the run
//   const Block<Scalar>& current();                   Y_k
//   void keep_best();                                 Y_k is the best so far
//   Block<Scalar> take_best();
//   std::optional<StepMade> make_step(next_is_last);  makes Y_{k+1} beside Y_k; none where a product was not finite
//   void advance();                                   Y_{k+1} becomes current
template <Storage Scalar, class Solver>
Result<Scalar> drive(Solver& solver, const AlignOptions& options, const OnStep<Scalar>& on_step) {
  Result<Scalar> result;
  if (options.keep_iterates) result.iterates.reserve(static_cast<std::size_t>(options.steps) + 1);
  Recorder& recorder = solver.recorder();
  recorder.iterate_made(std::nullopt);
  std::optional<Status> end;
  for (Index k = 0; !end; ++k) {
    const bool last = k == options.steps;
    end = solver.look_at(k, last);
    if (recorder.last_is_best()) solver.keep_best();
    if (options.keep_iterates) result.iterates.push_back(solver.current());
    if (on_step && on_step(recorder.row(), solver.current()) == StepAction::stop && !end) end = Status::stopped;
    if (!end && last) end = Status::step_limit;
    if (end) break;
    const std::optional<StepMade> step = solver.make_step(k + 1 == options.steps);
    if (!step) {
      end = Status::not_finite;
      break;
    }
    recorder.iterate_made(step);
    solver.advance();
  }
  result.factor = solver.take_best();
  result.trace = recorder.finish(*end);
  return result;
}

}  // namespace itspace
