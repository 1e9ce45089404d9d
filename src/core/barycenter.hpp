// SPDX-License-Identifier: Apache-2.0
//
// The averaged majorizer step: one basis of Y for all targets, one product with each, their images averaged as they
// come. No more than one image is held at a time, whatever the number of targets.
#pragma once

#include <itspace/barycenter.hpp>

#include "core/evaluated_point.hpp"
#include "core/product.hpp"
#include "core/recorder.hpp"
#include "core/run_context.hpp"
#include "core/solver_loop.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace itspace {

// The weights divided by their sum; equal ones where none are given. Throws std::invalid_argument.
struct BarycenterWeights {
  Eigen::VectorXd shares;
  bool normalised = false;
};
ITSPACE_API BarycenterWeights make_barycenter_weights(const Eigen::VectorXd& given, Index targets);

// Throws std::invalid_argument where the options contradict themselves.
ITSPACE_API void check_barycenter_options(const BarycenterOptions& options);

// The rounding in what a step promises, as far as it comes from one target: a direction v of its certificate that may
// be too long by d/2 spoils the promise by 2 d ||B_i v|| ||Y+ v||, and ||Y+ v|| <= ||Y v|| + ||Y+ - Y||.
struct StepDoubt {
  double at_y = 0;        // sum 2 d ||B_i v|| ||Y v||
  double per_length = 0;  // sum 2 d ||B_i v||

  double of(double length) const { return at_y + per_length * length; }
};
ITSPACE_API StepDoubt step_doubt(const SmallVector& images, const Basis& basis, const Certificate& certificate);

template <Space S>
class BarycenterSolver {
 public:
  using Scalar = typename S::Scalar;
  using Block = typename S::Block;
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  // @pre at least one target, all of the dimension of the first, and as many shares, which sum to one.
  BarycenterSolver(S& space, const std::vector<BasicTargetRef<S>>& targets, const Eigen::VectorXd& shares, Index rank,
                   const BarycenterOptions& options);

  // sum_i w_i Sigma_i Omega, scaled. One pass over each target.
  Block make_random_start(const Random& random);
  BasicBarycenter<S> run(Block start, const BasicOnStep<S>& on_step);

  // What run_solver() asks for.
  Recorder& recorder() { return *recorder_; }
  Index rank() const { return rank_; }
  Index passes() const;
  std::optional<Status> evaluate(Index k, bool last);
  const Block& current() const { return iterates_[current_]; }
  void keep_best();
  Block take_best() { return std::move(iterates_[best_]); }
  StepOutcome make_step(bool next_is_last);
  void advance();
  StepOutcome shorten_step();

 private:
  struct Member {
    Member(S& space, BasicTargetRef<S> target, Index place, double share)
        : run(space, target), index(place), weight(share) {}

    RunContext<S> run;
    Index index;    // among the targets that were given
    double weight;  // > 0
    Route route = Route::qr;
    std::unique_ptr<FactorProduct<S>> by_factor;  // made when it is first needed
  };
  // What a sweep over all targets shows at an iterate.
  struct Sweep {
    double objective = 0, resolution = 0, trace = 0;
    Certificate worst;  // gap: the weighted sum; feasibility and orthogonality: the largest; rank: the least
    StepDoubt doubt;
    BlendNorms norms;          // of Y and Bbar
    double averaging = 0;      // rounding of Bbar by its own summation, a bound of its norm
    bool by_products = false;  // some certificate was made without a decomposition
    std::optional<Route> route;
    bool several_routes = false;

    double remainder() const { return std::max(0.0, trace - norms.b_squared); }
  };
  // Averages images as they come: the mean of the first i, in the block it was given.
  class Mean {
   public:
    Mean(S& space, View out) : space_(space), out_(out) {}
    void add(const ConstView& image, double weight, double length_bound, double eps);
    double rounding() const { return total_ > 0 ? rounding_ / total_ : 0; }

   private:
    S& space_;
    View out_;
    double total_ = 0, longest_ = 0, rounding_ = 0;
  };

  std::optional<Status> sweep(bool lifts);
  // The certificate of one target at the Y whose basis is in point_ and q_; with `image`, up to B_i. A status ends the
  // run.
  std::optional<Status> certify(Member& member, std::optional<View> image);
  std::optional<Status> certify_by(Member& member, Route route);
  Product<S>& product_of(Member& member);
  // next() by a step for each subset of the targets; false where one was not to be had.
  bool make_subset_steps(Index k);

  // What a plain step of that alpha promises from there.
  static StepMade step_to(double alpha, const Sweep& from);
  bool promises_nothing(double alpha) const;
  Index version() const;
  bool uses_subsets() const { return options_.subset > 0 && options_.subset < static_cast<Index>(members_.size()); }
  Block& next() { return iterates_[next_]; }
  View columns(Block& block, Index count) { return space_.columns(block, 0, count); }
  static constexpr double eps() { return static_cast<double>(std::numeric_limits<Scalar>::epsilon()); }
  StorageRounding storage() const { return storage_rounding<Scalar>(dim_); }

  S& space_;
  BarycenterOptions options_;
  Index dim_, rank_, count_;
  double alpha_;
  std::vector<Member> members_;  // those with a weight; never resized, for products refer to them
  std::optional<Recorder> recorder_;

  // Three blocks take turns: Y_k, Y_{k+1}, and the best so far where that is neither. Two for Bbar at Y_k and Y_{k-1}.
  std::array<Block, 3> iterates_;
  std::size_t current_ = 0, next_ = 1, best_ = 0, previous_ = 0;
  std::array<Block, 2> means_;
  std::size_t mean_ = 0;
  Block q_, b_, subset_mean_;
  std::unique_ptr<OperatorProduct<S>> by_operator_;  // of all targets in turn

  EvaluatedPoint point_;  // of the target at hand; its basis is that of all
  Sweep at_, before_;     // at Y_k and Y_{k-1}
  bool may_use_products_ = true;
  Index version_ = 0, subsets_made_ = 0, steps_made_ = 0;
  Eigen::VectorXd objectives_, best_objectives_;

  // The step that made the current iterate from the previous one.
  double taken_alpha_ = 1;
  int shortened_ = 0;
  bool by_subsets_ = false;
};

}  // namespace itspace
