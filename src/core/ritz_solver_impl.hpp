// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/basis_impl.hpp"
#include "core/objection.hpp"
#include "core/polar.hpp"
#include "core/product_impl.hpp"
#include "core/require.hpp"
#include "core/ritz_solver.hpp"
#include "core/subspace_impl.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace ritz_detail {

inline constexpr double eps64 = std::numeric_limits<double>::epsilon();
inline constexpr std::uint64_t guard_stream = 2;

// Directions of Sigma V beyond V are fresh products, so only near-dependence among themselves is dropped.
template <Storage Scalar>
inline constexpr double new_direction_drop = std::same_as<Scalar, float> ? 1e-5 : 1e-12;

// A direction of length one that a second projection leaves with less than this (squared) was rounding.
inline constexpr double mostly_rounding = 0.25;

// The most rounding that kept products may gather, in units of that of fresh ones: what the columns of P, which are
// longer than 30 eps^(1/2) before they are scaled to length one, can bring along. It is stated with the objective.
template <Storage Scalar>
inline const double most_error = 1 / (30 * std::sqrt(static_cast<double>(std::numeric_limits<Scalar>::epsilon())));

// Above this P must show that it is worth its rounding: near the end it is not, and F would wander.
inline constexpr double suspicious_error = 30;

// Y lies in the subspace when what is left of it is storage rounding.
inline constexpr double most_outside = 32;

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
      s_(space_.make_block(target_.dim(), 3 * width_)),
      sigma_s_(target_.make_image(target_.dim(), 3 * width_)),
      previous_(space_.make_block(target_.dim(), width_)),
      sigma_previous_(space_.make_block(target_.dim(), width_)),
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
  objective_before_ = std::exchange(objective_, point_.objective(recorder_.target_trace()));
  resolution_before_ = resolution_;
  resolution_ = point_.resolution(storage(), recorder_.target_trace());
  return recorder_.evaluated(point_.certificate, {objective_, resolution_, Route::qr, version_});
}

// V: an orthonormal basis of Y_0, filled up to r + g columns with random ones. They find what Y_0 is orthogonal to.
template <Space S>
void RitzSolver<S>::make_first_subspace() {
  Basis basis;
  make_basis(space_, y_, columns(s_, 0, rank_), basis);
  v_cols_ = std::min(basis.cols, width_);
  Index filled = std::min(width_, target_.dim()) - v_cols_;
  if (filled > 0)
    space_.fill_normal(
        Random(options_.seed, ritz_detail::guard_stream + (static_cast<std::uint64_t>(recorder_.row().index) << 32U)),
        columns(s_, v_cols_, filled));
  for (int round = 0; round < 2 && filled > 0; ++round) {
    const View guards = columns(s_, v_cols_, filled);
    project_out(space_, v(), guards);
    filled = orthonormalise(space_, guards, ritz_detail::eps64, Drop::relative).cols();
  }
  v_cols_ += filled;
  v_cols_ = orthonormalise(space_, v(), ritz_detail::eps64, Drop::relative).cols();
}

// Twice: the second round orthogonalises what scaling to length one has brought up from rounding. In the first what
// Sigma V has along V is known, theta. The second tells where Y lies in [V, Q], too.
template <Space S>
Small RitzSolver<S>::make_new_directions() {
  const auto q = [&] { return columns(s_, v_cols_, q_cols_); };
  // What exceeds the dimension is rounding that was scaled up: V is the whole space, or almost.
  const Index most = target_.dim() - v_cols_;
  q_cols_ = v_cols_;
  space_.copy(sigma_v(), q());
  space_.multiply(v(), Small((-theta_).asDiagonal()), q(), Write::add);
  q_cols_ = std::min(orthonormalise(space_, q(), ritz_detail::new_direction_drop<Scalar>, Drop::relative).cols(), most);
  Small along, gram_q, v_y, q_y;
  const GramRequest<ConstView> requests[] = {{v(), q(), along}, {q(), gram_q}, {v(), y_, v_y}, {q(), y_, q_y}};
  space_.grams(requests);
  // What this round shortens lies in V: it was the rounding of the first, scaled up.
  Small turn = remaining_directions(along, gram_q, ritz_detail::mostly_rounding);
  if (turn.cols() > most) turn = turn.leftCols(most).eval();
  const View both = columns(s_, 0, v_cols_ + q_cols_);
  q_cols_ = turn.cols();
  multiply(space_, both, turn, q());
  Small inside(v_cols_ + q_cols_, v_y.cols());
  inside << v_y, turn.topRows(v_cols_).transpose() * v_y + turn.bottomRows(q_y.rows()).transpose() * q_y;
  return inside;
}

