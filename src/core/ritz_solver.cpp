// SPDX-License-Identifier: Apache-2.0
#include "core/ritz_solver.hpp"

#include "core/lapack.hpp"
#include "core/objection.hpp"
#include "core/text.hpp"

#include <itspace/random.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();
constexpr std::uint64_t guard_stream = 2;

// Directions of Sigma V beyond V are fresh products, so only near-dependence among themselves is dropped.
template <Storage Scalar>
constexpr double new_direction_drop = std::same_as<Scalar, float> ? 1e-5 : 1e-12;

// A direction of length one that a second projection leaves with less than this (squared) was rounding.
constexpr double mostly_rounding = 0.25;

// The most rounding that kept products may gather, in units of that of fresh ones.
constexpr double most_error = 32;

// Y lies in the subspace when what is left of it is storage rounding.
constexpr double most_outside = 32;

Index guard_columns(const AlignOptions& options) {
  constexpr Index usual = 8, few_steps = 16;
  return options.guard.value_or(options.steps <= 2 ? few_steps : usual);
}

}  // namespace

template <Storage Scalar>
RitzSolver<Scalar>::RitzSolver(TargetRef<Scalar> target, const ConstBlockView<Scalar>& start,
                               const AlignOptions& options, Index passes_before)
    : target_(target),
      options_(options),
      rank_(start.cols()),
      width_(start.cols() + std::clamp<Index>(target.dim() - start.cols(), 0, guard_columns(options))),
      recorder_(target.dim(), start.cols(), precision_name<Scalar>(), 1.0, options.tolerance, "ritz"),
      s_(target.dim(), 3 * width_),
      sigma_s_(target.dim(), 3 * width_),
      previous_(target.dim(), width_),
      sigma_previous_(target.dim(), width_),
      y_(start),
      next_(target.dim(), start.cols()),
      best_(start),
      b_(target.dim(), start.cols()),
      q_(target.dim(), start.cols()),
      product_(target, start.cols(), 0, false) {
  recorder_.add_passes(passes_before);
}

template <Storage Scalar>
Result<Scalar> RitzSolver<Scalar>::run(const OnStep<Scalar>& on_step) {
  return drive<Scalar>(*this, options_, on_step);
}

template <Storage Scalar>
std::optional<Status> RitzSolver<Scalar>::look_at(Index k, bool last) {
  if (last && !options_.evaluate_last) {
    recorder_.not_evaluated();
    return std::nullopt;
  }
  if (const auto end = pass(k, last)) return end;
  objective_before_ = std::exchange(objective_, look_.objective(recorder_.target_trace()));
  resolution_before_ = resolution_;
  resolution_ = look_.resolution(eps(), recorder_.target_trace());
  return recorder_.evaluated(look_.certificate, {objective_, resolution_, Route::qr});
}

// V: an orthonormal basis of Y_0, filled up to r + g columns with random ones. They find what Y_0 is orthogonal to.
template <Storage Scalar>
void RitzSolver<Scalar>::make_first_subspace() {
  Basis basis;
  make_basis<Scalar>(y_, s_.leftCols(rank_), basis, panels_);
  v_cols_ = std::min(basis.cols, width_);
  Index filled = std::min(width_, target_.dim()) - v_cols_;
  if (filled > 0) Random(options_.seed, guard_stream).fill_normal<Scalar>(s_.middleCols(v_cols_, filled));
  for (int round = 0; round < 2 && filled > 0; ++round) {
    BlockView<Scalar> guards = s_.middleCols(v_cols_, filled);
    project_out<Scalar>(v(), guards, panels_);
    filled = orthonormalise<Scalar>(guards, eps64, Drop::relative, panels_).cols();
  }
  v_cols_ += filled;
  v_cols_ = orthonormalise<Scalar>(v(), eps64, Drop::relative, panels_).cols();
}

