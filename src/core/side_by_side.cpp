// SPDX-License-Identifier: Apache-2.0
#include "core/side_by_side.hpp"

#include "kernels/lanes.hpp"
#include "kernels/step_sweeps.hpp"

#include "core/basis.hpp"
#include "core/certificate_by_products.hpp"
#include "core/paper_solver.hpp"
#include "core/polar.hpp"
#include "core/recorder.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace itspace {
namespace {

// The limits of certificate.cpp up to which nothing special is to be done.
constexpr double most_doubt = 1e-2, clear = 4;

// Columns that are further from orthonormal are those of an ill-conditioned theta. What is missing is in the gap.
constexpr double near_orthonormal = 1e-8;

// Small matrices are not scaled here: sizes far from one are the general solver's.
bool in_range(double x) {
  constexpr double smallest = 1e-60, largest = 1e60;
  return x > smallest && x < largest;
}

std::span<const kernels::LanePolynomial> lane_polynomials() {
  static const std::vector<kernels::LanePolynomial> all = [] {
    std::vector<kernels::LanePolynomial> made;
    for (const OddPolynomial& p : polar_polynomials()) made.push_back({p.a, p.b, p.c, p.lowest});
    return made;
  }();
  return all;
}

// The small matrices of the runs of one group, by lanes.
class Lanes {
 public:
  Lanes(Index rank, kernels::Arrangement arrangement)
      : rank_(rank),
        count_(kernels::lane_count()),
        places_{arrangement, rank},
        row_(places_.row_stride()),
        memory_(1, matrices * rank * row_ + scalars * count_) {
    memory_.setZero();
    // Lanes without a run work on the identity.
    for (Index lane = 0; lane < (arrangement == kernels::Arrangement::alone ? 1 : count_); ++lane)
      for (Index j = 0; j < rank; ++j) at(gram, j, j, lane) = at(theta, j, j, lane) = at(w_gram, j, j, lane) = 1;
  }

  enum Name { gram, r, inverse, theta, w_gram, m, matrices };
  enum ScalarName {
    inverse_length,
    noise,
    nuclear_norm,
    gap,
    orthogonality,
    asymmetry,
    theta_asymmetry,
    theta_size,
    largest,
    inverse_norm,
    columns_squared,
    columns_dot_r,
    doubt,
    scalars
  };

  void put(Name name, const Small& from, Index lane) {
    for (Index j = 0; j < rank_; ++j)
      for (Index i = 0; i < rank_; ++i) at(name, i, j, lane) = from(i, j);
  }
  void get(Name name, Index lane, Small& to) {
    for (Index j = 0; j < rank_; ++j)
      for (Index i = 0; i < rank_; ++i) to(i, j) = at(name, i, j, lane);
  }
  double& scalar(ScalarName name, Index lane) { return vector(name)[lane]; }

  void make_bases() {
    kernels::lane_basis(places_.arrangement, rank_, matrix(gram), matrix(r), matrix(inverse), vector(inverse_length));
  }
  void make_certificates() {
    kernels::lane_certificate(places_.arrangement, rank_,
                              {matrix(theta), matrix(w_gram), matrix(r), matrix(inverse), vector(noise)},
                              lane_polynomials(),
                              {matrix(m), vector(nuclear_norm), vector(gap), vector(orthogonality), vector(asymmetry),
                               vector(theta_asymmetry), vector(theta_size), vector(largest), vector(inverse_norm),
                               vector(columns_squared), vector(columns_dot_r), vector(doubt)});
  }

 private:
  double* matrix(Name name) { return memory_.data() + name * rank_ * row_; }
  double* vector(ScalarName name) { return memory_.data() + matrices * rank_ * row_ + name * count_; }
  double& at(Name name, Index i, Index j, Index lane) {
    return matrix(name)[i * row_ + places_.entry(j, lane, count_)];
  }

  Index rank_, count_;
  kernels::LanePlaces places_;
  Index row_;
  Block<double> memory_;  // aligned for vectors
};

// One run: its iterates, and what the pass at the current one shows.
template <Storage Scalar>
class Runner {
 public:
  using Host = HostSpace<Scalar>;

  Runner(SmallRun<Scalar>& run, Index rank, const AlignOptions& options, const OnStep<Scalar>& on_step, Lanes& lanes,
         Index lane)
      : run_(run),
        space_(run.context->space),
        target_(run.context->target),
        rank_(rank),
        options_(options),
        on_step_(on_step),
        lanes_(lanes),
        lane_(lane),
        alpha_(options.step_size.resolve(options.steps)),
        version_(target_.version()),
        recorder_(target_.dim(), rank, precision_name<Scalar>(), alpha_, options.tolerance, Solver::paper,
                  run.context->begin),
        q_(target_.dim(), rank),
        w_(target_.dim(), rank),  // a target that adds to it leaves the NaN it was poisoned with, whatever else it held
        b_(target_.dim(), rank),
        small_(rank, rank) {
    iterates_[0] = std::move(run.start);
    for (std::size_t i = 1; i < (options.steps > 1 ? 3u : 2u); ++i) iterates_[i] = Block<Scalar>(target_.dim(), rank);
    recorder_.iterate_made(std::nullopt, target_.passes());
  }

