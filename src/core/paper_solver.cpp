// SPDX-License-Identifier: Apache-2.0
#include "core/paper_solver.hpp"

#include "core/line_search.hpp"
#include "core/objection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();

// Streams of the seed.
constexpr std::uint64_t probe_stream = 1, completion_stream = 1024;

// The gram route is as accurate as qr while the condition number of G is at most this (times r); a step that was
// predicted to be and is ten times over is made again by qr.
constexpr double gram_condition_limit = 10;

// The gram route is given up where what it does not know of F is this many times the rounding of sums.
constexpr double most_uncertain = 100;

// A kept product is refreshed when its rounding has grown to this many times that of a fresh one.
constexpr double most_kept_error = 8;

// A step that promises nothing and does not descend is shortened by this, so many times.
constexpr double shorter = 0.25;
constexpr int most_shortened = 3;

std::optional<double> reported_alpha(const AlignOptions& options) {
  if (options.step_size.kind() == StepSize::Kind::line_search) return std::nullopt;
  return options.step_size.resolve(options.steps);
}

}  // namespace

template <Storage Scalar>
PaperSolver<Scalar>::PaperSolver(TargetRef<Scalar> target, const ConstBlockView<Scalar>& start,
                                 const AlignOptions& options, Index passes_before)
    : target_(target),
      options_(options),
      alpha_(options.step_size.resolve(options.steps)),
      recorder_(target.dim(), start.cols(), precision_name<Scalar>(), reported_alpha(options), options.tolerance,
                "paper"),
      q_(target.dim(), start.cols() + (options.probe ? 1 : 0)),
      b_(target.dim(), start.cols()),
      by_operator_(target, start.cols(), options.probe ? 1 : 0, options.completion) {
  const Index r = start.cols();
  iterates_[0] = start;
  iterates_[1].resize(target.dim(), r);
  iterates_[2].resize(target.dim(), r);
  if (searches_line()) {
    q_b_.resize(target.dim(), r);
    sigma_q_b_.resize(target.dim(), r);
  }
  if (options.completion) z_.resize(target.dim(), r + completion_oversampling);
  recorder_.add_passes(passes_before);
  if (options.route == Route::root) {
    root_ = std::make_unique<RootTarget<Scalar>>(target);
    recorder_.add_passes(1);
    by_factor_ = std::make_unique<FactorProduct<Scalar>>(*root_, r, options.completion);
  } else if (target.has_factor() && (options.route == Route::factor || options.route == Route::automatic)) {
    by_factor_ = std::make_unique<FactorProduct<Scalar>>(target, r, options.completion);
  }
  if (options.probe) probe_ = std::make_unique<Probe<Scalar>>(target.dim(), r, Random(options.seed, probe_stream));
}

template <Storage Scalar>
Result<Scalar> PaperSolver<Scalar>::run(const OnStep<Scalar>& on_step) {
  return drive<Scalar>(*this, options_, on_step);
}

template <Storage Scalar>
Evaluation<Scalar> PaperSolver<Scalar>::evaluate() {
  Evaluation<Scalar> out;
  recorder_.iterate_made(std::nullopt);
  out.status = look_at(0, true).value_or(Status::step_limit);
  const Trace trace = recorder_.finish(out.status);
  out.certificate = trace.steps.front();
  out.target_trace = trace.target_trace;
  out.reason = trace.reason;
  if (!failed(out.status)) out.image = std::move(b_);
  return out;
}

template <Storage Scalar>
std::optional<Status> PaperSolver<Scalar>::look_at(Index k, bool last) {
  if (last && !options_.evaluate_last && !may_keep_product_ && !on_trial_) {
    recorder_.not_evaluated();
    return std::nullopt;
  }
  if (const auto end = look(k, !last)) return end;
  return recorder_.evaluated(look_.certificate, {look_.objective(recorder_.target_trace()), resolution(), route_});
}

template <Storage Scalar>
void PaperSolver<Scalar>::advance() {
  previous_ = current_;
  current_ = next_;
  next_ = 0;
  while (next_ == current_ || next_ == best_) ++next_;
}

template <Storage Scalar>
Route PaperSolver<Scalar>::choose_route(bool first) const {
  if (options_.route != Route::automatic) return options_.route;
  if (first) return Route::qr;
  const Index r = look_.basis.r.cols();
  if (may_use_factor() && (route_ == Route::factor || look_.certificate.rank < r)) return Route::factor;
  if (searches_line()) return Route::qr;
  return look_.certificate.condition <= gram_condition_limit * static_cast<double>(r) ? Route::gram : Route::qr;
}