template <Storage Scalar>
void RitzSolver<Scalar>::make_new_directions() {
  q_cols_ = v_cols_;
  s_.middleCols(v_cols_, q_cols_) = sigma_v();
  // Twice: the second round orthogonalises what scaling to length one has brought up from rounding.
  for (int round = 0; round < 2; ++round) {
    BlockView<Scalar> q = s_.middleCols(v_cols_, q_cols_);
    project_out<Scalar>(v(), q, panels_);
    // What the second round shortens lies in V: it was the rounding of the first, scaled up.
    q_cols_ = round == 0 ? orthonormalise<Scalar>(q, new_direction_drop<Scalar>, Drop::relative, panels_).cols()
                         : orthonormalise<Scalar>(q, mostly_rounding, Drop::absolute, panels_).cols();
    // What exceeds the dimension is rounding that was scaled up: V is the whole space, or almost.
    q_cols_ = std::min(q_cols_, target_.dim() - v_cols_);
  }
}

template <Storage Scalar>
void RitzSolver<Scalar>::make_previous_directions() {
  const Index before = v_cols_ + q_cols_;
  p_cols_ = previous_cols_;
  s_.middleCols(before, p_cols_) = previous_.leftCols(p_cols_);
  sigma_s_.middleCols(before, p_cols_) = sigma_previous_.leftCols(p_cols_);
  const double drop = 30 * std::sqrt(eps());
  for (int round = 0; round < 2; ++round) {
    BlockView<Scalar> p = s_.middleCols(before, p_cols_), sigma_p = sigma_s_.middleCols(before, p_cols_);
    const Small c = project_out<Scalar>(s_.leftCols(before), p, panels_);
    kernels::multiply<Scalar>(sigma_s_.leftCols(before), -c, sigma_p, panels_, kernels::Write::add);
    const Small turn = orthonormalise<Scalar>(p, drop, Drop::absolute, panels_);
    kernels::multiply<Scalar>(sigma_p, turn, sigma_p.leftCols(turn.cols()), panels_);
    p_cols_ = turn.cols();
    // Sigma P <- (Sigma P - Sigma S c) turn: the errors of both, stretched.
    if (round == 0) p_errors_ = SmallVector::Constant(turn.rows(), previous_error_ + std::max(1.0, v_error_));
    p_errors_ = (p_errors_.asDiagonal() * turn).colwise().norm().transpose().eval();
  }
}

template <Storage Scalar>
std::optional<Status> RitzSolver<Scalar>::pass(Index k, bool own) {
  const bool first = k == 0;
  q_cols_ = p_cols_ = 0;
  if (own) {
    make_basis<Scalar>(y_, q_, look_.basis, panels_);
    if (!look_.basis.finite) return Status::not_finite;
    if (first) make_first_subspace();
    product_.form(q_.leftCols(look_.basis.cols), look_.basis, look_.data);
    recorder_.add_passes(1);
    recorder_.set_target_trace(target_.trace());
    return look_in_own_basis(look_.data.overwritten);
  }
  if (first) {
    make_first_subspace();
  } else {
    make_new_directions();
  }

  // The columns whose product is new: all of V at the start, Q later.
  const Index cols = v_cols_ + q_cols_, fresh = first ? 0 : v_cols_, fresh_cols = cols - fresh;
  Small inside;
  kernels::gram<Scalar>(s_.leftCols(cols), y_, inside, panels_);
  kernels::multiply<Scalar>(s_.leftCols(cols), inside, b_, panels_);
  const double outside = kernels::blend_norms<Scalar>(y_, b_).difference_squared;
  if (!std::isfinite(outside)) return Status::not_finite;
  const double limit = most_outside * eps();
  const bool rides = outside > limit * limit * inside.squaredNorm();
  if (rides) {
    make_basis<Scalar>(y_, q_, look_.basis, panels_);
    s_.middleCols(cols, look_.basis.cols) = q_.leftCols(look_.basis.cols);
  }
  const Index applied = fresh_cols + (rides ? look_.basis.cols : 0);
  bool overwritten = true;
  if (applied > 0) {
    overwritten = apply_over<Scalar>(target_, s_.middleCols(fresh, applied), sigma_s_.middleCols(fresh, applied));
  }
  recorder_.add_passes(1);
  recorder_.set_target_trace(target_.trace());
  if (rides) {
    const Index y_cols = look_.basis.cols;
    product_.set_image(sigma_s_.middleCols(cols, y_cols), Small::Identity(y_cols, y_cols));
    product_.form_again(q_.leftCols(y_cols), look_.basis, look_.data);
  }
  if (!first) make_previous_directions();
  kernels::gram<Scalar>(s_.leftCols(this->cols()), sigma_s_.leftCols(this->cols()), h_, panels_);
  return rides ? look_in_own_basis(overwritten) : look_in_subspace(inside, overwritten);
}

