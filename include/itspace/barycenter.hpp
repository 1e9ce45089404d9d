// SPDX-License-Identifier: Apache-2.0
//
// barycenter: one covariance of rank r for many targets, with a certificate at every step.
//
// The Bures-Wasserstein barycenter of Sigma_1 .. Sigma_m with weights w_i minimises F(Y) = sum_i w_i W2^2(YY',
// Sigma_i). Each step makes one pass over each target,
//
//     B_i = Sigma_i^(1/2) polar(Sigma_i^(1/2) Y),   Bbar = sum_i w_i B_i,   Y+ = (1 - alpha) Y + alpha Bbar,
//
// without a matrix square root and without a d x d matrix that was not there before, and promises
// F(Y+) <= F(Y) + 2 sum_i w_i eps_i - alpha (2 - alpha) ||Bbar - Y||^2, checked as it runs. For r = d and alpha = 1 it
// is the fixed-point iteration of Alvarez-Esteban et al.; for r < d the problem is not convex, so that several starts
// may end in several places.
//
//     std::vector<TargetRef<double>> targets = {first, second, third};   // of any kinds and ranks
//     auto result = itspace::barycenter<double>(targets, {}, 16);
//     result.factor;       // d x 16
//     result.objectives;   // W2^2(YY', Sigma_i) for each target
//
// Misuse (sizes, weights, ranges) throws std::invalid_argument. What the numbers do is an outcome: result.trace.status.
#pragma once

#include <itspace/align.hpp>
#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace itspace {

struct BarycenterOptions {
  Index steps = 50;
  StepSize step_size = {};  // no line search: it would take a second pass over every target in each step
  double tolerance = 1e-6;  // converged when F(Y_k) - F(Y_{k+1}) <= tolerance * F(Y_k); 0: never

  // For many targets: a step goes through them in random order, so many at a time, and moves after each such subset
  // (by 2/(t + 3), t the subsets so far). F is then evaluated on all targets, a second pass over each. Nothing is
  // promised of such a step; it is certified where F did not rise, and where it did the step is replaced by the plain
  // one from the same iterate, with its promise. 0: plain steps.
  Index subset = 0;

  Index starts = 1;  // runs from so many starts, the one that ends lowest counts; all but a given one are random

  bool keep_iterates = false;
  std::uint64_t seed = 0;  // for the random starts and the order of subsets
};

template <Space S>
struct BasicBarycenter : BasicResult<S> {
  // The trace is that of the best start, with solver "barycenter". Its objective is F, its target_trace is
  // sum_i w_i tr Sigma_i, certificate_gap and resolution are weighted sums, feasibility and orthogonality the worst of
  // all targets, gram_rank the least; passes counts sweeps over one target each.
  Eigen::VectorXd weights;               // as used: divided by their sum
  bool weights_normalised = false;       // they were given and did not sum to one, to rounding
  Eigen::VectorXd objectives;            // W2^2(YY', Sigma_i) at the factor; NaN for a weight of 0, which costs no pass
  std::vector<double> start_objectives;  // F at the end of the run from each start
  Index best_start = 0;
};
template <Storage Scalar>
using Barycenter = BasicBarycenter<HostSpace<Scalar>>;

// From the seeded random start Y0 = sum_i w_i Sigma_i Omega, scaled to ||Y0||^2 = sum_i w_i tr Sigma_i (one pass over
// each target, counted). `weights`: one for each target, >= 0 and not all 0; empty: equal.
template <Storage Scalar>
ITSPACE_API Barycenter<Scalar> barycenter(std::type_identity_t<std::span<const TargetRef<Scalar>>> targets,
                                          const Eigen::VectorXd& weights, Index rank,
                                          const BarycenterOptions& options = {},
                                          const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// From an explicit start, d x r. Columns of zeros, or that no target sees, stay as they are.
template <Storage Scalar>
ITSPACE_API Barycenter<Scalar> barycenter(std::type_identity_t<std::span<const TargetRef<Scalar>>> targets,
                                          const Eigen::VectorXd& weights,
                                          const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                          const BarycenterOptions& options = {},
                                          const std::type_identity_t<OnStep<Scalar>>& on_step = {});

}  // namespace itspace
