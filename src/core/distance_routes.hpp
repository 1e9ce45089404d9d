// SPDX-License-Identifier: Apache-2.0
//
// The routes to the distance of two covariances that are spelled out: cheap ones with a bound on their rounding, and
// the sum of squares behind them. include/itspace/distance.hpp says which comes when.
#pragma once

#include <itspace/block.hpp>
#include <itspace/distance.hpp>

#include "core/dense.hpp"

#include <optional>

namespace itspace {

// A covariance in double with what the routes of its distances need, each made when first asked for.
class PreparedCovariance {
 public:
  // Throws std::invalid_argument unless sigma is square, finite and, up to float's rounding, symmetric. Triangles that
  // differ are averaged, so that it does not depend on the route which of them counts.
  template <Storage Scalar>
  explicit PreparedCovariance(const ConstBlockView<Scalar>& sigma);

  Index dim() const { return sigma_.rows(); }
  double trace() const { return trace_; }
  double norm() const { return norm_; }  // Frobenius, >= ||Sigma||_2
  const Dense& sigma() const { return sigma_; }

  // L with LL' = Sigma, null where Sigma is not numerically definite.
  const Dense* cholesky_factor();
  // A d x rank factor, null where Sigma is indefinite by more than rounding.
  const Dense* pivoted_factor();
  // The best factor there is; through eigenvalues where Sigma is indefinite, as one rounded to float may be.
  const Dense& factor();

  // Whether anything above showed Sigma to be positive definite, or a route did.
  bool is_definite() const { return definite_; }
  void show_definite() { definite_ = true; }

 private:
  Dense sigma_, cholesky_, root_;
  std::optional<Dense> pivoted_;
  double trace_ = 0, norm_ = 0;
  bool tried_cholesky_ = false, tried_pivoted_ = false, definite_ = false;
};

// Throws std::invalid_argument unless both shares are 0 or more and finite.
void check_accuracy(const Accuracy& accuracy);
// Whether no bound on rounding can be small enough.
bool wants_squares(const Accuracy& accuracy);

// W2^2 by the first cheap route whose bound is good enough; nothing where none is.
std::optional<double> cheap_distance_squared(PreparedCovariance& a, PreparedCovariance& b, const Accuracy& accuracy);

// The same with the sum of squares as the last resort. Throws std::invalid_argument where the dimensions differ, or one
// of the two is indefinite.
double distance_squared(PreparedCovariance& a, PreparedCovariance& b, const Accuracy& accuracy);

}  // namespace itspace
