// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/objection.hpp"
#include "core/product_impl.hpp"
#include "core/require.hpp"
#include "core/ritz_subspace_impl.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace itspace {
namespace ritz_detail {

inline Index guard_columns(const AlignOptions& options) {
  constexpr Index usual = 8, few_steps = 16;
  return options.guard.value_or(options.steps <= 2 ? few_steps : usual);
}

}  // namespace ritz_detail

template <Space S>
RitzSolver<S>::RitzSolver(RunContext<S>& run, Block start, Index rank, const AlignOptions& options)
    : space_(run.space),
      target_(run.target),
      options_(options),
      rank_(rank),
      width_(rank + std::clamp<Index>(target_.dim() - rank, 0, ritz_detail::guard_columns(options))),
      recorder_(target_.dim(), rank, precision_name<Scalar>(), 1.0, options.tolerance, Solver::ritz, run.begin),
      version_(target_.version()),
      s_(space_.make_block(target_.dim(), 3 * width_ + rank)),
      sigma_s_(target_.make_image(target_.dim(), 3 * width_ + rank)),
      y_(std::move(start)),
      next_(space_.make_block(target_.dim(), rank)),
      best_(space_.make_block(target_.dim(), rank)),
      b_(space_.make_block(target_.dim(), rank)),
      q_(space_.make_block(target_.dim(), rank)),
      product_(run, rank, 0, false) {
  space_.copy(y_, best_);
  if (run.before) {
    recorder_.go_on_behind(run.before->trace);
    space_.copy(run.before->best, best_);
  }
}

template <Space S>
BasicResult<S> RitzSolver<S>::run(const BasicOnStep<S>& on_step) {
  return run_solver(space_, target_.dim(), *this, options_, on_step);
}

template <Space S>
std::optional<Status> RitzSolver<S>::evaluate(Index k, bool last) {
  // Another target: V is as good a subspace as any, and its product is made anew.
  const Index version = target_.version();
  v_is_new_ |= std::exchange(version_, version) != version;
  if (last && !options_.evaluate_last) {
    recorder_.not_evaluated(version_);
    return std::nullopt;
  }
  if (const auto end = pass(k, last)) return end;
  point_.note_trace(recorder_.target_trace(), target_.dim());
  // On a device the next step begins while the host certifies and records.
  const bool ahead = runs_ahead<S> && !last, next_is_last = k + 1 == options_.steps;
  if (ahead) begin_step(next_is_last);
  if (ahead && !next_is_last) begin_product();
  const auto end = certify();
  if (ahead) hear_of_step();
  if (end) return end;
  objective_before_ = std::exchange(objective_, point_.objective(recorder_.target_trace()));
  resolution_before_ = resolution_;
  resolution_ = point_.resolution(storage(), recorder_.target_trace());
  return recorder_.evaluated(point_.certificate, {objective_, resolution_, Route::qr, version_});
}

// Where the target is applied on a device the host certifies, and makes the polish, meanwhile. Not where the run may
// end here, nor where Y may have to ride along.
template <Space S>
void RitzSolver<S>::begin_product() {
  if (!ritz_detail::is_finer_than_blocks<Scalar> || begun_ != Begun::asked) return;
  if (!(ritz_objective_ - begun_objective_ > resolution_)) return;
  hear_of_step();
  if (!image_gram_.allFinite() || !rest_gram_.allFinite()) return;
  make_new_directions();
  has_directions_ = true;
  if (q_cols_ == 0 || !foreseen_reach(image_gram_).is_inside(eps())) return;
  const Index before = target_.passes();
  target_.apply(q(), columns(sigma_s_, begin_ + p_cols_ + v_cols_, q_cols_));
  ahead_ = target_.passes() - before;
}

// The subspace holds nothing that is better than Y_k by more than rounding.
template <Space S>
bool RitzSolver<S>::is_at_rounding_level() const {
  return objective_ - ritz_objective_ <= resolution_ - point_.certificate.uncertainty;
}

template <Space S>
Status RitzSolver<S>::iterate_not_finite() {
  if (target_.swept()) recorder_.set_target_trace(target_.trace());  // it may say why
  return Status::not_finite;
}