template <Storage Scalar>
NullRule PaperSolver<Scalar>::null_rule(Route route) const {
  NullRule rule;
  // The root of a dense Sigma has the rounding of Sigma's own energies in it.
  rule.of_roots = route == Route::factor;
  rule.of_columns = route == Route::gram;
  rule.noise =
      look_.data.target_norm * kept_error_ * (rule.of_roots ? by_factor_->energy_noise() : by_operator_.energy_noise());
  if (route == Route::root) rule.noise *= static_cast<double>(target_.dim());
  rule.length = 4 * eps();
  // Rounding of the singular values: of their squares where G itself was formed, of themselves elsewhere.
  rule.relative = route == Route::gram ? std::sqrt(30 * eps64) : 30 * eps64;
  return rule;
}

template <Storage Scalar>
std::optional<Status> PaperSolver<Scalar>::look(Index k, bool step_follows) {
  const bool first = recorder_.row().index == 0;
  if (const auto end = certify_by(choose_route(first), step_follows)) return end;
  // Better routes for what this one could not resolve, one more pass each. qr where G was too ill-conditioned for gram,
  // and also where gram was asked for and leaves F unknown to far more than the rounding of its sums.
  const double limit = 10 * gram_condition_limit * static_cast<double>(look_.basis.r.cols());
  const bool too_coarse =
      look_.certificate.uncertainty > most_uncertain * (resolution() - look_.certificate.uncertainty);
  if (route_ == Route::gram &&
      ((options_.route == Route::automatic && !(look_.certificate.condition <= limit)) || too_coarse))
    if (const auto end = certify_by(Route::qr, step_follows)) return end;
  if (options_.route == Route::automatic) {
    // factor where products with Sigma lost directions that products with T may still see.
    if (route_ == Route::qr && choose_route(false) == Route::factor)
      if (const auto end = certify_by(Route::factor, step_follows)) return end;
  }
  // A completed certificate serves the step; the objective does not need it.
  if (look_.certificate.rank < look_.basis.r.cols() && step_follows && options_.completion && !range_exhausted_)
    complete_certificate(k);
  bool finite = lift();
  std::optional<Status> end;
  while (finite && step_follows && needs_improvement() && improve_certificate(step_follows, end)) {
    if (end) return end;
    finite = lift();
  }
  if (!finite) return Status::not_finite;
  // Completion has filled in a draw of its own, which the probe may overlap with.
  if (probe_ && step_follows && !completed_)
    probe_gain_ = probe_->look(q_, by_operator_, look_.certificate, look_.data.target_norm, b_);
  return std::nullopt;
}

template <Storage Scalar>
bool PaperSolver<Scalar>::lift() {
  return look_.lift<Scalar>(product(), current(), recorder_.target_trace(), b_);
}

template <Storage Scalar>
bool PaperSolver<Scalar>::promises_nothing(double alpha) const {
  return alpha * (2 - alpha) * look_.norms.difference_squared - 2 * look_.certificate.gap - look_.doubt < -resolution();
}

// Where a promise is empty, where the completed B is not what its certificate says, and where F is known so badly
// beside what is promised (directions at the edge of what the route shows) that another route may know it better.
template <Storage Scalar>
bool PaperSolver<Scalar>::needs_improvement() const {
  if (promises_nothing(alpha_) || (completed_ && look_.inconsistency() > resolution())) return true;
  const double promised =
      alpha_ * (2 - alpha_) * look_.norms.difference_squared - 2 * look_.certificate.gap - look_.doubt;
  return !completed_ && look_.certificate.uncertainty > 0.9 * resolution() && promised < resolution();
}

