// SPDX-License-Identifier: Apache-2.0
//
// The paper's iteration in its one-pass form: basis, product, certificate, record, combine.
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>

#include "core/completion.hpp"
#include "core/evaluated_point.hpp"
#include "core/probe.hpp"
#include "core/product.hpp"
#include "core/recorder.hpp"
#include "core/run_context.hpp"
#include "core/solver_loop.hpp"

#include <array>
#include <memory>
#include <optional>

namespace itspace {

// A run that was begun elsewhere: the last row of its trace is made and not evaluated.
template <Space S>
struct UnderWay {
  Recorder recorder;
  typename S::Block current;
  std::optional<typename S::Block> best;  // where that is another one
};

template <Space S>
class PaperSolver {
 public:
  using Scalar = typename S::Scalar;
  using Block = typename S::Block;
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  // @pre options are valid for the target, and the start is d x rank.
  PaperSolver(RunContext<S>& run, Block start, Index rank, const AlignOptions& options);
  PaperSolver(RunContext<S>& run, UnderWay<S> state, Index rank, const AlignOptions& options);

  BasicResult<S> run(const BasicOnStep<S>& on_step);
  // The start alone.
  BasicEvaluation<S> evaluate_start();

  // What run_solver() asks for.
  Recorder& recorder() { return recorder_; }
  Index rank() const { return rank_; }
  Index passes() const { return target_.passes(); }
  std::optional<Status> evaluate(Index k, bool last);
  const Block& current() const { return iterates_[current_]; }
  void keep_best() { best_ = current_; }
  Block take_best() { return std::move(iterates_[best_]); }
  StepOutcome make_step(bool next_is_last);
  void advance();
  StepOutcome shorten_step();

 private:
  // The target is another one than at the last evaluation: what was kept of it is void.
  void forget_old_target();
  // The pass at Y_k and everything it shows; with `lifts`, up to B. A status ends the run.
  std::optional<Status> evaluate_current(Index k, bool step_follows, bool lifts);
  std::optional<Status> record_evaluation();
  std::optional<Status> certify_by(Route route, bool step_follows);
  Route choose_route() const;
  bool may_use_factor() const;
  NullRule null_rule(Route route) const;
  void complete_certificate(Index k);
  bool lift();

  // A certificate with a smaller gap, from the data at hand or from another pass; false where there is none. A status
  // ends the run.
  bool improve_certificate(bool step_follows, std::optional<Status>& end);
  // What a step promises, less what of it may be rounding.
  double safe_descent(double alpha) const;
  // Not even a step that goes all the way is promised to end below F(Y_k) + its resolution.
  bool promises_nothing(double alpha) const;
  bool needs_improvement() const;
  double resolution() const { return point_.resolution(storage(), recorder_.target_trace()); }

  double search_line();
  double kept_product_error(const Basis& to) const;
  StepMade step_to(double alpha) const;

  Block& next() { return iterates_[next_]; }
  bool searches_line() const { return options_.step_size.kind() == StepSize::Kind::line_search; }
  Product<S>& product();
  View columns(Block& block, Index count) { return space_.columns(block, 0, count); }
  double eps() const { return static_cast<double>(std::numeric_limits<Scalar>::epsilon()); }
  StorageRounding storage() const { return storage_rounding<Scalar>(target_.dim()); }

  RunContext<S>& run_;
  S& space_;
  CountedTarget<S>& target_;
  AlignOptions options_;
  Index rank_;
  double alpha_;  // of a plain step
  Recorder recorder_;
  Index version_;  // of the target at the last evaluation

  // Three blocks take turns: Y_k, Y_{k+1}, and the best so far where that is neither.
  std::array<Block, 3> iterates_;
  std::size_t current_ = 0, next_ = 1, best_ = 0, previous_ = 0;
  Block q_, b_;
  Block q_b_, sigma_q_b_;  // line search: a basis of B and its product
  Block z_;                // completion: what it draws

  OperatorProduct<S> by_operator_;
  std::unique_ptr<FactorProduct<S>> by_factor_;  // made when it is first needed: its blocks have the rows of the factor
  std::unique_ptr<Probe<S>> probe_;

  // The state at Y_k.
  bool knows_nothing_ = true;  // no iterate was evaluated here before
  Route route_ = Route::qr;
  EvaluatedPoint point_;
  Basis previous_basis_, basis_b_;
  double probe_gain_ = 0;
  Certificate compact_;       // the certificate before completion
  bool completed_ = false;    // it was completed
  bool on_trial_ = false;     // the step that made this iterate promised nothing
  bool regularised_ = false;  // it is inexact on purpose (gram_regularization)

  // The step that made the current iterate from the previous one: what shorten_step() needs of it.
  struct Taken {
    double alpha = 1;
    double difference_squared = 0, gap = 0, remainder = 0, doubt = 0;  // at the previous iterate
    int shortened = 0;
  } taken_;

  bool range_exhausted_ = false;  // completion found nothing more in the target's range
  double kept_error_ = 1;         // rounding of a W that was combined instead of computed, in units of a fresh one
  bool may_keep_product_ = false;
  double step_alpha_ = 1;
};

}  // namespace itspace
