// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/align_impl.hpp"
#include "core/barycenter.hpp"
#include "core/objection.hpp"
#include "core/product_impl.hpp"
#include "core/shuffle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace barycenter_detail {

// Streams of the seed. The first start has that of align().
inline constexpr std::uint64_t start_stream = std::uint64_t(1) << 32, shuffle_stream = std::uint64_t(1) << 33;

// A step that promises nothing and does not descend is shortened by this, so many times.
inline constexpr double shorter = 0.25;
inline constexpr int most_shortened = 3;

}  // namespace barycenter_detail

template <Space S>
BarycenterSolver<S>::BarycenterSolver(S& space, const std::vector<BasicTargetRef<S>>& targets,
                                      const Eigen::VectorXd& shares, Index rank, const BarycenterOptions& options)
    : space_(space),
      options_(options),
      dim_(targets.front().dim()),
      rank_(rank),
      count_(static_cast<Index>(targets.size())),
      alpha_(options.step_size.resolve(options.steps)),
      q_(space.make_block(dim_, rank)),
      b_(space.make_block(dim_, rank)) {
  members_.reserve(targets.size());
  for (Index i = 0; i < count_; ++i)
    if (shares(i) > 0) members_.emplace_back(space, targets[static_cast<std::size_t>(i)], i, shares(i));
  by_operator_ = std::make_unique<OperatorProduct<S>>(members_.front().run, rank, 0, false);
  for (Block& mean : means_) mean = space.make_block(dim_, rank);
  if (uses_subsets()) subset_mean_ = space.make_block(dim_, rank);
  objectives_ = Eigen::VectorXd::Constant(count_, not_a_number);
}

template <Space S>
void BarycenterSolver<S>::Mean::add(const ConstView& image, double weight, double length_bound, double eps) {
  total_ += weight;
  longest_ = std::max(longest_, length_bound);
  if (total_ == weight) {
    space_.copy(image, out_);
  } else {
    space_.blend(out_, image, weight / total_, out_);
  }
  // Each blend rounds once, and what comes later damps it.
  rounding_ += total_ * eps * longest_;
}

template <Space S>
typename S::Block BarycenterSolver<S>::make_random_start(const Random& random) {
  Block omega = space_.make_block(dim_, rank_);
  Block start = space_.make_block(dim_, rank_);
  Block image = members_.front().run.target.make_image(dim_, rank_);
  space_.fill_normal(random, omega);
  space_.scale_columns(omega, SmallVector::Constant(rank_, 1 / std::sqrt(static_cast<double>(dim_))));
  Mean mean(space_, start);
  double trace = 0;
  for (Member& member : members_) {
    member.run.target.apply(omega, image);
    if (space_.is_poisoned(image)) return omega;  // the first pass says what is wrong
    mean.add(image, member.weight, 0, eps());
    trace += member.weight * member.run.target.trace();
  }
  scale_to_trace<S>(space_, start, trace);
  return start;
}

template <Space S>
BasicBarycenter<S> BarycenterSolver<S>::run(Block start, const BasicOnStep<S>& on_step) {
  AlignOptions loop;
  loop.steps = options_.steps;
  loop.keep_iterates = options_.keep_iterates;
  const bool fixed_alpha = !uses_subsets();
  recorder_.emplace(dim_, rank_, precision_name<Scalar>(), fixed_alpha ? std::optional(alpha_) : std::nullopt,
                    options_.tolerance, Solver::paper, members_.front().run.begin);
  current_ = best_ = previous_ = mean_ = 0;
  next_ = 1;
  iterates_ = {std::move(start), space_.make_block(dim_, rank_), space_.make_block(dim_, rank_)};
  best_objectives_ = Eigen::VectorXd::Constant(count_, not_a_number);
  subsets_made_ = steps_made_ = 0;
  may_use_products_ = true;
  by_subsets_ = false;
  version_ = version();
  BasicBarycenter<S> result;
  static_cast<BasicResult<S>&>(result) = run_solver(space_, dim_, *this, loop, on_step);
  result.trace.solver = "barycenter";
  result.objectives = best_objectives_;
  return result;
}

template <Space S>
Index BarycenterSolver<S>::passes() const {
  Index passes = 0;
  for (const Member& member : members_) passes += member.run.target.passes();
  return passes;
}

// Any change of any target changes it: versions only grow.
template <Space S>
Index BarycenterSolver<S>::version() const {
  Index version = 0;
  for (const Member& member : members_) version += member.run.target.version();
  return version;
}

template <Space S>
void BarycenterSolver<S>::keep_best() {
  best_ = current_;
  best_objectives_ = objectives_;
}

template <Space S>
Product<S>& BarycenterSolver<S>::product_of(Member& member) {
  if (member.route == Route::factor) {
    if (!member.by_factor) member.by_factor = std::make_unique<FactorProduct<S>>(member.run, rank_, false);
    return *member.by_factor;
  }
  by_operator_->aim_at(member.run.target);
  return *by_operator_;
}