template <Space S>
std::optional<Status> RitzSolver<S>::pass(Index k, bool own) {
  if (k == 0 || recorder_.repeats()) make_first_subspace();
  if (own) {
    make_basis(space_, y_, q_, point_.basis);
    if (!point_.basis.finite) return iterate_not_finite();
    product_.form(columns(q_, 0, point_.basis.cols), point_.basis, point_.data);
    recorder_.set_target_trace(target_.trace());
    point_error_ = 1;
    return std::nullopt;
  }
  const bool whole = std::exchange(v_is_new_, false);
  if (whole) {
    if (ahead_) target_.count_from(passes());  // what was applied in vain
    give_up_previous();
    q_cols_ = 0;
    v_error_ = 1;
  }
  const bool at_hand = std::exchange(ahead_, std::nullopt) && !whole;  // Sigma Q
  const Reach reach = whole                                       ? measured_reach(gram(space_, v(), y_))
                      : ritz_detail::is_finer_than_blocks<Scalar> ? known_reach()
                                                                  : turn_new_directions();
  if (!std::isfinite(reach.outside + reach.squared)) return iterate_not_finite();

  // The columns whose product is new: all of V, or Q.
  const Index end = begin_ + cols(), fresh_cols = whole ? v_cols_ : q_cols_, fresh = end - fresh_cols;
  const bool rides = !at_hand && !reach.is_inside(eps());
  if (rides) {
    make_basis(space_, y_, q_, point_.basis);
    space_.copy(columns(q_, 0, point_.basis.cols), columns(s_, end, point_.basis.cols));
  }
  const Index applied = fresh_cols + (rides ? point_.basis.cols : 0);
  if (applied > 0 && !at_hand) target_.apply(columns(s_, fresh, applied), columns(sigma_s_, fresh, applied));
  recorder_.set_target_trace(target_.trace());
  if (rides) {
    const Index y_cols = point_.basis.cols;
    product_.set_image(columns(sigma_s_, end, y_cols));
    product_.form_again(columns(q_, 0, y_cols), point_.basis, point_.data);
  }
  const Small along = make_pencil(fresh_cols);
  if (!std::isfinite(y_squared_)) return iterate_not_finite();
  if (!rides) place_in_subspace(along, whole ? 0 : v_image_);
  const View applied_to = fresh_cols > 0 ? columns(sigma_s_, fresh, fresh_cols) : product_.image();
  point_.data.overwritten = h_.allFinite() || applied == 0 || !space_.is_poisoned(applied_to);
  point_error_ = rides ? 1 : std::max(1.0, v_error_);
  return std::nullopt;
}

// Y = S x for S = [V, Q]: theta = S'Sigma S, and the coordinates are x = (S'S)^(-1) S'Y, where S'S is I to storage.
template <Space S>
void RitzSolver<S>::place_in_subspace(const Small& along, double known_image) {
  const Index cols = along.rows();
  const Small inside = coordinates_of(m_.bottomRightCorner(cols, cols), along);
  point_.basis = Basis();
  point_.basis.cols = cols;
  point_.basis.r = inside;
  point_.basis.y_squared = y_squared_;
  point_.data.theta = h_.bottomRightCorner(cols, cols);
  point_.data.coordinates = inside;
  point_.data.target_norm = std::max(known_image, fresh_image_);
  point_.data.seen_trace = point_.data.theta.trace();
}

template <Space S>
std::optional<Status> RitzSolver<S>::certify() {
  // Theta is definite where it has the Cholesky factor of which a certificate by products is made.
  const auto objection = [&](bool definite) {
    return objection_to(point_.data, recorder_.target_trace(), target_.dim(), storage(), definite);
  };
  std::string reason = objection(true);
  if (reason.empty()) {
    make_certificate(point_.data.theta, point_.data.coordinates, point_.basis, null_rule(), 0, point_.certificate, true,
                     point_.certificate_work.get());
    if (!point_.certificate.by_products) reason = objection(false);
  }
  if (!reason.empty()) {
    recorder_.give_reason(std::move(reason));
    return Status::not_a_covariance;
  }
  if (!point_.certificate.finite || !std::isfinite(recorder_.target_trace())) return Status::not_finite;
  return std::nullopt;
}

template <Space S>
NullRule RitzSolver<S>::null_rule() const {
  NullRule rule;
  rule.noise = point_error_ * product_.energy_noise() * point_.data.target_norm;
  rule.length = 4 * eps();
  rule.single_precision = std::same_as<Scalar, float>;
  rule.relative = 30 * eps64;
  return rule;
}

// What of a step asks a device for no number: V, and P where another step follows, by the projected problem, their
// products, and R = Sigma V - V theta in Q's place.
template <Space S>
void RitzSolver<S>::begin_step(bool last) {
  const Index count = last && options_.wide_polish ? cols() : width_;
  begun_ = Begun::in_vain;
  if (!project(count, pairs_)) return;
  // P is given up too where it would carry more rounding into V than it is worth.
  if (p_cols_ > 0 && !is_worth_its_rounding(pairs_)) {
    cut_previous();
    if (!project(count, pairs_)) return;
  }
  step_noise_ = std::max(1.0, v_error_) * product_.energy_noise() * point_.data.target_norm;
  // For the last report c is all of the Ritz vectors, and no P is needed.
  p_energy_.resize(0, 0);
  turn_to(pairs_.vectors, last ? Small(cols(), 0) : previous_directions(pairs_, p_energy_));
  if (!last) space_.subtract_scaled(sigma_v(), v(), pairs_.values, columns(s_, p_cols_ + v_cols_, v_cols_));
  begun_objective_ = promised_by(pairs_);
  begun_last_ = last;
  with_step_requests([&](auto requests) { ask_grams(space_, requests); });
  begun_ = Begun::asked;
}

