// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/basis_impl.hpp"
#include "core/objection.hpp"
#include "core/product_impl.hpp"
#include "core/require.hpp"
#include "core/ritz_solver.hpp"
#include "core/rounding.hpp"
#include "core/subspace_impl.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace itspace {
namespace ritz_detail {

inline constexpr std::uint64_t guard_stream = 2;

// Directions of Sigma V beyond V are fresh products, so only near-dependence among themselves is dropped.
template <Storage Scalar>
inline constexpr double new_direction_drop = std::same_as<Scalar, float> ? 1e-5 : 1e-12;

// A direction of length one that a second projection leaves with less than this (squared) was rounding.
inline constexpr double mostly_rounding = 0.25;

// Directions of the V before beyond V, squared: what is less is no direction worth a column.
template <Storage Scalar>
inline const double previous_direction_drop = 30 *
                                              std::sqrt(static_cast<double>(std::numeric_limits<Scalar>::epsilon()));

// The most rounding that kept products may gather, in units of that of fresh ones. It is stated with the objective.
template <Storage Scalar>
inline const double most_error = 1 / previous_direction_drop<Scalar>;

// Whether s x s work, which is in double, is far finer than blocks: then what is known of S in coordinates need not be
// measured again.
template <Storage Scalar>
inline constexpr bool is_finer_than_blocks = std::same_as<Scalar, float>;

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
  // On a device [P, V] is turned while the host certifies and records.
  const bool ahead = runs_ahead<S> && !last;
  if (ahead) begin_step(k + 1 == options_.steps);
  const auto end = certify();
  if (ahead) hear_of_step();
  if (end) return end;
  objective_before_ = std::exchange(objective_, point_.objective(recorder_.target_trace()));
  resolution_before_ = resolution_;
  resolution_ = point_.resolution(storage(), recorder_.target_trace());
  return recorder_.evaluated(point_.certificate, {objective_, resolution_, Route::qr, version_});
}

// V: an orthonormal basis of Y_0, filled up to r + g columns with random ones. They find what Y_0 is orthogonal to.
template <Space S>
void RitzSolver<S>::make_first_subspace() {
  Basis basis;
  begin_ = p_cols_ = q_cols_ = 0;
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
    filled = orthonormalise(space_, guards, eps64, Drop::relative).cols();
  }
  v_cols_ += filled;
  v_cols_ = orthonormalise(space_, v(), eps64, Drop::relative).cols();
}

// Of R = Sigma V - V theta, which lies in Q's columns: orthonormal to S to rounding, since V are the Ritz vectors of
// the S before and P lies in it. So two rounds, both in coordinates and made by one product: first R by itself, scaled
// to length one, then what of it is beyond [P, V]. What the second shortens is rounding that the first has scaled up.
template <Space S>
void RitzSolver<S>::make_new_directions() {
  const Index before = p_cols_ + v_cols_;
  // What exceeds the dimension is rounding that was scaled up: [P, V] is the whole space, or almost.
  const Index most = std::max<Index>(0, target_.dim() - before);
  Small turn =
      new_directions(rest_along_, rest_gram_, ritz_detail::new_direction_drop<Scalar>, ritz_detail::mostly_rounding);
  if (turn.cols() > most) turn = turn.leftCols(most).eval();
  q_cols_ = turn.cols();
  multiply(space_, columns(s_, begin_, before + v_cols_), turn, q());
  q_of_rest_ = turn.bottomRows(v_cols_);
}

template <Space S>
bool RitzSolver<S>::Reach::is_inside(double eps) const {
  const double limit = ritz_detail::most_outside * eps;
  return outside <= limit * limit * squared;
}

// Y = Sigma V a = V theta a + R a is beyond [V, Q] by what Q and [P, V] leave of R a, and by what R a has along P.
template <Space S>
typename RitzSolver<S>::Reach RitzSolver<S>::known_reach() const {
  return {beyond_new_directions(of_y_), y_squared_};
}

template <Space S>
double RitzSolver<S>::beyond_new_directions(const Small& a) const {
  return left_squared(rest_along_, rest_gram_, q_of_rest_, a) + (rest_along_.topRows(p_cols_) * a).squaredNorm();
}

// The next iterate is Sigma V a for a = D u, D = (theta + noise)^(-1/2) and u'u = I (nystrom_polish): whatever u will
// be, no more of it is beyond [V, Q] than of Sigma V D, and ||Y||^2, the sum of the r largest eigenvalues of D k D, is
// at least that of r diagonal entries (Ky Fan).
template <Space S>
typename RitzSolver<S>::Reach RitzSolver<S>::foreseen_reach(const Small& k) const {
  const SmallVector& theta = pairs_.values;
  const Index kept = (theta.array() > 2 * step_noise_).count();
  const SmallVector root = (theta.head(kept).array() + step_noise_).rsqrt();
  Small d = Small::Zero(v_cols_, kept);
  d.diagonal() = root;
  const Index count = std::min(rank_, kept);
  const double squared = k.diagonal().head(count).dot(root.head(count).cwiseAbs2());
  return {beyond_new_directions(d), squared};
}