template <Storage Scalar>
std::optional<Status> RitzSolver<Scalar>::look_in_own_basis(bool overwritten) {
  look_.data.overwritten = overwritten;
  return certify(1);
}

// Y = S inside for S = [V, Q], which is orthonormal: theta = S'Sigma S, and the coordinates are those of Y in S.
template <Storage Scalar>
std::optional<Status> RitzSolver<Scalar>::look_in_subspace(const Small& inside, bool overwritten) {
  const Index cols = inside.rows();
  look_.basis = Basis();
  look_.basis.cols = cols;
  look_.basis.r = inside;
  look_.basis.y_squared = column_lengths<Scalar>(y_).squaredNorm();
  look_.data.theta = h_.topLeftCorner(cols, cols);
  look_.data.coordinates = inside;
  look_.data.target_norm = column_lengths<Scalar>(sigma_s_.leftCols(cols)).maxCoeff();
  look_.data.seen_trace = look_.data.theta.trace();
  look_.data.overwritten = overwritten;
  return certify(std::max(1.0, v_error_));
}

// `noise`: of the products, in units of that of fresh ones.
template <Storage Scalar>
std::optional<Status> RitzSolver<Scalar>::certify(double noise) {
  look_.note_trace(recorder_.target_trace(), target_.dim());
  if (std::string objection = objection_to(look_.data, recorder_.target_trace(), target_.dim()); !objection.empty()) {
    recorder_.give_reason(std::move(objection));
    return Status::not_a_covariance;
  }
  NullRule rule;
  rule.noise = noise * product_.energy_noise() * look_.data.target_norm;
  rule.length = 4 * eps();
  rule.relative = 30 * eps64;
  make_certificate(look_.data.theta, look_.data.coordinates, look_.basis, rule, 0, look_.certificate);
  if (!look_.certificate.finite || !std::isfinite(recorder_.target_trace())) return Status::not_finite;
  return std::nullopt;
}

// m of [V, Q, P] and its leading Ritz pairs. A block that makes the basis dependent to rounding is given up: P, then Q.
template <Storage Scalar>
bool RitzSolver<Scalar>::project(Index count, RitzPairs& pairs) {
  kernels::gram<Scalar>(s_.leftCols(cols()), s_.leftCols(cols()), m_, panels_);
  while (!ritz_pairs(h_, m_, count, pairs)) {
    if (p_cols_ + q_cols_ == 0) return false;
    (p_cols_ > 0 ? p_cols_ : q_cols_) = 0;
    h_ = h_.topLeftCorner(cols(), cols()).eval();
    m_ = m_.topLeftCorner(cols(), cols()).eval();
  }
  return true;
}

// The rounding of Sigma S c, in units of that of fresh products: rounding adds up as squares do.
template <Storage Scalar>
double RitzSolver<Scalar>::combined_error(const Small& c) const {
  const double v = std::max(1.0, v_error_);
  SmallVector squares = v * v * c.topRows(v_cols_).colwise().squaredNorm();
  squares += c.middleRows(v_cols_, q_cols_).colwise().squaredNorm().transpose();
  if (p_cols_ > 0) squares += (p_errors_.asDiagonal() * c.bottomRows(p_cols_)).colwise().squaredNorm().transpose();
  return std::sqrt(squares.maxCoeff() + 0.25);  // and the rounding of the combination itself
}

