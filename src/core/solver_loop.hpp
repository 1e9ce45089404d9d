// SPDX-License-Identifier: Apache-2.0
//
// The loop that every solver runs in: evaluate the iterate, complete its row, hand it out, step.
#pragma once

#include <itspace/align.hpp>

#include "core/recorder.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace itspace {

// How a step is made where one can be: the step, or why there is none. A step is not made where nothing is promised to
// descend: at rounding level the run has converged, elsewhere the certificate has failed.
struct StepOutcome {
  std::optional<StepMade> made;
  Status status = Status::converged;  // where none was made
  std::string reason = {};
};

// A Solver has
//   Recorder& recorder();
//   Index rank();                              columns of Y
//   Index passes();                            sweeps made so far
//   std::optional<Status> evaluate(k, last);   the pass at Y_k; completes its row; a status ends the run. Where a step
//                                              may follow (not `last`) it may be begun here, if nothing
//                                              of that shows: neither in Y_k nor in its row, nor where
//                                              make_step() is not called
//   const Block& current();                    Y_k
//   void keep_best();                          Y_k is the best so far
//   Block take_best();
//   StepOutcome make_step(next_is_last);       makes Y_{k+1} beside Y_k; next_is_last: k + 1 == options.steps
//   void advance();                            Y_{k+1} becomes current
//   StepOutcome shorten_step();                replaces Y_{k+1} by a point nearer to Y_k, after evaluate(k+1) has shown
//                                              that F rose; where that was tried often enough Y_k is current again
template <Space S, class Solver>
BasicResult<S> run_solver(S& space, Index dim, Solver& solver, const AlignOptions& options,
                          const BasicOnStep<S>& on_step) {
  BasicResult<S> result;
  if (options.keep_iterates) result.iterates.reserve(static_cast<std::size_t>(options.steps) + 1);
  Recorder& recorder = solver.recorder();
  // Behind a checkpoint the row of the start is there, and was handed out. A run that was under way elsewhere goes on
  // with a row that is made and not evaluated.
  const Index known = recorder.repeats() ? recorder.rows() - 1 : -1;
  if (recorder.rows() == 0) recorder.iterate_made(std::nullopt, solver.passes());
  std::optional<Status> end;
  for (Index k = recorder.rows() - 1; !end; ++k) {
    const bool last = k == options.steps, is_new = k != known;
    end = solver.evaluate(k, last);
    // A step that promised nothing and did not descend breaks no promise, and is not taken: nearer points are tried.
    while (end == Status::certificate_failed && recorder.promised_nothing()) {
      recorder.discard_row();
      StepOutcome shorter = solver.shorten_step();
      if (!shorter.made) {
        end = shorter.status;
        recorder.give_reason(std::move(shorter.reason));
        break;
      }
      recorder.iterate_made(shorter.made, solver.passes());
      end = solver.evaluate(k, last);
    }
    if (recorder.rows() <= k) break;  // the row was taken back, and Y_{k-1} stays
    if (recorder.last_is_best()) solver.keep_best();
    if (options.keep_iterates && is_new) {
      result.iterates.push_back(space.make_block(dim, solver.rank()));
      space.copy(solver.current(), result.iterates.back());
    }
    if (is_new && on_step && on_step(recorder.row(), solver.current()) == StepAction::stop && !end)
      end = Status::stopped;
    if (!end && last) end = Status::step_limit;
    if (end) break;
    StepOutcome step = solver.make_step(k + 1 == options.steps);
    if (!step.made) {
      end = step.status;
      recorder.give_reason(std::move(step.reason));
      break;
    }
    recorder.iterate_made(step.made, solver.passes());
    solver.advance();
  }
  result.factor = solver.take_best();
  result.trace = recorder.finish(*end, solver.passes());
  return result;
}

}  // namespace itspace