  bool is_done() const { return done_; }

  // Y'Y to the lanes.
  void measure() {
    if (target_.version() != version_) return hand_over();
    if (is_last() && !options_.evaluate_last) {
      recorder_.not_evaluated(version_);
      announce(std::nullopt);
      return;
    }
    if (!has_gram_) {
      const GramRequest<ConstBlockView<Scalar>> request(current(), small_);
      space_.grams({&request, 1});
    }
    y_squared_ = small_.trace();
    lanes_.put(Lanes::gram, small_, lane_);
  }

  // The pass: W = Sigma Q, and its small matrices to the lanes.
  void pass() {
    if (!in_range(y_squared_) || !(lanes_.scalar(Lanes::inverse_length, lane_) <= accurate_inverse)) return hand_over();
    lanes_.get(Lanes::inverse, lane_, small_);
    space_.multiply(current(), small_, q_, Write::assign);
    target_.apply(q_, w_);
    const GramRequest<ConstBlockView<Scalar>> requests[] = {{q_, w_, small_}, {w_, w_gram_}};
    space_.grams(requests);
    const double trace = target_.trace();
    recorder_.set_target_trace(trace);
    const double image = w_gram_.diagonal().maxCoeff();
    // NaN fails both.
    if (!in_range(trace) || !(image < std::numeric_limits<double>::max())) return hand_over();
    seen_trace_ = small_.trace();
    target_norm_ = std::max(std::sqrt(image), trace / std::sqrt(static_cast<double>(target_.dim())));
    lanes_.put(Lanes::theta, small_, lane_);
    lanes_.put(Lanes::w_gram, w_gram_, lane_);
    lanes_.scalar(Lanes::noise, lane_) = noise();
  }

  // What the certificate says, and the step.
  void judge() {
    if (!is_plain()) return hand_over();
    const Certificate certificate = make_certificate();
    const double trace = recorder_.target_trace();
    const double resolution = resolution_of(certificate, y_squared_, trace, storage_rounding<Scalar>(target_.dim()));
    const double objective = objective_of(certificate, y_squared_, trace);
    BlendNorms norms;
    if (!is_last()) {
      lanes_.get(Lanes::m, lane_, small_);
      norms = kernels::multiply_and_norms<Scalar>(w_, small_, current(), b_);
      const double safe = promised_descent(alpha_, norms.difference_squared, certificate.gap) - found(Lanes::doubt);
      const bool known_badly = certificate.uncertainty > 0.9 * resolution && safe < resolution;
      if (!(safe >= -resolution) || known_badly || !std::isfinite(norms.b_squared)) return hand_over();
    }
    const std::optional<Status> end = recorder_.evaluated(certificate, {objective, resolution, Route::qr, version_});
    if (end == Status::certificate_failed) {
      recorder_.discard_row();
      recorder_.iterate_made(made_, target_.passes());
      return hand_over();
    }
    announce(end);
    if (!done_) step(norms);
  }

 private:
  static constexpr double eps = std::numeric_limits<Scalar>::epsilon();

  const Block<Scalar>& current() const { return iterates_[current_]; }
  bool is_last() const { return recorder_.row().index == options_.steps; }
  double noise() const { return 2 * eps * target_norm_; }
  double found(Lanes::ScalarName name) { return lanes_.scalar(name, lane_); }

  // No objection to the target (objection.cpp), and every direction seen clearly (certificate.cpp). NaN fails.
  bool is_plain() {
    const double norm = std::max(target_norm_, found(Lanes::theta_size));
    const double rounding = static_cast<double>(target_.dim() + 16) * std::numeric_limits<float>::epsilon() * norm;
    const double smallest = 1 / found(Lanes::inverse_norm);
    return found(Lanes::theta_asymmetry) <= rounding && 0.99 * seen_trace_ <= recorder_.target_trace() + rounding &&
           found(Lanes::orthogonality) <= near_orthonormal && noise() * found(Lanes::columns_squared) <= most_doubt &&
           smallest > clear * 30 * eps64 * found(Lanes::largest) &&
           smallest > clear * 4 * eps * std::sqrt(target_norm_ * y_squared_);
  }