template <Space S>
void RitzSolver<S>::make_previous_directions() {
  const Index before = v_cols_ + q_cols_;
  p_cols_ = previous_cols_;
  space_.copy(columns(previous_, 0, p_cols_), columns(s_, before, p_cols_));
  space_.copy(columns(sigma_previous_, 0, p_cols_), columns(sigma_s_, before, p_cols_));
  const double drop = 30 * std::sqrt(eps());
  // Of both rounds, from [S, P] as it was: Sigma P is made once.
  Small turns = Small::Identity(before + p_cols_, before + p_cols_).rightCols(p_cols_);
  for (int round = 0; round < 2 && p_cols_ > 0; ++round) {
    const View p = columns(s_, before, p_cols_), both = columns(s_, 0, before + p_cols_);
    Small along, gram_p;
    const GramRequest<ConstView> requests[] = {{columns(s_, 0, before), p, along}, {p, gram_p}};
    space_.grams(requests);
    const Small turn = remaining_directions(along, gram_p, drop);
    multiply(space_, both, turn, columns(s_, before, turn.cols()));
    Small turned = turns * turn.bottomRows(p_cols_);
    turned.topRows(before) += turn.topRows(before);
    // Sigma P <- (Sigma P - Sigma S c) t: the errors of both, stretched.
    if (round == 0) p_errors_ = SmallVector::Constant(p_cols_, previous_error_ + std::max(1.0, v_error_));
    p_errors_ = (p_errors_.asDiagonal() * turn.bottomRows(p_cols_)).colwise().norm().transpose().eval();
    p_cols_ = turn.cols();
    turns = std::move(turned);
  }
  if (p_cols_ > 0) multiply(space_, columns(sigma_s_, 0, turns.rows()), turns, columns(sigma_s_, before, p_cols_));
}

template <Space S>
Status RitzSolver<S>::iterate_not_finite() {
  if (target_.swept()) recorder_.set_target_trace(target_.trace());  // it may say why
  return Status::not_finite;
}

template <Space S>
std::optional<Status> RitzSolver<S>::pass(Index k, bool own) {
  q_cols_ = p_cols_ = 0;
  if (k == 0 || recorder_.repeats()) make_first_subspace();
  if (own) {
    make_basis(space_, y_, q_, point_.basis);
    if (!point_.basis.finite) return iterate_not_finite();
    product_.form(columns(q_, 0, point_.basis.cols), point_.basis, point_.data);
    recorder_.set_target_trace(target_.trace());
    return certify(1);
  }
  const bool whole = std::exchange(v_is_new_, false);
  if (whole) v_error_ = 1;
  const Small inside = whole ? gram(space_, v(), y_) : make_new_directions();

  // The columns whose product is new: all of V, or Q.
  const Index cols = v_cols_ + q_cols_, fresh = whole ? 0 : v_cols_, fresh_cols = cols - fresh;
  multiply(space_, columns(s_, 0, cols), inside, b_);
  const double outside = space_.blend_norms(y_, b_).difference_squared;
  if (!std::isfinite(outside)) return iterate_not_finite();
  const double limit = ritz_detail::most_outside * eps();
  const bool rides = outside > limit * limit * inside.squaredNorm();
  if (rides) {
    make_basis(space_, y_, q_, point_.basis);
    space_.copy(columns(q_, 0, point_.basis.cols), columns(s_, cols, point_.basis.cols));
  }
  const Index applied = fresh_cols + (rides ? point_.basis.cols : 0);
  if (applied > 0) target_.apply(columns(s_, fresh, applied), columns(sigma_s_, fresh, applied));
  recorder_.set_target_trace(target_.trace());
  if (rides) {
    const Index y_cols = point_.basis.cols;
    product_.set_image(columns(sigma_s_, cols, y_cols));
    product_.form_again(columns(q_, 0, y_cols), point_.basis, point_.data);
  }
  if (!whole) make_previous_directions();
  make_pencil(fresh, fresh_cols);
  if (!rides) place_in_subspace(inside, whole ? 0 : v_image_);
  const View applied_to = fresh_cols > 0 ? columns(sigma_s_, fresh, fresh_cols) : product_.image();
  point_.data.overwritten = h_.allFinite() || applied == 0 || !space_.is_poisoned(applied_to);
  return certify(rides ? 1 : std::max(1.0, v_error_));
}

