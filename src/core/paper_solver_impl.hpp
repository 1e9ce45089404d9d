// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/completion_impl.hpp"
#include "core/line_search.hpp"
#include "core/objection.hpp"
#include "core/paper_solver.hpp"
#include "core/probe_impl.hpp"
#include "core/product_impl.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace itspace {
namespace paper_detail {

// Streams of the seed.
inline constexpr std::uint64_t probe_stream = 1, completion_stream = 1024;

// The gram route is as accurate as qr while the condition number of G is at most this (times r); a step that was
// predicted to be and is ten times over is made again by qr.
inline constexpr double gram_condition_limit = 10;

// The gram route is given up where what it does not know of F is this many times the rounding of sums.
inline constexpr double most_uncertain = 100;

// A kept product is refreshed when its rounding has grown to this many times that of a fresh one.
inline constexpr double most_kept_error = 8;

// A step that promises nothing and does not descend is shortened by this, so many times.
inline constexpr double shorter = 0.25;
inline constexpr int most_shortened = 3;

inline std::optional<double> reported_alpha(const AlignOptions& options) {
  if (options.step_size.kind() == StepSize::Kind::line_search) return std::nullopt;
  return options.step_size.resolve(options.steps);
}

}  // namespace paper_detail

template <Space S>
PaperSolver<S>::PaperSolver(RunContext<S>& run, Block start, Index rank, const AlignOptions& options)
    : run_(run),
      space_(run.space),
      target_(run.target),
      options_(options),
      rank_(rank),
      alpha_(options.step_size.resolve(options.steps)),
      recorder_(target_.dim(), rank, precision_name<Scalar>(), paper_detail::reported_alpha(options), options.tolerance,
                Solver::paper, run.begin),
      version_(target_.version()),
      q_(space_.make_block(target_.dim(), rank + (options.probe ? 1 : 0))),
      b_(space_.make_block(target_.dim(), rank)),
      by_operator_(run, rank, options.probe ? 1 : 0, options.completion) {
  const Index d = target_.dim();
  iterates_ = {std::move(start), space_.make_block(d, rank), space_.make_block(d, rank)};
  if (searches_line()) {
    q_b_ = space_.make_block(d, rank);
    sigma_q_b_ = space_.make_block(d, rank);
  }
  if (options.completion) z_ = space_.make_block(d, rank + completion_oversampling);
  if (options.probe)
    probe_ = std::make_unique<Probe<S>>(
        space_, d, rank,
        Random(options.seed, paper_detail::probe_stream + (static_cast<std::uint64_t>(run.first_row()) << 32U)));
  if (run.before) {
    recorder_.go_on_behind(run.before->trace);
    iterates_[best_ = 1] = std::move(run.before->best);
    next_ = 2;
  }
}

template <Space S>
PaperSolver<S>::PaperSolver(RunContext<S>& run, UnderWay<S> state, Index rank, const AlignOptions& options)
    : PaperSolver(run, std::move(state.current), rank, options) {
  recorder_ = std::move(state.recorder);
  if (!state.best) return;
  iterates_[1] = std::move(*state.best);
  best_ = 1;
  next_ = 2;
}

template <Space S>
BasicResult<S> PaperSolver<S>::run(const BasicOnStep<S>& on_step) {
  return run_solver(space_, target_.dim(), *this, options_, on_step);
}

template <Space S>
BasicEvaluation<S> PaperSolver<S>::evaluate_start() {
  BasicEvaluation<S> out;
  recorder_.iterate_made(std::nullopt, passes());
  out.status = Status::step_limit;
  if (const auto end = evaluate_current(0, false, true)) {
    out.status = *end;
  } else {
    record_evaluation();
  }
  const Trace trace = recorder_.finish(out.status, passes());
  out.certificate = trace.steps.front();
  out.target_trace = trace.target_trace;
  out.reason = trace.reason;
  if (!failed(out.status)) out.image = std::move(b_);
  return out;
}

