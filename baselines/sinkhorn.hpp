// SPDX-License-Identifier: Apache-2.0
//
// Entropic optimal transport between samples (Cuturi 2013), in the log domain, and what the paper makes of it: every
// source sample moves to its barycentric projection, and the covariance of the moved samples, truncated to rank r, is
// the iterate. Between two rows of the trace lie `iterations_per_step` Sinkhorn iterations.
#pragma once

#include "baselines/timed_result.hpp"

#include <cstdint>
#include <limits>

namespace itspace::baselines {

struct SinkhornOptions {
  Index rank = 16;
  Index steps = 20;
  Index iterations_per_step = 10;
  double epsilon = 0.01;  // regularisation, as a share of the mean cost ||x_i - y_j||^2
  OnStep<double> on_step = {};
};

// Trace::steps[i].passes counts here what takes the place of a d x d matrix: two sweeps over the n x m plan for every
// iteration and one for the projection, and the sweeps over the moved samples that their truncation makes.

// The state of the iteration, for those who want the plan itself: P_ij = exp((f_i + g_j - c_ij)/epsilon) a_i b_j with
// uniform weights a_i = 1/n, b_j = 1/m.
class Sinkhorn {
 public:
  // @pre both have rows and the same number of columns; epsilon > 0 (a share of the mean cost).
  Sinkhorn(const ConstBlockView<double>& source, const ConstBlockView<double>& target, double epsilon);

  void iterate(Index times);
  Small plan() const;                          // n x m
  double marginal_error() const;               // ||P 1 - a||_1 + ||P' 1 - b||_1
  double epsilon() const { return epsilon_; }  // absolute
  // Every source sample at the mean of where its mass goes, n x d.
  Block<double> barycentric_projection() const;

 private:
  void update_source_potential();
  void update_target_potential();
  Small kernel() const;

  Small target_;
  Small scaled_cost_;  // c_ij/epsilon
  double epsilon_ = 0;
  SmallVector f_, g_;  // the potentials over epsilon
  double last_change_ = std::numeric_limits<double>::infinity();
};

// On the samples themselves; both sets are centred first, as the covariances are.
TimedResult sinkhorn(const ConstBlockView<double>& source, const ConstBlockView<double>& target,
                     const SinkhornOptions& options);

// On samples drawn from N(0, X_0) and N(0, Sigma), `samples` of each.
TimedResult sinkhorn_gaussian(const ConstBlockView<double>& start, const ConstBlockView<double>& target, Index samples,
                              std::uint64_t seed, const SinkhornOptions& options);

// The covariance that N(0, a) is moved to by the barycentric projection of the entropic plan to N(0, b), in closed form
// (Janati, Muzellec, Peyre, Cuturi 2020): C' a^(-1) C with C = 1/2 a^(1/2) (4 a^(1/2) b a^(1/2) + s^4 I)^(1/2)
// a^(-1/2) - s^2/2 I and epsilon = 2 s^2. What sinkhorn_gaussian tends to with many samples. @pre a positive definite.
Small entropic_gaussian_covariance(const Small& a, const Small& b, double epsilon);

}  // namespace itspace::baselines