template <Storage Scalar>
StepOutcome RitzSolver<Scalar>::make_step(bool last) {
  const StepOutcome not_finite{std::nullopt, Status::not_finite, ""};
  const bool wide = last && options_.wide_polish;
  RitzPairs pairs;
  if (!project(wide ? cols() : width_, pairs)) return not_finite;
  // P is given up too where it would carry more rounding into V than it is worth.
  if (p_cols_ > 0 && combined_error(pairs.vectors) > most_error) {
    p_cols_ = 0;
    h_ = h_.topLeftCorner(cols(), cols()).eval();
    if (!project(wide ? cols() : width_, pairs)) return not_finite;
  }
  const double noise = std::max(1.0, v_error_) * product_.energy_noise() * look_.data.target_norm;

  // V <- S c, Sigma V <- Sigma S c; the old V is the next P. For the last report c is all of the Ritz vectors.
  previous_cols_ = v_cols_;
  previous_.leftCols(v_cols_) = v();
  sigma_previous_.leftCols(v_cols_) = sigma_v();
  previous_error_ = v_error_;
  v_error_ = combined_error(pairs.vectors);
  const Index all = cols();
  v_cols_ = pairs.vectors.cols();
  kernels::multiply<Scalar>(s_.leftCols(all), pairs.vectors, v(), panels_);
  kernels::multiply<Scalar>(sigma_s_.leftCols(all), pairs.vectors, sigma_v(), panels_);
  q_cols_ = p_cols_ = 0;

  Small k;
  kernels::gram<Scalar>(sigma_v(), sigma_v(), k, panels_);
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
  if (polish.finite) turn_to_current(sigma_v(), polish.a);
  if (!polish.finite) return not_finite;
  const double bound = std::max(0.0, recorder_.target_trace() - polish.captured);
  ritz_objective_ = std::max(0.0, recorder_.target_trace() - ritz);
  const double step_squared = kernels::blend_norms<Scalar>(y_, next_).difference_squared;
  // What was left out as rounding may cost more than the polish gains: the bound then says what is promised. Where that
  // is a loss, and the subspace holds nothing better, the run is at rounding level.
  const double promised = std::min(polished, objective_ - bound);
  const double rounding_of_sums = resolution_ - look_.certificate.uncertainty;
  if (promised < -rounding_of_sums && objective_ - ritz_objective_ <= rounding_of_sums)
    return {std::nullopt, Status::converged, "no step descends by more than rounding"};
  return {StepMade{1, step_squared, promised, bound}};
}

// The step that promised nothing did not descend. There is no shorter one: the best of the subspace was taken.
template <Storage Scalar>
StepOutcome RitzSolver<Scalar>::shorten_step() {
  std::swap(y_, next_);
  // What the subspace still holds beyond Y_k.
  if (objective_before_ - ritz_objective_ <= 2 * resolution_before_)
    return {std::nullopt, Status::converged, "no step descends by more than rounding"};
  return {std::nullopt, Status::certificate_failed,
          text("the best factor of the subspace (W2^2 = ", objective_, ", its Ritz values say ", ritz_objective_,
               ") is no better than the one before (", objective_before_, ")")};
}

// next = Sigma S a, turned by the orthogonal matrix that brings it closest to Y: the state moves no more than it must.
template <Storage Scalar>
void RitzSolver<Scalar>::turn_to_current(const ConstBlockView<Scalar>& sigma_s, const Small& a) {
  Small inner;
  kernels::gram<Scalar>(sigma_s, y_, inner, panels_);
  Svd parts;
  Small turned = a;
  if (svd(a.transpose() * inner, SvdSize::full, parts)) turned = a * parts.u * parts.v.transpose();
  kernels::multiply<Scalar>(sigma_s, turned, next_, panels_);
}

template class RitzSolver<float>;
template class RitzSolver<double>;

}  // namespace itspace
