// SPDX-License-Identifier: Apache-2.0
//
// The methods of the paper's table that carry a full d x d covariance. Each moves X_0 toward Sigma and shows, after
// every step, the rank-r truncation of where it is. They are written as their users would write them today: symmetric
// eigendecompositions and products from LAPACK and BLAS, whatever depends on the target alone computed once, and the
// truncation by a partial eigensolver. docs/baselines.md has the definitions, costs and step rules in one table.
#pragma once

#include "baselines/timed_result.hpp"

namespace itspace::baselines {

// The target with its eigendecomposition, made once and shared by the methods that need a root, a logarithm or an
// inverse. Where lambda_min <= 0 they see Sigma + delta I, delta = -lambda_min + 1e-8 (appendix D.1). Below d eps
// lambda_max an eigenvalue counts as 0, whatever sign rounding gave it. A start is treated by the same rule.
class SpectralTarget {
 public:
  explicit SpectralTarget(const ConstBlockView<double>& sigma);

  Index dim() const { return sigma_.rows(); }
  const Small& sigma() const { return sigma_; }  // as given
  Small shifted() const;                         // Sigma + delta I
  const Small& root() const { return root_; }    // (Sigma + delta I)^(1/2)
  const Small& vectors() const { return vectors_; }
  const SmallVector& values() const { return values_; }  // of Sigma + delta I, ascending, all > 0
  double shift() const { return shift_; }                // delta
  double seconds() const { return seconds_; }            // what the preparation took

 private:
  Small sigma_, root_, vectors_;
  SmallVector values_;
  double shift_ = 0, seconds_ = 0;
};

struct DenseOptions {
  Index rank = 16;
  Index steps = 20;
  // Called after every row, outside the clocks; may stop the run.
  OnStep<double> on_step = {};
};

// Paths from X_0 to Sigma, sampled at t_k = k/K.
//
// Bures-Wasserstein: X_t = ((1-t) I + t T) X_0 ((1-t) I + t T), T the optimal map from X_0 to Sigma.
TimedResult bw_geodesic(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options);
// Euclidean: X_t = (1-t) X_0 + t Sigma.
TimedResult euclidean_path(const SpectralTarget& target, const ConstBlockView<double>& start,
                           const DenseOptions& options);
// Log-Euclidean: X_t = exp((1-t) log X_0 + t log Sigma).
TimedResult log_euclidean_path(const SpectralTarget& target, const ConstBlockView<double>& start,
                               const DenseOptions& options);
// Affine-invariant: X_t = Sigma^(1/2) (Sigma^(-1/2) X_0 Sigma^(-1/2))^(1-t) Sigma^(1/2).
TimedResult airm_path(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options);

// Gradient descent on f = F/2 = W2^2(X, Sigma)/2 in the Bures-Wasserstein geometry: its gradient at X is I - T, T the
// optimal map from X to Sigma, and X+ = ((1-eta) I + eta T) X ((1-eta) I + eta T).
struct GradientOptions {
  double step = 0.9;         // eta at the first try of every step, in (0, 1]
  bool backtracking = true;  // halve eta until F(X+) <= F(X) - 2 armijo eta ||grad f||^2; every trial is a check
  double armijo = 1e-4;      // ||grad f||^2 = tr((T-I) X (T-I))
};
TimedResult bw_gradient_descent(const SpectralTarget& target, const ConstBlockView<double>& start,
                                const DenseOptions& options, const GradientOptions& gradient);

// CORAL (Sun, Feng, Saenko 2016): whitening and recoloring in one shot, A = Sigma^(1/2) X_0^(-1/2), X = A X_0 A'. One
// row after the start, whatever options.steps says.
TimedResult coral(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options);

// Pi_r of a dense symmetric matrix by a partial eigensolver; adds the sweeps it made to `passes`.
Block<double> leading_factor(const Small& x, Index rank, Index& passes);

}  // namespace itspace::baselines
