// SPDX-License-Identifier: Apache-2.0
#include "core/ritz_solver.hpp"

#include "core/drive.hpp"
#include "core/lapack.hpp"

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
      width_(std::min(start.cols() + guard_columns(options), std::max(target.dim(), start.cols()))),
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
  if (!pass(k, last)) return Status::not_finite;
  return recorder_.evaluated(look_.certificate,
                             {look_.objective(), look_.allowance(eps(), recorder_.target_trace()), Route::qr});
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
    q_cols_ = orthonormalise<Scalar>(q, new_direction_drop<Scalar>, Drop::relative, panels_).cols();
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
  }
}

template <Storage Scalar>
bool RitzSolver<Scalar>::pass(Index k, bool own) {
  // The columns whose product is new: all of V at the start, Q later; only Y itself where no step follows.
  const bool first = k == 0;
  q_cols_ = p_cols_ = 0;
  if (first) {
    make_first_subspace();
  } else if (!own) {
    make_new_directions();
  }
  make_basis<Scalar>(y_, q_, look_.basis, panels_);
  if (!look_.basis.finite) return false;

  const Index cols = v_cols_ + q_cols_, y_cols = look_.basis.cols;
  Index fresh = first ? 0 : v_cols_, fresh_cols = cols - fresh;
  Small inside;
  bool rides = own;
  if (own) {
    fresh_cols = 0;
  } else {
    const auto s = s_.leftCols(cols);
    kernels::gram<Scalar>(s, y_, inside, panels_);
    kernels::multiply<Scalar>(s, inside, b_, panels_);
    const double outside = kernels::blend_norms<Scalar>(y_, b_).difference_squared;
    const double limit = most_outside * eps();
    rides = outside > limit * limit * look_.basis.y_squared;
  }
  if (rides) s_.middleCols(fresh + fresh_cols, y_cols) = q_.leftCols(y_cols);
  const Index applied = fresh_cols + (rides ? y_cols : 0);
  if (applied > 0) target_.apply(s_.middleCols(fresh, applied), sigma_s_.middleCols(fresh, applied));
  recorder_.add_passes(1);
  recorder_.set_target_trace(target_.trace());

  if (rides) {
    product_.set_image(sigma_s_.middleCols(fresh + fresh_cols, y_cols), Small::Identity(y_cols, y_cols));
  } else {
    product_.set_image(sigma_s_.leftCols(cols), inside * look_.basis.inverse);
  }
  if (!own && !first) make_previous_directions();
  return look();
}

template <Storage Scalar>
bool RitzSolver<Scalar>::look() {
  product_.form_again(q_.leftCols(look_.basis.cols), look_.basis, look_.data);
  look_.note_trace(recorder_.target_trace(), target_.dim());
  const NullRule rule{look_.data.target_norm, product_.null_energy(), 4 * eps(), 30 * eps64};
  make_certificate(look_.data.theta, look_.data.coordinates, look_.basis, rule, 0, look_.certificate);
  if (!look_.certificate.finite) return false;
  return look_.lift<Scalar>(product_, y_, recorder_.target_trace(), b_);
}

// h and m of [V, Q, P] and their Ritz pairs. A block that makes the basis dependent to rounding is given up: P, then Q.
template <Storage Scalar>
bool RitzSolver<Scalar>::project(RitzPairs& pairs) {
  for (;;) {
    const auto s = s_.leftCols(cols());
    kernels::gram<Scalar>(s, s, m_, panels_);
    kernels::gram<Scalar>(s, sigma_s_.leftCols(cols()), h_, panels_);
    if (ritz_pairs(h_, m_, width_, pairs)) return true;
    if (p_cols_ + q_cols_ == 0) return false;
    (p_cols_ > 0 ? p_cols_ : q_cols_) = 0;
  }
}

template <Storage Scalar>
std::optional<StepMade> RitzSolver<Scalar>::make_step(bool last) {
  RitzPairs pairs;
  if (!project(pairs)) return std::nullopt;
  const double cut = 4 * eps();
  Polish polish;
  Small k;
  const bool wide = last && options_.wide_polish;
  if (wide) {
    kernels::gram<Scalar>(sigma_s_.leftCols(cols()), sigma_s_.leftCols(cols()), k, panels_);
    nystrom_polish(h_, k, rank_, cut, polish);
    if (polish.finite) turn_to_current(sigma_s_.leftCols(cols()), polish.a);
  }

  // V <- S c, Sigma V <- Sigma S c; the old V is the next P.
  previous_cols_ = v_cols_;
  previous_.leftCols(v_cols_) = v();
  sigma_previous_.leftCols(v_cols_) = sigma_v();
  const Index all = cols();
  v_cols_ = pairs.vectors.cols();
  kernels::multiply<Scalar>(s_.leftCols(all), pairs.vectors, v(), panels_);
  kernels::multiply<Scalar>(sigma_s_.leftCols(all), pairs.vectors, sigma_v(), panels_);

  kernels::gram<Scalar>(sigma_v(), sigma_v(), k, panels_);
  // A paper step with alpha = 1 from the Ritz state Y = V_r theta_r^(1/2) promises ||B - Y||^2.
  double promised = 0;
  for (Index i = 0; i < std::min(rank_, v_cols_); ++i) {
    const double theta = pairs.values(i);
    if (theta > cut * pairs.values(0)) promised += std::max(0.0, k(i, i) / theta - theta);
  }
  if (!wide) {
    Small h;
    kernels::gram<Scalar>(v(), sigma_v(), h, panels_);
    nystrom_polish(h, k, rank_, cut, polish);
    if (polish.finite) turn_to_current(sigma_v(), polish.a);
  }
  if (!polish.finite) return std::nullopt;
  const double step_squared = kernels::blend_norms<Scalar>(y_, next_).difference_squared;
  return StepMade{1, step_squared, promised, std::max(0.0, recorder_.target_trace() - polish.captured)};
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