template <Space S>
std::optional<Status> PaperSolver<S>::evaluate(Index k, bool last) {
  const Index version = target_.version();
  if (std::exchange(version_, version) != version) forget_old_target();
  if (last && !options_.evaluate_last && !may_keep_product_ && !on_trial_) {
    recorder_.not_evaluated(version_);
    return std::nullopt;
  }
  if (const auto end = evaluate_current(k, !last, !last)) return end;
  return record_evaluation();
}

template <Space S>
std::optional<Status> PaperSolver<S>::record_evaluation() {
  return recorder_.evaluated(point_.certificate,
                             {point_.objective(recorder_.target_trace()), resolution(), route_, version_});
}

template <Space S>
void PaperSolver<S>::forget_old_target() {
  may_keep_product_ = range_exhausted_ = false;
  by_factor_.reset();  // its factor may have another number of columns
}

template <Space S>
bool PaperSolver<S>::may_use_factor() const {
  return options_.route == Route::automatic && target_.has_factor() && !probe_ && !searches_line();
}

template <Space S>
Product<S>& PaperSolver<S>::product() {
  if (route_ != Route::factor && route_ != Route::root) return by_operator_;
  if (!by_factor_) by_factor_ = std::make_unique<FactorProduct<S>>(run_, rank_, options_.completion);
  return *by_factor_;
}

template <Space S>
void PaperSolver<S>::advance() {
  previous_ = current_;
  current_ = next_;
  next_ = 0;
  while (next_ == current_ || next_ == best_) ++next_;
}

template <Space S>
Route PaperSolver<S>::choose_route() const {
  if (options_.route != Route::automatic) return options_.route;
  if (knows_nothing_) return Route::qr;
  const Index r = point_.basis.r.cols();
  if (may_use_factor() && (route_ == Route::factor || point_.certificate.rank < r)) return Route::factor;
  if (searches_line()) return Route::qr;
  return point_.certificate.condition <= paper_detail::gram_condition_limit * static_cast<double>(r) ? Route::gram
                                                                                                     : Route::qr;
}

template <Space S>
NullRule PaperSolver<S>::null_rule(Route route) const {
  const double of_products = route == Route::factor ? by_factor_->energy_noise() : by_operator_.energy_noise();
  return point_.null_rule(route, kept_error_ * of_products, eps(), target_.dim());
}

template <Space S>
std::optional<Status> PaperSolver<S>::evaluate_current(Index k, bool step_follows, bool lifts) {
  if (const auto end = certify_by(choose_route(), step_follows)) return end;
  knows_nothing_ = false;
  // Better routes for what this one could not resolve, one more pass each. qr where G was too ill-conditioned for gram,
  // and also where gram was asked for and leaves F unknown to far more than the rounding of its sums.
  const double limit = 10 * paper_detail::gram_condition_limit * static_cast<double>(point_.basis.r.cols());
  const bool too_coarse =
      point_.certificate.uncertainty > paper_detail::most_uncertain * (resolution() - point_.certificate.uncertainty);
  if (route_ == Route::gram &&
      ((options_.route == Route::automatic && !(point_.certificate.condition <= limit)) || too_coarse))
    if (const auto end = certify_by(Route::qr, step_follows)) return end;
  if (options_.route == Route::automatic) {
    // factor where products with Sigma lost directions that products with T may still see.
    if (route_ == Route::qr && choose_route() == Route::factor)
      if (const auto end = certify_by(Route::factor, step_follows)) return end;
  }
  // A completed certificate serves the step; the objective does not need it.
  if (point_.certificate.rank < point_.basis.r.cols() && step_follows && options_.completion && !range_exhausted_)
    complete_certificate(k);
  if (!lifts) return std::isfinite(recorder_.target_trace()) ? std::nullopt : std::optional(Status::not_finite);
  bool finite = lift();
  std::optional<Status> end;
  while (finite && step_follows && needs_improvement() && improve_certificate(step_follows, end)) {
    if (end) return end;
    finite = lift();
  }
  if (!finite) return Status::not_finite;
  // Completion has filled in a draw of its own, which the probe may overlap with.
  if (probe_ && step_follows && !completed_)
    probe_gain_ = probe_->measure_gain(q_, by_operator_, point_.certificate, point_.data.target_norm, b_);
  return std::nullopt;
}