template <Storage Scalar>
bool PaperSolver<Scalar>::improve_certificate(bool step_follows, std::optional<Status>& end) {
  if (completed_) {
    look_.certificate = compact_;
    doubt_promise();
    completed_ = false;
    range_exhausted_ = true;  // what is left of the range is not worth another pass
    return true;
  }
  if (regularised_) {
    // Completion may have extended the data.
    const Index q = look_.basis.cols;
    const Small theta = look_.data.theta.topLeftCorner(q, q), coordinates = look_.data.coordinates.topRows(q);
    make_certificate(theta, coordinates, look_.basis, null_rule(route_), 0, look_.certificate);
    doubt_promise();
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

template <Storage Scalar>
std::optional<Status> PaperSolver<Scalar>::certify_by(Route route, bool step_follows) {
  route_ = route;
  completed_ = false;
  std::swap(look_.basis, previous_basis_);
  if (route == Route::gram) {
    make_scaled_basis<Scalar>(current(), q_, look_.basis, panels_);
  } else {
    make_basis<Scalar>(current(), q_, look_.basis, panels_);
  }
  if (!look_.basis.finite) return Status::not_finite;

  const double error = may_keep_product_ && look_.basis.direct ? kept_product_error(look_.basis) : most_kept_error + 1;
  if (error <= most_kept_error) {
    kept_error_ = std::max(1.0, error);
    by_operator_.advance((1 - step_alpha_) * previous_basis_.r * look_.basis.inverse,
                         sigma_q_b_.leftCols(basis_b_.cols), step_alpha_ * basis_b_.r * look_.basis.inverse);
    by_operator_.form_again(q_.leftCols(look_.basis.cols), look_.basis, look_.data);
  } else {
    const bool carries_probe = probe_ && step_follows;
    if (carries_probe) q_.col(look_.basis.cols) = probe_->column();
    product().form(q_.leftCols(look_.basis.cols + (carries_probe ? 1 : 0)), look_.basis, look_.data);
    kept_error_ = 1;
    recorder_.add_passes(1);
  }
  may_keep_product_ = false;
  recorder_.set_target_trace(target_.trace());
  look_.note_trace(recorder_.target_trace(), target_.dim());
  if (std::string objection = objection_to(look_.data, recorder_.target_trace(), target_.dim()); !objection.empty()) {
    recorder_.give_reason(std::move(objection));
    return Status::not_a_covariance;
  }
  const double regularization = route == Route::gram ? options_.gram_regularization : 0;
  regularised_ = regularization > 0;
  make_certificate(look_.data.theta, look_.data.coordinates, look_.basis, null_rule(route), regularization,
                   look_.certificate);
  if (!look_.certificate.finite) return Status::not_finite;
  doubt_promise();
  return std::nullopt;
}

// Products with T leave no doubt: X = Q_A is orthonormal, and B is T times it.
template <Storage Scalar>
void PaperSolver<Scalar>::doubt_promise() {
  look_.doubt = look_.data.w_gram.size() > 0 ? promise_doubt(look_.data.w_gram, look_.basis, look_.certificate) : 0;
}

template <Storage Scalar>
void PaperSolver<Scalar>::complete_certificate(Index k) {
  const Random random(options_.seed, completion_stream + static_cast<std::uint64_t>(k));
  compact_ = look_.certificate;
  const Index found =
      complete<Scalar>(product(), q_.leftCols(look_.basis.cols), random, z_, look_.data, look_.certificate);
  recorder_.add_passes(1);
  range_exhausted_ = found == 0;
  completed_ = found > 0;
  if (completed_) doubt_promise();
}

template <Storage Scalar>
StepOutcome PaperSolver<Scalar>::make_step(bool) {
  if (probe_ && !completed_) {
    const double swapped = look_.norms.difference_squared + probe_gain_;
    if (probe_gain_ > look_.norms.difference_squared) {
      probe_->swap(current(), b_, next());
      const double step_squared = kernels::blend_norms<Scalar>(current(), next()).difference_squared;
      return {StepMade{1, step_squared, swapped - 2 * look_.certificate.gap,
                       std::max(0.0, look_.remainder - probe_gain_), look_.doubt}};
    }
    probe_->keep();
  }
  double alpha = searches_line() ? search_line() : alpha_;
  // alpha = 1 promises most. Where even that is nothing the step is on trial: its end is evaluated in any case.
  on_trial_ = false;
  if (alpha > 1 && alpha < 2 && promises_nothing(alpha)) step_alpha_ = alpha = 1;
  if (alpha > 0 && alpha < 2 && promises_nothing(alpha)) {
    if (look_.norms.difference_squared <= 2 * resolution())
      return {std::nullopt, Status::converged, "no step descends by more than rounding"};
    on_trial_ = true;
  }
  taken_ = {alpha, look_.norms.difference_squared, look_.certificate.gap, look_.remainder, look_.doubt};
  kernels::blend<Scalar>(current(), b_, alpha, next());
  return {step_to(alpha)};
}

// F(Y + t (B - Y)) need not rise for a small t where it rose for a larger one.
template <Storage Scalar>
StepOutcome PaperSolver<Scalar>::shorten_step() {
  const double from = taken_.alpha;
  if (taken_.shortened == most_shortened) {
    current_ = previous_;
    return {std::nullopt, Status::certificate_failed,
            "the certificate is too inexact to promise that a step descends, and none was found that does"};
  }
  ++taken_.shortened;
  taken_.alpha = from > 1 ? 1 : from * shorter;
  // Y_k + (alpha/from) (Y_{k+1} - Y_k), in place.
  kernels::blend<Scalar>(iterates_[previous_], iterates_[current_], taken_.alpha / from, iterates_[current_]);
  may_keep_product_ = false;
  return {step_to(taken_.alpha)};
}

// What a plain step of that alpha from the iterate of taken_ promises.
template <Storage Scalar>
StepMade PaperSolver<Scalar>::step_to(double alpha) const {
  const double d2 = taken_.difference_squared;
  const bool promises = alpha > 0 && alpha < 2;
  return {alpha, alpha * alpha * d2, promises ? alpha * (2 - alpha) * d2 - 2 * taken_.gap : not_a_number,
          (1 - alpha) * (1 - alpha) * d2 + taken_.remainder, taken_.doubt};
}

template <Storage Scalar>
double PaperSolver<Scalar>::search_line() {
  // The pass is made on a basis of B, not on B: unit columns stay in range, and the product of the next basis, which is
  // nearly a combination of both bases with coefficients of order one, keeps the accuracy of a fresh one.
  make_basis<Scalar>(b_, q_b_, basis_b_, panels_);
  const Index q = look_.basis.cols, q_b = basis_b_.cols;
  if (!basis_b_.finite || q_b == 0) return 1;
  target_.apply(q_b_.leftCols(q_b), sigma_q_b_.leftCols(q_b));
  recorder_.add_passes(1);

  Segment s;
  const double target_unit = look_.data.target_norm > 0 ? look_.data.target_norm : 1;
  const double y_unit = std::sqrt(basis_b_.y_squared);
  s.unit = std::sqrt(target_unit) / y_unit;
  const Small r = look_.basis.r / y_unit, r_b = basis_b_.r / y_unit, c = look_.data.coordinates / y_unit;
  Small q_sigma_b, b_sigma_b, y_dot_b;
  kernels::gram<Scalar>(q_.leftCols(q), sigma_q_b_.leftCols(q_b), q_sigma_b, panels_);
  kernels::gram<Scalar>(q_b_.leftCols(q_b), sigma_q_b_.leftCols(q_b), b_sigma_b, panels_);
  kernels::gram<Scalar>(current(), b_, y_dot_b, panels_);
  const Small yb = r.transpose() * q_sigma_b * r_b, bb = r_b.transpose() * b_sigma_b * r_b;
  s.yy = c.transpose() * look_.data.theta * c / target_unit;
  s.yb = (yb + yb.transpose()) / target_unit;
  s.bb = 0.5 * (bb + bb.transpose()) / target_unit;
  s.y_squared = look_.basis.y_squared / y_unit / y_unit;
  s.b_squared = 1;
  s.y_dot_b = y_dot_b.trace() / y_unit / y_unit;
  // Rounding of F from G: eps ||G|| under a square root, whose slope is that of the smallest eigenvalue.
  const double roots = eps() * look_.certificate.nuclear_norm * std::sqrt(look_.certificate.condition);
  s.noise = (2 * resolution() + 2 * static_cast<double>(r.cols()) * roots) / y_unit / y_unit;
  step_alpha_ = best_step(s);
  // W+ is a combination of W and Sigma Q_B: an operator route is needed.
  may_keep_product_ = route_ == Route::qr || route_ == Route::gram;
  return step_alpha_;
}

// The rounding of W+ = W x + Sigma Q_B x_b, in units of that of a fresh product with unit columns, x and x_b being the
// coordinates of the next basis in the two. The second term is the rounding of the coordinates themselves.
template <Storage Scalar>
double PaperSolver<Scalar>::kept_product_error(const Basis& to) const {
  const auto longest = [](const Small& x) { return x.cols() > 0 ? x.colwise().norm().maxCoeff() : 0.0; };
  const Small x = previous_basis_.r * to.inverse, x_b = basis_b_.r * to.inverse;
  const Small steep = previous_basis_.r.cwiseAbs() * to.inverse.cwiseAbs();
  return std::abs(1 - step_alpha_) * kept_error_ * longest(x) + std::abs(step_alpha_) * longest(x_b) +
         longest(steep) * eps64 / eps() / 4;
}

template class PaperSolver<float>;
template class PaperSolver<double>;

}  // namespace itspace
