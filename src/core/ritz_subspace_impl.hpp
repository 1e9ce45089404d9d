// SPDX-License-Identifier: Apache-2.0
//
// The subspace S = [P, V, Q] of Ritz steps: its directions, what is known of its products, and how it is turned.
#pragma once

#include "core/basis_impl.hpp"
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

}  // namespace ritz_detail

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

}  // namespace itspace