template <Space S>
bool PaperSolver<S>::lift() {
  if (!point_.lift(space_, product(), current(), recorder_.target_trace(), b_)) return false;
  point_.doubt = promise_doubt(point_.images<S>(space_, product(), b_), point_.basis, point_.certificate);
  // A sweep and some r x r products, where a decomposition would follow.
  if (point_.certificate.by_products && promises_nothing(alpha_))
    point_.doubt = std::min(point_.doubt, point_.joint_doubt(space_, b_));
  return true;
}

template <Space S>
double PaperSolver<S>::safe_descent(double alpha) const {
  return promised_descent(alpha, point_.norms.difference_squared, point_.certificate.gap) - point_.doubt;
}

template <Space S>
bool PaperSolver<S>::promises_nothing(double alpha) const {
  return safe_descent(alpha) < -resolution();
}

// Where a promise is empty, where the completed B is not what its certificate says, and where F is known so badly
// beside what is promised (directions at the edge of what the route shows) that another route may know it better.
template <Space S>
bool PaperSolver<S>::needs_improvement() const {
  if (promises_nothing(alpha_) || (completed_ && point_.inconsistency() > resolution())) return true;
  return !completed_ && point_.certificate.uncertainty > 0.9 * resolution() && safe_descent(alpha_) < resolution();
}

template <Space S>
bool PaperSolver<S>::improve_certificate(bool step_follows, std::optional<Status>& end) {
  if (completed_) {
    point_.certificate = compact_;
    completed_ = false;
    range_exhausted_ = true;  // what is left of the range is not worth another pass
    return true;
  }
  if (regularised_ || point_.certificate.by_products) {
    // Completion may have extended the data.
    const Index q = point_.basis.cols;
    const Small theta = point_.data.theta.topLeftCorner(q, q), coordinates = point_.data.coordinates.topRows(q);
    make_certificate(theta, coordinates, point_.basis, null_rule(route_), 0, point_.certificate);
    regularised_ = false;
    return true;
  }
  if (route_ == Route::gram) {
    end = certify_by(Route::qr, step_follows);
    return true;
  }
  if (route_ == Route::qr && may_use_factor()) {
    end = certify_by(Route::factor, step_follows);
    return true;
  }
  return false;
}

