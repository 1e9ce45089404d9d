// SPDX-License-Identifier: Apache-2.0
//
// The paper's iteration in its one-pass form: basis, product, certificate, record, combine.
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>

#include "core/completion.hpp"
#include "core/drive.hpp"
#include "core/look.hpp"
#include "core/probe.hpp"
#include "core/product.hpp"
#include "core/recorder.hpp"

#include <array>
#include <memory>

namespace itspace {

template <Storage Scalar>
class PaperSolver {
 public:
  // @pre options are valid for the target. `passes_before`: what the start has cost.
  PaperSolver(TargetRef<Scalar> target, const ConstBlockView<Scalar>& start, const AlignOptions& options,
              Index passes_before);

  Result<Scalar> run(const OnStep<Scalar>& on_step);
  // The start alone.
  Evaluation<Scalar> evaluate();

  // What drive() asks for.
  Recorder& recorder() { return recorder_; }
  std::optional<Status> look_at(Index k, bool last);
  const Block<Scalar>& current() const { return iterates_[current_]; }
  void keep_best() { best_ = current_; }
  Block<Scalar> take_best() { return std::move(iterates_[best_]); }
  StepOutcome make_step(bool next_is_last);
  void advance();
  StepOutcome shorten_step();

 private:
  // The pass at Y_k and everything it shows, up to B. A status ends the run.
  std::optional<Status> look(Index k, bool step_follows);
  std::optional<Status> certify_by(Route route, bool step_follows);
  Route choose_route(bool first) const;
  bool may_use_factor() const { return by_factor_ && !probe_ && !searches_line(); }
  NullRule null_rule(Route route) const;
  void complete_certificate(Index k);
  void doubt_promise();
  bool lift();

  // A certificate with a smaller gap, from the data at hand or from another pass; false where there is none. A status
  // ends the run.
  bool improve_certificate(bool step_follows, std::optional<Status>& end);
  // Not even a step that goes all the way is promised to end below F(Y_k) + its resolution.
  bool promises_nothing(double alpha) const;
  bool needs_improvement() const;
  double resolution() const { return look_.resolution(eps(), recorder_.target_trace()); }

  double search_line();
  double kept_product_error(const Basis& to) const;
  StepMade step_to(double alpha) const;

  Block<Scalar>& next() { return iterates_[next_]; }
  bool searches_line() const { return options_.step_size.kind() == StepSize::Kind::line_search; }
  Product<Scalar>& product() {
    if (route_ == Route::factor || route_ == Route::root) return *by_factor_;
    return by_operator_;
  }
  double eps() const { return static_cast<double>(std::numeric_limits<Scalar>::epsilon()); }

  TargetRef<Scalar> target_;
  AlignOptions options_;
  double alpha_;  // of a plain step
  Recorder recorder_;
  kernels::Panels panels_;

  // Three blocks take turns: Y_k, Y_{k+1}, and the best so far where that is neither.
  std::array<Block<Scalar>, 3> iterates_;
  std::size_t current_ = 0, next_ = 1, best_ = 0, previous_ = 0;
  Block<Scalar> q_, b_;
  Block<Scalar> q_b_, sigma_q_b_;  // line search: a basis of B and its product
  Block<Scalar> z_;                // completion: what it draws

  std::unique_ptr<RootTarget<Scalar>> root_;
  OperatorProduct<Scalar> by_operator_;
  std::unique_ptr<FactorProduct<Scalar>> by_factor_;
  std::unique_ptr<Probe<Scalar>> probe_;

  // The state at Y_k.
  Route route_ = Route::qr;
  Look look_;
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