// Where the target is applied on a device the host makes the polish meanwhile. Not where the polish may end the run,
// nor where Y may have to ride along.
template <Space S>
void RitzSolver<S>::apply_ahead(const Small& k) {
  if (q_cols_ == 0 || !k.allFinite() || is_at_rounding_level() || !foreseen_reach(k).is_inside(eps())) return;
  const Index before = target_.passes();
  target_.apply(q(), columns(sigma_s_, begin_ + p_cols_ + v_cols_, q_cols_));
  ahead_ = target_.passes() - before;
}

// The subspace holds nothing that is better than Y_k by more than rounding.
template <Space S>
bool RitzSolver<S>::is_at_rounding_level() const {
  return objective_ - ritz_objective_ <= resolution_ - point_.certificate.uncertainty;
}

// Where coordinates are no finer than blocks, the second round once more, measured. It tells where Y lies in [V, Q],
// too.
template <Space S>
typename RitzSolver<S>::Reach RitzSolver<S>::turn_new_directions() {
  const Index before = p_cols_ + v_cols_;
  Small along, gram_q, known_y, q_y;
  const ConstView known = columns(s_, begin_, before), made = q(), y = y_;
  const GramRequest<ConstView> requests[] = {{known, made, along}, {made, gram_q}, {known, y, known_y}, {made, y, q_y}};
  space_.grams(requests);
  const Small turn = remaining_directions(along, gram_q, ritz_detail::mostly_rounding);
  const View both = columns(s_, begin_, before + q_cols_);
  q_cols_ = turn.cols();
  multiply(space_, both, turn, q());
  Small inside(v_cols_ + q_cols_, rank_);
  inside << known_y.bottomRows(v_cols_),
      turn.topRows(before).transpose() * known_y + turn.bottomRows(q_y.rows()).transpose() * q_y;
  return measured_reach(inside);
}

// By how much Y is not S x, x = S'Y, for S = [V, Q].
template <Space S>
typename RitzSolver<S>::Reach RitzSolver<S>::measured_reach(const Small& x) {
  multiply(space_, columns(s_, begin_ + p_cols_, x.rows()), x, b_);
  return {space_.blend_norms(y_, b_).difference_squared, x.squaredNorm()};
}