// All in one reduction, though m is needed only if a step follows.
template <Space S>
void RitzSolver<S>::make_pencil(Index fresh, Index fresh_cols) {
  const ConstView s = columns(s_, 0, cols()), sigma_s = columns(sigma_s_, 0, cols());
  const ConstView image = columns(sigma_s_, fresh, fresh_cols), y = y_;
  Small of_image, of_y;
  const GramRequest<ConstView> requests[] = {{s, sigma_s, h_}, {s, m_}, {image, of_image}, {y, of_y}};
  space_.grams(requests);
  y_squared_ = of_y.trace();
  fresh_image_ = 0;
  if (fresh_cols == 0) return;
  fresh_image_ = std::sqrt(of_image.diagonal().maxCoeff());
  // Squares overflow before lengths do.
  if (!of_image.diagonal().allFinite()) fresh_image_ = space_.column_norms(image).maxCoeff();
}

template <Space S>
void RitzSolver<S>::cut_pencil() {
  h_ = h_.topLeftCorner(cols(), cols()).eval();
  m_ = m_.topLeftCorner(cols(), cols()).eval();
}

// Y = S inside for S = [V, Q], which is orthonormal: theta = S'Sigma S, and the coordinates are those of Y in S.
template <Space S>
void RitzSolver<S>::place_in_subspace(const Small& inside, double known_image) {
  const Index cols = inside.rows();
  point_.basis = Basis();
  point_.basis.cols = cols;
  point_.basis.r = inside;
  point_.basis.y_squared = y_squared_;
  point_.data.theta = h_.topLeftCorner(cols, cols);
  point_.data.coordinates = inside;
  point_.data.target_norm = std::max(known_image, fresh_image_);
  point_.data.seen_trace = point_.data.theta.trace();
}

// `noise`: of the products, in units of that of fresh ones.
template <Space S>
std::optional<Status> RitzSolver<S>::certify(double noise) {
  point_.note_trace(recorder_.target_trace(), target_.dim());
  if (std::string objection = objection_to(point_.data, recorder_.target_trace(), target_.dim(), storage());
      !objection.empty()) {
    recorder_.give_reason(std::move(objection));
    return Status::not_a_covariance;
  }
  NullRule rule;
  rule.noise = noise * product_.energy_noise() * point_.data.target_norm;
  rule.length = 4 * eps();
  rule.single_precision = std::same_as<Scalar, float>;
  rule.relative = 30 * ritz_detail::eps64;
  make_certificate(point_.data.theta, point_.data.coordinates, point_.basis, rule, 0, point_.certificate, true);
  if (!point_.certificate.finite || !std::isfinite(recorder_.target_trace())) return Status::not_finite;
  return std::nullopt;
}

// The leading Ritz pairs of [V, Q, P]. A block that makes the basis dependent to rounding is given up: P, then Q.
template <Space S>
bool RitzSolver<S>::project(Index count, RitzPairs& pairs) {
  while (!ritz_pairs(h_, m_, count, pairs)) {
    if (p_cols_ + q_cols_ == 0) return false;
    (p_cols_ > 0 ? p_cols_ : q_cols_) = 0;
    cut_pencil();
  }
  return true;
}

// The rounding of Sigma S c, in units of that of fresh products: rounding adds up as squares do.
template <Space S>
double RitzSolver<S>::combined_error(const Small& c) const {
  const double v = std::max(1.0, v_error_);
  SmallVector squares = v * v * c.topRows(v_cols_).colwise().squaredNorm();
  squares += c.middleRows(v_cols_, q_cols_).colwise().squaredNorm().transpose();
  if (p_cols_ > 0) squares += (p_errors_.asDiagonal() * c.bottomRows(p_cols_)).colwise().squaredNorm().transpose();
  return std::sqrt(squares.maxCoeff() + 0.25);  // and the rounding of the combination itself
}