template <Space S>
std::optional<Status> PaperSolver<S>::certify_by(Route route, bool step_follows) {
  route_ = route;
  completed_ = false;
  std::swap(point_.basis, previous_basis_);
  if (route == Route::gram) {
    make_scaled_basis(space_, current(), q_, point_.basis);
  } else {
    make_basis(space_, current(), q_, point_.basis);
  }
  if (!point_.basis.finite) {
    if (target_.swept()) recorder_.set_target_trace(target_.trace());  // it may say why
    return Status::not_finite;
  }

  const double error =
      may_keep_product_ && point_.basis.direct ? kept_product_error(point_.basis) : paper_detail::most_kept_error + 1;
  if (error <= paper_detail::most_kept_error) {
    kept_error_ = std::max(1.0, error);
    by_operator_.advance((1 - step_alpha_) * previous_basis_.r * point_.basis.inverse,
                         columns(sigma_q_b_, basis_b_.cols), step_alpha_ * basis_b_.r * point_.basis.inverse);
    by_operator_.form_again(columns(q_, point_.basis.cols), point_.basis, point_.data);
  } else {
    const bool carries_probe = probe_ && step_follows;
    if (carries_probe) space_.copy(probe_->column(), space_.columns(q_, point_.basis.cols, 1));
    product().form(columns(q_, point_.basis.cols + (carries_probe ? 1 : 0)), point_.basis, point_.data);
    kept_error_ = 1;
  }
  may_keep_product_ = false;
  recorder_.set_target_trace(target_.trace());
  point_.note_trace(recorder_.target_trace(), target_.dim());
  const double regularization = route == Route::gram ? options_.gram_regularization : 0;
  regularised_ = regularization > 0;
  // Products say what is doubtful of Sigma Q; on the other routes X is not that.
  const bool of_operator = route == Route::qr || route == Route::gram;
  make_certificate(point_.data.theta, point_.data.coordinates, point_.basis, null_rule(route), regularization,
                   point_.certificate, of_operator, point_.certificate_work.get());
  // What is certified by products has a Cholesky factor.
  if (std::string objection =
          objection_to(point_.data, recorder_.target_trace(), target_.dim(), storage(), point_.certificate.by_products);
      !objection.empty()) {
    recorder_.give_reason(std::move(objection));
    return Status::not_a_covariance;
  }
  if (!point_.certificate.finite) return Status::not_finite;
  return std::nullopt;
}

template <Space S>
void PaperSolver<S>::complete_certificate(Index k) {
  const Random random(options_.seed, paper_detail::completion_stream + static_cast<std::uint64_t>(k));
  compact_ = point_.certificate;
  const Index found = complete(space_, product(), columns(q_, point_.basis.cols), random, z_, target_.dim(),
                               point_.data, point_.certificate);
  range_exhausted_ = found == 0;
  completed_ = found > 0;
}

template <Space S>
StepOutcome PaperSolver<S>::make_step(bool) {
  on_trial_ = false;
  // A target that has changed since Y_k was evaluated: what is known of the old one makes a step, and ends nothing.
  const bool moved = target_.version() != version_;
  if (probe_ && !completed_) {
    const double swapped = point_.norms.difference_squared + probe_gain_;
    if (probe_gain_ > point_.norms.difference_squared) {
      probe_->swap(current(), b_, next());
      const double step_squared = space_.blend_norms(current(), next()).difference_squared;
      taken_ = {1, step_squared, point_.certificate.gap, point_.remainder, point_.doubt};
      taken_.shortened = paper_detail::most_shortened;  // there is no line to shorten it on
      return {StepMade{1, step_squared, swapped - 2 * point_.certificate.gap,
                       std::max(0.0, point_.remainder - probe_gain_), point_.doubt}};
    }
    probe_->keep();
  }
  double alpha = alpha_;
  if (searches_line() && !moved) alpha = search_line();
  // alpha = 1 promises most. Where even that is nothing the step is on trial: its end is evaluated in any case.
  if (alpha > 1 && alpha < 2 && promises_nothing(alpha)) step_alpha_ = alpha = 1;
  if (alpha > 0 && alpha < 2 && promises_nothing(alpha)) {
    if (!moved && point_.norms.difference_squared <= 2 * resolution())
      return {std::nullopt, Status::converged, "no step descends by more than rounding"};
    on_trial_ = true;
  }
  taken_ = {alpha, point_.norms.difference_squared, point_.certificate.gap, point_.remainder, point_.doubt};
  space_.blend(current(), b_, alpha, next());
  return {step_to(alpha)};
}

// F(Y + t (B - Y)) need not rise for a small t where it rose for a larger one.
template <Space S>
StepOutcome PaperSolver<S>::shorten_step() {
  const double from = taken_.alpha;
  if (taken_.shortened == paper_detail::most_shortened) {
    current_ = previous_;
    return {std::nullopt, Status::certificate_failed,
            "the certificate is too inexact to promise that a step descends, and none was found that does"};
  }
  ++taken_.shortened;
  taken_.alpha = from > 1 ? 1 : from * paper_detail::shorter;
  // Y_k + (alpha/from) (Y_{k+1} - Y_k), in place.
  space_.blend(iterates_[previous_], iterates_[current_], taken_.alpha / from, iterates_[current_]);
  may_keep_product_ = false;
  return {step_to(taken_.alpha)};
}