template <Space S>
std::optional<Status> BarycenterSolver<S>::certify_by(Member& member, Route route) {
  member.route = route;
  Product<S>& product = product_of(member);
  product.form(columns(q_, point_.basis.cols), point_.basis, point_.data);
  const double trace = member.run.target.trace();
  point_.note_trace(trace, dim_);
  if (std::string objection = objection_to(point_.data, trace, dim_, storage()); !objection.empty()) {
    recorder_->give_reason(text("target ", member.index, " (the first is 0): ", objection));
    return Status::not_a_covariance;
  }
  make_certificate(point_.data.theta, point_.data.coordinates, point_.basis,
                   point_.null_rule(route, product.energy_noise(), eps(), dim_), 0, point_.certificate,
                   may_use_products_);
  if (point_.certificate.finite && std::isfinite(trace)) return std::nullopt;
  recorder_->give_reason(
      text("a product with target ", member.index, " (the first is 0), or its trace, is not finite"));
  return Status::not_finite;
}

template <Space S>
std::optional<Status> BarycenterSolver<S>::certify(Member& member, std::optional<View> image) {
  if (const auto end = certify_by(member, member.route)) return end;
  // Products with the factor may see what products with Sigma lost; once they are needed they stay.
  if (member.route == Route::qr && point_.certificate.rank < rank_ && member.run.target.has_factor())
    if (const auto end = certify_by(member, Route::factor)) return end;
  if (image) product_of(member).lift(point_.certificate, *image);
  return std::nullopt;
}

template <Space S>
std::optional<Status> BarycenterSolver<S>::sweep(bool lifts) {
  at_ = Sweep();
  at_.worst.rank = rank_;
  make_basis(space_, current(), q_, point_.basis);
  if (!point_.basis.finite) return Status::not_finite;
  Mean mean(space_, means_[mean_]);
  for (Member& member : members_) {
    if (const auto end = certify(member, lifts ? std::optional<View>(b_) : std::nullopt)) return end;
    const Certificate& certificate = point_.certificate;
    const double w = member.weight, trace = member.run.target.trace();
    objectives_(member.index) = point_.objective(trace);
    at_.objective += w * objectives_(member.index);
    at_.resolution += w * point_.resolution(storage(), trace);
    at_.trace += w * trace;
    at_.worst.gap += w * certificate.gap;
    at_.worst.feasibility = std::max(at_.worst.feasibility, certificate.feasibility);
    at_.worst.orthogonality = std::max(at_.worst.orthogonality, certificate.orthogonality);
    at_.worst.rank = std::min(at_.worst.rank, certificate.rank);
    at_.by_products |= certificate.by_products;
    at_.several_routes |= at_.route.has_value() && *at_.route != member.route;
    at_.route = member.route;
    if (!lifts) continue;
    mean.add(b_, w, std::sqrt(std::max(0.0, trace)), eps());
    const StepDoubt doubt = step_doubt(point_.images<S>(space_, product_of(member), b_), point_.basis, certificate);
    at_.doubt.at_y += w * doubt.at_y;
    at_.doubt.per_length += w * doubt.per_length;
  }
  if (!lifts) return std::nullopt;
  at_.averaging = mean.rounding();
  at_.norms = space_.blend_norms(current(), means_[mean_]);
  return std::isfinite(at_.norms.b_squared) ? std::nullopt : std::optional(Status::not_finite);
}

template <Space S>
std::optional<Status> BarycenterSolver<S>::evaluate(Index, bool last) {
  if (const Index now = version(); std::exchange(version_, now) != now)
    for (Member& member : members_) member.by_factor.reset();  // a factor may have another number of columns
  if (const auto end = sweep(!last)) return end;
  // Certificates made without a decomposition have a gap of some hundred roundings: near the end that is too much.
  if (!last && at_.by_products && promises_nothing(1)) {
    may_use_products_ = false;
    if (const auto end = sweep(true)) return end;
  }
  recorder_->set_target_trace(at_.trace);
  return recorder_->evaluated(
      at_.worst,
      {at_.objective, at_.resolution, at_.several_routes ? Route::automatic : at_.route.value_or(Route::qr), version_});
}

// Bbar stands for B. Where the averaging of images has rounded it by e the promise suffers by 2 alpha ||Bbar - Y||
// ||e||.
template <Space S>
StepMade BarycenterSolver<S>::step_to(double alpha, const Sweep& from) {
  const double d2 = from.norms.difference_squared, length = alpha * std::sqrt(d2);
  return step_along(alpha, d2, from.worst.gap, from.remainder(), from.doubt.of(length) + 2 * from.averaging * length);
}

template <Space S>
bool BarycenterSolver<S>::promises_nothing(double alpha) const {
  const StepMade step = step_to(alpha, at_);
  return step.promised_descent - step.doubt < -at_.resolution;
}