// Whether P adds more to the leading Ritz values than the rounding that comes with it.
template <Space S>
bool RitzSolver<S>::is_worth_its_rounding(const RitzPairs& pairs) const {
  const double error = combined_error(pairs.vectors);
  if (error <= ritz_detail::suspicious_error) return true;
  if (error > ritz_detail::most_error<Scalar>) return false;
  const Index rest = v_cols_ + q_cols_;
  RitzPairs without;
  if (!ritz_pairs(h_.topLeftCorner(rest, rest), m_.topLeftCorner(rest, rest), rank_, without)) return true;
  const Index count = std::min({rank_, pairs.values.size(), without.values.size()});
  const double gain = pairs.values.head(count).sum() - without.values.head(count).sum();
  return gain > static_cast<double>(rank_) * error * product_.energy_noise() * point_.data.target_norm;
}

template <Space S>
StepOutcome RitzSolver<S>::make_step(bool last) {
  const StepOutcome not_finite{std::nullopt, Status::not_finite, ""};
  const bool wide = last && options_.wide_polish;
  RitzPairs pairs;
  if (!project(wide ? cols() : width_, pairs)) return not_finite;
  // P is given up too where it would carry more rounding into V than it is worth.
  if (p_cols_ > 0 && !is_worth_its_rounding(pairs)) {
    p_cols_ = 0;
    cut_pencil();
    m_ = gram(space_, columns(s_, 0, cols()));  // a corner has not the same last bits
    if (!project(wide ? cols() : width_, pairs)) return not_finite;
  }
  const double noise = std::max(1.0, v_error_) * product_.energy_noise() * point_.data.target_norm;

  // V <- S c, Sigma V <- Sigma S c; the old V is the next P, unless the new one is but a rotation of it. For the last
  // report c is all of the Ritz vectors.
  previous_cols_ = q_cols_ + p_cols_ > 0 ? v_cols_ : 0;
  space_.copy(columns(s_, 0, previous_cols_), columns(previous_, 0, previous_cols_));
  space_.copy(columns(sigma_s_, 0, previous_cols_), columns(sigma_previous_, 0, previous_cols_));
  previous_error_ = v_error_;
  v_error_ = combined_error(pairs.vectors);
  const Index all = cols();
  v_cols_ = pairs.vectors.cols();
  multiply(space_, columns(s_, 0, all), pairs.vectors, v());
  multiply(space_, columns(sigma_s_, 0, all), pairs.vectors, sigma_v());
  q_cols_ = p_cols_ = 0;

  Small k, inner;
  const GramRequest<ConstView> requests[] = {{sigma_v(), sigma_v(), k}, {sigma_v(), y_, inner}};
  space_.grams(requests);
  theta_ = pairs.values;
  v_image_ = std::sqrt(k.diagonal().maxCoeff());
  if (!k.diagonal().allFinite()) v_image_ = space_.column_norms(sigma_v()).maxCoeff();
  // A paper step with alpha = 1 from the Ritz state Y = V_r theta_r^(1/2) promises ||B - Y||^2.
  double polished = 0, ritz = 0;
  for (Index i = 0; i < std::min(rank_, v_cols_); ++i) {
    const double theta = pairs.values(i);
    if (!(theta > 2 * noise)) continue;
    ritz += theta;
    polished += std::max(0.0, k(i, i) / (theta + noise) - theta);
  }
  Polish polish;
  nystrom_polish(pairs.values, k, rank_, noise, polish);
  if (!polish.finite) return not_finite;
  // next = Sigma V a, turned by the orthogonal matrix that brings it closest to Y: the state moves no more than it
  // must.
  Small turn, turned = polish.a;
  if (closest_orthogonal(polish.a.transpose() * inner, turn)) turned = polish.a * turn;
  multiply(space_, sigma_v(), turned, next_);
  const double bound = std::max(0.0, recorder_.target_trace() - polish.captured);
  ritz_objective_ = std::max(0.0, recorder_.target_trace() - ritz);
  const double step_squared = space_.blend_norms(y_, next_).difference_squared;
  // What was left out as rounding may cost more than the polish gains: the bound then says what is promised. Where that
  // is a loss, and the subspace holds nothing better, the run is at rounding level.
  const double promised = std::min(polished, objective_ - bound);
  const double rounding_of_sums = resolution_ - point_.certificate.uncertainty;
  const bool moved = target_.version() != version_;  // what is known of the old target ends nothing
  if (!moved && promised < -rounding_of_sums && objective_ - ritz_objective_ <= rounding_of_sums)
    return {std::nullopt, Status::converged, "no step descends by more than rounding"};
  return {StepMade{1, step_squared, promised, bound}};
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