  Certificate make_certificate() {
    Certificate certificate = certificate_of({.nuclear_norm = found(Lanes::nuclear_norm),
                                              .largest = found(Lanes::largest),
                                              .asymmetry = found(Lanes::asymmetry),
                                              .orthogonality = found(Lanes::orthogonality),
                                              .rounding = noise() * found(Lanes::columns_dot_r)},
                                             rank_);
    certificate.gap = found(Lanes::gap);
    return certificate;
  }

  // The row is complete.
  void announce(std::optional<Status> end) {
    if (recorder_.last_is_best()) best_ = current_;
    if (on_step_ && on_step_(recorder_.row(), current()) == StepAction::stop && !end) end = Status::stopped;
    if (!end && is_last()) end = Status::step_limit;
    if (!end) return;
    run_.result.factor = std::move(iterates_[best_]);
    run_.result.trace = recorder_.finish(*end, target_.passes());
    done_ = true;
  }

  void step(const BlendNorms& norms) {
    std::size_t next = 0;
    while (next == current_ || next == best_) ++next;
    kernels::blend_and_gram<Scalar>(current(), b_, alpha_, iterates_[next], small_);
    has_gram_ = true;
    current_ = next;
    const double remainder = std::max(0.0, recorder_.target_trace() - norms.b_squared);
    made_ = step_along(alpha_, norms.difference_squared, found(Lanes::gap), remainder, found(Lanes::doubt));
    recorder_.iterate_made(made_, target_.passes());
  }

  // At the current iterate, whose row is made and not evaluated.
  void hand_over() {
    UnderWay<Host> state{std::move(recorder_), std::move(iterates_[current_]), {}};
    if (best_ != current_) state.best = std::move(iterates_[best_]);
    run_.result = PaperSolver<Host>(*run_.context, std::move(state), rank_, options_).run(on_step_);
    done_ = true;
  }

  SmallRun<Scalar>& run_;
  Host& space_;
  CountedTarget<Host>& target_;
  Index rank_;
  const AlignOptions& options_;
  const OnStep<Scalar>& on_step_;
  Lanes& lanes_;
  Index lane_;
  double alpha_;
  Index version_;  // of the target; one that changes under way is the general solver's
  Recorder recorder_;

  // Y_k, Y_{k+1}, and the best so far where that is neither.
  std::array<Block<Scalar>, 3> iterates_;
  std::size_t current_ = 0, best_ = 0;
  Block<Scalar> q_, w_, b_;
  Small small_, w_gram_;
  bool has_gram_ = false;  // small_ is that of the current iterate
  double y_squared_ = 0, seen_trace_ = 0, target_norm_ = 0;
  std::optional<StepMade> made_;  // the step to the current iterate
  bool done_ = false;
};

}  // namespace

bool suits_side_by_side(const AlignOptions& options, Index rank) {
  const bool fixed_alpha = options.step_size.kind() != StepSize::Kind::line_search;
  const bool route = options.route == Route::automatic || options.route == Route::qr;
  if (options.solver != Solver::paper || !fixed_alpha || !route || options.probe || options.keep_iterates) return false;
  const double alpha = options.step_size.resolve(options.steps);
  return alpha > 0 && alpha < 2 && rank >= 1 && rank <= kernels::most_lane_columns;
}

template <Storage Scalar>
void run_side_by_side(std::span<SmallRun<Scalar>> runs, Index rank, const AlignOptions& options,
                      const OnStep<Scalar>& on_step) {
  const bool alone = runs.size() == 1;
  const auto at_once = alone ? std::size_t(1) : static_cast<std::size_t>(kernels::lane_count());
  Lanes lanes(rank, alone ? kernels::Arrangement::alone : kernels::Arrangement::side_by_side);
  std::vector<Runner<Scalar>> group;
  for (std::size_t first = 0; first < runs.size(); first += at_once) {
    group.clear();
    group.reserve(at_once);
    const std::size_t count = std::min(at_once, runs.size() - first);
    for (std::size_t i = 0; i < count; ++i)
      group.emplace_back(runs[first + i], rank, options, on_step, lanes, static_cast<Index>(i));
    const auto each = [&](auto part) {
      bool all_done = true;
      for (auto& runner : group) {
        if (!runner.is_done()) (runner.*part)();
        all_done = all_done && runner.is_done();
      }
      return !all_done;
    };
    while (each(&Runner<Scalar>::measure)) {
      lanes.make_bases();
      if (!each(&Runner<Scalar>::pass)) break;
      lanes.make_certificates();
      if (!each(&Runner<Scalar>::judge)) break;
    }
  }
}

template void run_side_by_side(std::span<SmallRun<float>>, Index, const AlignOptions&, const OnStep<float>&);
template void run_side_by_side(std::span<SmallRun<double>>, Index, const AlignOptions&, const OnStep<double>&);

}  // namespace itspace