// P: the V before, beyond V, in coordinates of S, and its energies. m-orthonormal like those of V, so that no product
// is stretched.
template <Space S>
Small RitzSolver<S>::previous_directions(const RitzPairs& pairs, Small& energy) const {
  // Of two that would fill the space Q is worth more.
  const Index most = std::max<Index>(0, target_.dim() - 2 * v_cols_);
  const Index before = q_cols_ + p_cols_ > 0 ? v_cols_ : 0;  // a rotation of V leaves nothing
  if (before == 0) return Small(cols(), 0);
  Small turn;
  const Small previous =
      columns_beyond(pairs.vectors, m_, p_cols_, before, ritz_detail::previous_direction_drop<Scalar>, &turn);
  const Index kept = std::min(most, previous.cols());
  if (ritz_detail::is_finer_than_blocks<Scalar>)
    energy = energies_beyond(pairs.values, h_.block(p_cols_, p_cols_, before, before), turn.leftCols(kept));
  return previous.leftCols(kept);
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

// All in one reduction, though m is needed only if a step follows. What the products of [P, V] show of each other is
// known in coordinates, where those are finer than blocks: V are Ritz vectors of the S before, P is orthonormal to
// them.
template <Space S>
Small RitzSolver<S>::make_pencil(Index fresh_cols) {
  const Index all = cols(), at = all - fresh_cols;
  const bool is_known = ritz_detail::is_finer_than_blocks<Scalar> && at > 0;
  const Index known = is_known ? at : 0;
  const ConstView s = columns(s_, begin_, all), image = columns(sigma_s_, begin_ + at, fresh_cols), y = y_;
  const ConstView v_and_q = columns(s_, begin_ + p_cols_, v_cols_ + q_cols_);
  Small of_new, back, of_image, of_y, along_y;
  const GramRequest<ConstView> requests[] = {{s, columns(sigma_s_, begin_ + known, all - known), of_new},
                                             {s, m_},
                                             {image, of_image},
                                             {v_and_q, y, along_y},
                                             {y, of_y},
                                             {q(), sigma_v(), back}};
  space_.grams(std::span(requests).first(is_known ? 6 : 5));
  if (is_known) {
    h_.setZero(all, all);
    h_.topLeftCorner(p_cols_, p_cols_) = p_energy_;
    h_.diagonal().segment(p_cols_, v_cols_) = theta_;
    h_.rightCols(fresh_cols) = of_new;
    h_.bottomLeftCorner(fresh_cols, p_cols_) = of_new.topRows(p_cols_).transpose();
    h_.block(at, p_cols_, fresh_cols, v_cols_) = back;  // an operator that is not symmetric shows here
  } else {
    h_ = std::move(of_new);
  }
  y_squared_ = static_cast<double>(of_y.diagonal().template cast<long double>().sum());  // as make_basis does
  fresh_image_ = 0;
  if (fresh_cols == 0) return along_y;
  fresh_image_ = std::sqrt(of_image.diagonal().maxCoeff());
  // Squares overflow before lengths do.
  if (!of_image.diagonal().allFinite()) fresh_image_ = space_.column_norms(image).maxCoeff();
  return along_y;
}

template <Space S>
void RitzSolver<S>::give_up_previous() {
  begin_ += std::exchange(p_cols_, 0);
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

// The leading Ritz pairs of [P, V, Q]. A block that makes the basis dependent to rounding is given up: P, then Q.
template <Space S>
bool RitzSolver<S>::project(Index count, RitzPairs& pairs) {
  while (!ritz_pairs(h_, m_, count, pairs)) {
    if (p_cols_ + q_cols_ == 0) return false;
    if (p_cols_ > 0) {
      cut_previous();
    } else {
      q_cols_ = 0;
      h_ = h_.topLeftCorner(v_cols_, v_cols_).eval();
      m_ = m_.topLeftCorner(v_cols_, v_cols_).eval();
    }
  }
  return true;
}

// P, out of the pencil too.
template <Space S>
void RitzSolver<S>::cut_previous() {
  give_up_previous();
  h_ = h_.bottomRightCorner(cols(), cols()).eval();
  m_ = m_.bottomRightCorner(cols(), cols()).eval();
}

// The rounding of the columns of Sigma S c, in units of that of fresh products: rounding adds up as squares do.
template <Space S>
SmallVector RitzSolver<S>::combined_errors(const Small& c) const {
  const double v = std::max(1.0, v_error_);
  SmallVector squares = v * v * c.middleRows(p_cols_, v_cols_).colwise().squaredNorm().transpose();
  squares += c.bottomRows(q_cols_).colwise().squaredNorm().transpose();
  if (p_cols_ > 0) squares += (p_errors_.asDiagonal() * c.topRows(p_cols_)).colwise().squaredNorm().transpose();
  return (squares.array() + 0.25).sqrt().matrix();  // and the rounding of the combination itself
}

// Whether P adds more to the leading Ritz values than the rounding that comes with it.
template <Space S>
bool RitzSolver<S>::is_worth_its_rounding(const RitzPairs& pairs) const {
  const double error = combined_errors(pairs.vectors).maxCoeff();
  if (error <= ritz_detail::suspicious_error) return true;
  if (error > ritz_detail::most_error<Scalar>) return false;
  const Index rest = v_cols_ + q_cols_;
  RitzPairs without;
  if (!ritz_pairs(h_.bottomRightCorner(rest, rest), m_.bottomRightCorner(rest, rest), rank_, without)) return true;
  const Index count = std::min({rank_, pairs.values.size(), without.values.size()});
  const double gain = pairs.values.head(count).sum() - without.values.head(count).sum();
  return gain > static_cast<double>(rank_) * error * product_.energy_noise() * point_.data.target_norm;
}

// [P, V] <- S [c_P, c], and their products by the same combination.
template <Space S>
void RitzSolver<S>::turn_to(const Small& c, const Small& c_p) {
  Small both(cols(), c_p.cols() + c.cols());
  both << c_p, c;
  const SmallVector p_errors = combined_errors(c_p);
  v_error_ = combined_errors(c).maxCoeff();
  p_errors_ = p_errors;
  multiply(space_, columns(s_, begin_, cols()), both, columns(s_, 0, both.cols()));
  multiply(space_, columns(sigma_s_, begin_, cols()), both, columns(sigma_s_, 0, both.cols()));
  begin_ = q_cols_ = 0;
  p_cols_ = c_p.cols();
  v_cols_ = c.cols();
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
  begun_last_ = last;
  with_step_requests([&](auto requests) { ask_grams(space_, requests); });
  begun_ = Begun::well;
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
  if (begun_ == Begun::well) with_step_requests([&](auto requests) { answer_grams(space_, requests); });
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
  double polished = 0, ritz = 0;
  for (Index i = 0; i < std::min(rank_, v_cols_); ++i) {
    const double theta = pairs.values(i);
    if (!(theta > 2 * noise)) continue;
    ritz += theta;
    polished += std::max(0.0, k(i, i) / (theta + noise) - theta);
  }
  ritz_objective_ = std::max(0.0, recorder_.target_trace() - ritz);
  // A device makes Q, and its product, while the host finds the next iterate. To another target V is applied anew, and
  // there is no Q.
  v_is_new_ |= moved;
  if (!last && !moved) {
    make_new_directions();
    if (runs_ahead<S> && ritz_detail::is_finer_than_blocks<Scalar>) apply_ahead(k);
  }
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