template <Space S>
StepOutcome BarycenterSolver<S>::make_step(bool) {
  // A target that has changed since Y_k was evaluated: what is known of the old one makes a step, and ends nothing.
  const bool moved = version() != version_;
  double alpha = alpha_;
  if (alpha > 1 && promises_nothing(alpha)) alpha = 1;  // it promises most
  if (!moved && promises_nothing(alpha) && at_.norms.difference_squared <= 2 * at_.resolution)
    return {std::nullopt, Status::converged, "no step descends by more than rounding"};
  shortened_ = 0;
  taken_alpha_ = alpha;
  by_subsets_ = uses_subsets() && make_subset_steps(steps_made_);
  ++steps_made_;
  if (by_subsets_) {
    const double step_squared = space_.blend_norms(current(), next()).difference_squared;
    return {StepMade{not_a_number, step_squared, not_a_number, not_a_number, 0}};
  }
  space_.blend(current(), means_[mean_], alpha, next());
  return {step_to(alpha, at_)};
}

template <Space S>
bool BarycenterSolver<S>::make_subset_steps(Index k) {
  const Index count = static_cast<Index>(members_.size());
  const auto order = shuffled(count, options_.seed, barycenter_detail::shuffle_stream + static_cast<std::uint64_t>(k));
  space_.copy(current(), next());
  for (Index first = 0; first < count; first += options_.subset, ++subsets_made_) {
    make_basis(space_, next(), q_, point_.basis);
    if (!point_.basis.finite) return false;
    Mean mean(space_, subset_mean_);
    for (Index i = first; i < std::min(count, first + options_.subset); ++i) {
      Member& member = members_[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      if (certify(member, View(b_))) return false;
      mean.add(b_, member.weight, 0, eps());
    }
    // Less than all the way: directions that a subset does not see would be lost for good.
    space_.blend(next(), subset_mean_, 2.0 / (static_cast<double>(subsets_made_) + 3), next());
  }
  return true;
}

template <Space S>
void BarycenterSolver<S>::advance() {
  previous_ = current_;
  current_ = next_;
  next_ = 0;
  while (next_ == current_ || next_ == best_) ++next_;
  mean_ = 1 - mean_;
  before_ = at_;
}

// After a step that promised nothing and did not descend. In place of subsets the plain step, which promises; in place
// of a plain one points nearer to Y_k.
template <Space S>
StepOutcome BarycenterSolver<S>::shorten_step() {
  if (std::exchange(by_subsets_, false)) {
    space_.blend(iterates_[previous_], means_[1 - mean_], taken_alpha_, iterates_[current_]);
    return {step_to(taken_alpha_, before_)};
  }
  if (shortened_ == barycenter_detail::most_shortened) {
    current_ = previous_;
    return {std::nullopt, Status::certificate_failed,
            "the certificates are too inexact to promise that a step descends, and none was found that does"};
  }
  ++shortened_;
  const double from = taken_alpha_;
  taken_alpha_ = from > 1 ? 1 : from * barycenter_detail::shorter;
  space_.blend(iterates_[previous_], iterates_[current_], taken_alpha_ / from, iterates_[current_]);
  return {step_to(taken_alpha_, before_)};
}

// All runs of a call. `start`: the first of them, where one was given.
template <Space S>
BasicBarycenter<S> run_barycenter(S& space, const std::vector<BasicTargetRef<S>>& targets,
                                  const BarycenterWeights& weights, std::optional<typename S::Block> start, Index rank,
                                  const BarycenterOptions& options, const BasicOnStep<S>& on_step) {
  std::optional<BasicBarycenter<S>> best;
  std::vector<double> ends;
  Index best_start = 0;
  for (Index s = 0; s < options.starts; ++s) {
    BarycenterSolver<S> solver(space, targets, weights.shares, rank, options);
    const std::uint64_t stream = s == 0 ? 0 : barycenter_detail::start_stream + static_cast<std::uint64_t>(s);
    auto from = s == 0 && start ? std::move(*start) : solver.make_random_start(Random(options.seed, stream));
    BasicBarycenter<S> result = solver.run(std::move(from), on_step);
    const Trace& trace = result.trace;
    const bool stopped = trace.status == Status::stopped;
    ends.push_back(trace.steps[static_cast<std::size_t>(trace.best)].objective);
    // A run that failed counts only where none did better.
    if (!best || (failed(best->status()) && !failed(result.status())) ||
        (failed(best->status()) == failed(result.status()) &&
         ends.back() < ends[static_cast<std::size_t>(best_start)])) {
      best = std::move(result);
      best_start = s;
    }
    if (stopped) break;
  }
  best->weights = weights.shares;
  best->weights_normalised = weights.normalised;
  best->start_objectives = std::move(ends);
  best->best_start = best_start;
  return std::move(*best);
}

}  // namespace itspace