// What a plain step of that alpha from the iterate of taken_ promises.
template <Space S>
StepMade PaperSolver<S>::step_to(double alpha) const {
  StepMade step = step_along(alpha, taken_.difference_squared, taken_.gap, taken_.remainder, taken_.doubt);
  if (!(alpha > 0 && alpha < 2)) step.promised_descent = not_a_number;
  return step;
}

template <Space S>
double PaperSolver<S>::search_line() {
  // The pass is made on a basis of B, not on B: unit columns stay in range, and the product of the next basis, which is
  // nearly a combination of both bases with coefficients of order one, keeps the accuracy of a fresh one.
  make_basis(space_, b_, q_b_, basis_b_);
  const Index q = point_.basis.cols, q_b = basis_b_.cols;
  if (!basis_b_.finite || q_b == 0) return 1;
  const View q_of_b = columns(q_b_, q_b), sigma_q = columns(sigma_q_b_, q_b);
  target_.apply(q_of_b, sigma_q);

  Segment s;
  const double target_unit = point_.data.target_norm > 0 ? point_.data.target_norm : 1;
  const double y_unit = std::sqrt(basis_b_.y_squared);
  s.unit = std::sqrt(target_unit) / y_unit;
  const Small r = point_.basis.r / y_unit, r_b = basis_b_.r / y_unit, c = point_.data.coordinates / y_unit;
  Small q_sigma_b, b_sigma_b, y_dot_b;
  const GramRequest<ConstView> requests[] = {
      {columns(q_, q), sigma_q, q_sigma_b}, {q_of_b, sigma_q, b_sigma_b}, {current(), b_, y_dot_b}};
  space_.grams(requests);
  const Small yb = r.transpose() * q_sigma_b * r_b, bb = r_b.transpose() * b_sigma_b * r_b;
  s.yy = c.transpose() * point_.data.theta * c / target_unit;
  s.yb = (yb + yb.transpose()) / target_unit;
  s.bb = 0.5 * (bb + bb.transpose()) / target_unit;
  s.y_squared = point_.basis.y_squared / y_unit / y_unit;
  s.b_squared = 1;
  s.y_dot_b = y_dot_b.trace() / y_unit / y_unit;
  // Rounding of F from G: eps ||G|| under a square root, whose slope is that of the smallest eigenvalue.
  const double roots = eps() * point_.certificate.nuclear_norm * std::sqrt(point_.certificate.condition);
  s.noise = (2 * resolution() + 2 * static_cast<double>(r.cols()) * roots) / y_unit / y_unit;
  step_alpha_ = best_step(s);
  // W+ is a combination of W and Sigma Q_B: an operator route is needed.
  may_keep_product_ = route_ == Route::qr || route_ == Route::gram;
  return step_alpha_;
}

// The rounding of W+ = W x + Sigma Q_B x_b, in units of that of a fresh product with unit columns, x and x_b being the
// coordinates of the next basis in the two. The second term is the rounding of the coordinates themselves.
template <Space S>
double PaperSolver<S>::kept_product_error(const Basis& to) const {
  const auto longest = [](const Small& x) { return x.cols() > 0 ? x.colwise().norm().maxCoeff() : 0.0; };
  const Small x = previous_basis_.r * to.inverse, x_b = basis_b_.r * to.inverse;
  const Small steep = previous_basis_.r.cwiseAbs() * to.inverse.cwiseAbs();
  return std::abs(1 - step_alpha_) * kept_error_ * longest(x) + std::abs(step_alpha_) * longest(x_b) +
         longest(steep) * eps64 / eps() / 4;
}

}  // namespace itspace