template <Space S>
template <class Visit>
void RitzSolver<S>::with_step_requests(const Visit& visit) {
  const ConstView image = sigma_v(), y = y_;
  const ConstView before = columns(s_, 0, p_cols_ + v_cols_);
  const ConstView rest = columns(s_, p_cols_ + v_cols_, begun_last_ ? 0 : v_cols_);
  const GramRequest<ConstView> requests[] = {
      {image, image_gram_}, {image, y, image_along_y_}, {rest, rest_gram_}, {before, rest, rest_along_}};
  visit(std::span<const GramRequest<ConstView>>(requests).first(begun_last_ ? 2 : 4));
}

template <Space S>
void RitzSolver<S>::hear_of_step() {
  if (begun_ != Begun::asked) return;
  with_step_requests([&](auto requests) { answer_grams(space_, requests); });
  begun_ = Begun::well;
}

// The best objective of the subspace: tr Sigma less the Ritz values that are more than rounding.
template <Space S>
double RitzSolver<S>::promised_by(const RitzPairs& pairs) const {
  double captured = 0;
  for (Index i = 0; i < std::min(rank_, v_cols_); ++i)
    if (pairs.values(i) > 2 * step_noise_) captured += pairs.values(i);
  return std::max(0.0, recorder_.target_trace() - captured);
}

template <Space S>
StepOutcome RitzSolver<S>::make_step(bool last) {
  const StepOutcome not_finite{std::nullopt, Status::not_finite, ""};
  if (begun_ == Begun::not_yet) {
    begin_step(last);
    hear_of_step();
  }
  if (std::exchange(begun_, Begun::not_yet) == Begun::in_vain) return not_finite;
  const RitzPairs& pairs = pairs_;
  const double noise = step_noise_;
  const bool moved = target_.version() != version_;
  const Small &k = image_gram_, &inner = image_along_y_;
  // A paper step with alpha = 1 from the Ritz state Y = V_r theta_r^(1/2) promises ||B - Y||^2.
  double polished = 0;
  for (Index i = 0; i < std::min(rank_, v_cols_); ++i) {
    const double theta = pairs.values(i);
    if (!(theta > 2 * noise)) continue;
    polished += std::max(0.0, k(i, i) / (theta + noise) - theta);
  }
  ritz_objective_ = begun_objective_;
  // To another target V is applied anew, and there is no Q.
  v_is_new_ |= moved;
  const bool has_directions = std::exchange(has_directions_, false);
  if (!last && !moved && !has_directions) make_new_directions();
  theta_ = pairs.values;
  v_image_ = std::sqrt(k.diagonal().maxCoeff());
  if (!k.diagonal().allFinite()) v_image_ = space_.column_norms(sigma_v()).maxCoeff();
  Polish polish;
  nystrom_polish(pairs.values, k, rank_, noise, polish);
  if (!polish.finite) {
    ahead_.reset();
    return not_finite;
  }
  // next = Sigma V a, turned by the orthogonal matrix that brings it closest to Y: the state moves no more than it
  // must.
  of_y_ = turned_closest(polish.a, inner);
  multiply(space_, sigma_v(), of_y_, next_);
  const double bound = std::max(0.0, recorder_.target_trace() - polish.captured);
  const double step_squared = measure_step(k, inner);
  // What was left out as rounding may cost more than the polish gains: the bound then says what is promised. Where that
  // is a loss, and the subspace holds nothing better, the run is at rounding level.
  const double promised = std::min(polished, objective_ - bound);
  const double rounding_of_sums = resolution_ - point_.certificate.uncertainty;
  // What is known of the old target ends nothing.
  if (!moved && promised < -rounding_of_sums && is_at_rounding_level())
    return {std::nullopt, Status::converged, "no step descends by more than rounding"};
  return {StepMade{1, step_squared, promised, bound}};
}

// ||next - Y||^2, and ||next||^2. Where blocks are coarser than sums in double, what these leave of the difference is
// below the rounding of blocks.
template <Space S>
double RitzSolver<S>::measure_step(const Small& k, const Small& inner) {
  BlendNorms norms;
  if (ritz_detail::is_finer_than_blocks<Scalar>) {
    norms.b_squared = of_y_.cwiseProduct(k * of_y_).sum();
    norms.difference_squared = std::max(0.0, norms.b_squared - 2 * of_y_.cwiseProduct(inner).sum() + y_squared_);
  } else {
    norms = space_.blend_norms(y_, next_);
  }
  y_squared_ = norms.b_squared;
  return norms.difference_squared;
}

// The step that promised nothing did not descend. There is no shorter one: the best of the subspace was taken.
template <Space S>
StepOutcome RitzSolver<S>::shorten_step() {
  std::swap(y_, next_);
  // What the subspace still holds beyond Y_k.
  if (objective_before_ - ritz_objective_ <= 2 * resolution_before_)
    return {std::nullopt, Status::converged, "no step descends by more than rounding"};
  return {std::nullopt, Status::certificate_failed,
          text("the best factor of the subspace (W2^2 = ", objective_, ", its Ritz values say ", ritz_objective_,
               ") is no better than the one before (", objective_before_, ")")};
}

}  // namespace itspace
