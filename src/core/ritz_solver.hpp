// SPDX-License-Identifier: Apache-2.0
//
// Ritz steps: the best factor of each subspace, one pass per step.
//
// Over all rank-r factors inside a subspace the best is the truncation of its Rayleigh-Ritz matrix. The subspace is
// [P, V, Q]: V the r + g leading Ritz vectors with Sigma V kept, Q the new directions of Sigma V with a fresh Sigma Q,
// P the previous V. This is LOBPCG (Knyazev 2001) on a covariance, block-warm-started. What is reported is the
// truncated Nystrom factor of V (a paper step with alpha = 1 from the Ritz state), for the last step that of all of [P,
// V, Q]. Proven, with F(Ritz_k) = tr Sigma - sum theta_i and sigma_i the singular values of the Nystrom factor:
//
//     F(reported_k) <= tr Sigma - sum sigma_i^2 <= F(Ritz_k) <= F(reported_{k-1}).
#pragma once

#include <itspace/align.hpp>

#include "core/evaluated_point.hpp"
#include "core/product.hpp"
#include "core/recorder.hpp"
#include "core/run_context.hpp"
#include "core/solver_loop.hpp"
#include "core/subspace.hpp"

#include <limits>
#include <optional>
#include <utility>

namespace itspace {

template <Space S>
class RitzSolver {
 public:
  using Scalar = typename S::Scalar;
  using Block = typename S::Block;
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  // @pre options are valid for the target, and the start is d x rank.
  RitzSolver(RunContext<S>& run, Block start, Index rank, const AlignOptions& options);

  BasicResult<S> run(const BasicOnStep<S>& on_step);

  // What run_solver() asks for.
  Recorder& recorder() { return recorder_; }
  Index rank() const { return rank_; }
  Index passes() const { return target_.passes() - ahead_.value_or(0); }
  std::optional<Status> evaluate(Index k, bool last);
  const Block& current() const { return y_; }
  void keep_best() { space_.copy(y_, best_); }
  Block take_best() { return std::move(best_); }
  StepOutcome make_step(bool next_is_last);
  void advance() { std::swap(y_, next_); }
  StepOutcome shorten_step();

 private:
  void make_first_subspace();

  // ||Y - S S'Y||^2 for S = [V, Q], and ||Y||^2, or nearly.
  struct Reach {
    double outside, squared;
    bool is_inside(double eps) const;  // Y lies in S but for rounding of storage
  };
  void make_new_directions();  // Q
  double beyond_new_directions(const Small& a) const;
  Reach known_reach() const;
  Reach foreseen_reach(const Small& k) const;
  bool is_at_rounding_level() const;
  Reach turn_new_directions();
  Reach measured_reach(const Small& x);
  Small previous_directions(const RitzPairs& pairs, Small& energy) const;  // P, for the new V
  void turn_to(const Small& c, const Small& c_p);
  double measure_step(const Small& k, const Small& inner);

  // One pass, and what it shows of Y_k: over V where its product is not at hand, over Q later, over Y_k alone (`own`)
  // where no step follows; certify() judges it. Y_k is evaluated in [V, Q], whose products are at hand, so that no
  // inverse of a basis of Y_k amplifies them; where it does not lie there it rides along and is evaluated in a basis of
  // its own. A status ends the run.
  std::optional<Status> pass(Index k, bool own);
  Status iterate_not_finite();
  // `along`: [V, Q]'Y; `known_image`: the longest column of the products that are not fresh.
  void place_in_subspace(const Small& along, double known_image);
  std::optional<Status> certify();
  NullRule null_rule() const;

  Small make_pencil(Index fresh_cols);  // h and m of [P, V, Q], and what is asked of fresh products; [V, Q]'Y
  void give_up_previous();
  void cut_previous();
  // The first half of make_step(), which may come before certify(): nothing of Y_k's evaluation changes. What is asked
  // of the space is to be heard before the space is asked for anything else.
  void begin_step(bool next_is_last);
  void hear_of_step();
  void begin_product();  // Q's
  double promised_by(const RitzPairs& pairs) const;
  // visit(requests): what a step that was begun needs to know of its blocks.
  template <class Visit>
  void with_step_requests(const Visit& visit);
  bool project(Index count, RitzPairs& pairs);
  SmallVector combined_errors(const Small& c) const;
  bool is_worth_its_rounding(const RitzPairs& pairs) const;

  View columns(Block& block, Index first, Index count) { return space_.columns(block, first, count); }
  View v() { return columns(s_, begin_ + p_cols_, v_cols_); }
  View q() { return columns(s_, begin_ + p_cols_ + v_cols_, q_cols_); }
  View sigma_v() { return columns(sigma_s_, begin_ + p_cols_, v_cols_); }
  Index cols() const { return v_cols_ + q_cols_ + p_cols_; }
  double eps() const { return static_cast<double>(std::numeric_limits<Scalar>::epsilon()); }
  StorageRounding storage() const { return storage_rounding<Scalar>(target_.dim()); }

  S& space_;
  CountedTarget<S>& target_;
  AlignOptions options_;
  Index rank_, width_;  // r, and r + g
  Recorder recorder_;
  Index version_;         // of the target that Sigma V belongs to
  bool v_is_new_ = true;  // Sigma V is not at hand

  // S = [P, V, Q] and its product, from column begin_ on, and behind it what of Y rides along.
  Block s_, sigma_s_;
  Index begin_ = 0, p_cols_ = 0, v_cols_ = 0, q_cols_ = 0;
  Small h_, m_;                           // S'Sigma S and S'S
  SmallVector theta_;                     // V'Sigma V, but for rounding
  Small p_energy_;                        // P'Sigma P, but for rounding
  Small image_gram_, image_along_y_;      // k = (Sigma V)'Sigma V and (Sigma V)'Y, of the step that was begun
  Small rest_gram_, rest_along_;          // R'R and [P, V]'R of R = Sigma V - V theta
  Small q_of_rest_;                       // of Q's coefficients those on R
  Small of_y_;                            // a of Y = Sigma V a
  double v_image_ = 0, fresh_image_ = 0;  // the longest columns of Sigma V and of the fresh products
  double y_squared_ = 0;                  // ||Y||^2
  std::optional<Index> ahead_;            // Sigma Q is at hand before the iterate that needs it: the passes it took
  // The rounding of Sigma V, and of each column of Sigma P, in units of that of fresh products.
  double v_error_ = 1;
  SmallVector p_errors_;

  Block y_, next_, best_, b_, q_;  // the reported iterate, its successor, and what its evaluation needs
  OperatorProduct<S> product_;
  EvaluatedPoint point_;
  double point_error_ = 1;  // the rounding of the products that show Y_k, in units of that of fresh ones

  enum class Begun { not_yet, asked, well, in_vain } begun_ = Begun::not_yet;  // in vain: the pencil is not finite
  bool begun_last_ = false;                                                    // no step follows the one that was begun
  bool has_directions_ = false;                                                // Q is that of the step that was begun
  RitzPairs pairs_;                                                            // of the step that was begun
  double step_noise_ = 0;                                                      // of their values
  double begun_objective_ = 0;                                                 // what ritz_objective_ will be

  double objective_ = 0, resolution_ = 0;                // of the last row
  double objective_before_ = 0, resolution_before_ = 0;  // of the one before
  // tr Sigma - sum theta_i: the best that the subspace of the last step holds.
  double ritz_objective_ = std::numeric_limits<double>::infinity();
};

}  // namespace itspace
