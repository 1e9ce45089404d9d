// SPDX-License-Identifier: Apache-2.0
#include "core/distance_routes.hpp"

#include <itspace/covariance.hpp>

#include "core/coupling.hpp"
#include "core/covariance_factor.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

// A value with a bound on its rounding; the bound is infinite where the route does not apply.
struct Bounded {
  double value = 0;
  double error = std::numeric_limits<double>::infinity();
};

// The most that lambda^(1/2) errs where lambda >= 0 is known up to delta: downwards, where the root is steepest.
double root_error(double lambda, double delta) {
  if (lambda <= delta) return std::sqrt(delta);
  return delta / (std::sqrt(lambda) + std::sqrt(lambda - delta));
}

// Products and reductions err by about delta = eps ||A|| ||B|| in every eigenvalue of L'BL, Frobenius norms standing
// for the growth with d; the sum takes the errors of all roots with one sign.
Bounded by_eigenvalues(PreparedCovariance& a, PreparedCovariance& b) {
  // Eigenvalues of the size of ||A|| ||B|| must have all their digits.
  const double smallest = std::numeric_limits<double>::min() / eps64, size = a.norm() * b.norm();
  const Dense* l = size > smallest ? a.cholesky_factor() : nullptr;
  if (!l) return {};
  Dense c = b.sigma();
  congruence(*l, c);
  Eigen::VectorXd values;
  if (!symmetric_eigenvalues(c, values)) return {};
  const double delta = eps64 * size;
  double sum = 0, error = 0;
  for (const double value : values) {
    sum += std::sqrt(std::max(0.0, value));
    error += root_error(value, delta);
  }
  // A negative direction of B beyond rounding is not for this route to judge. Where none is in doubt L'BL is definite,
  // and so is B.
  const double least = values.minCoeff(), doubt = static_cast<double>(values.size()) * delta;
  if (least < -doubt) return {};
  if (least > doubt) b.show_definite();
  const double variance = a.trace() + b.trace();
  return {variance - 2 * sum, 2 * error + 4 * eps64 * variance};
}

// Each singular value errs by about eps ||L_A|| ||L_B||. What the factors leave of the covariances is not in the bound:
// it is the rounding of the entries, and no other route sees more in them.
Bounded by_singular_values(PreparedCovariance& a, PreparedCovariance& b) {
  const Dense *la = a.pivoted_factor(), *lb = b.pivoted_factor();
  if (!la || !lb) return {};
  Eigen::VectorXd values;
  if (!singular_values(product_transposed(*lb, *la), values)) return {};
  const double variance = a.trace() + b.trace();
  const double error = eps64 * static_cast<double>(values.size()) * std::sqrt(a.norm()) * std::sqrt(b.norm());
  return {variance - 2 * values.sum(), 2 * error + 4 * eps64 * variance};
}

}  // namespace

template <Storage Scalar>
PreparedCovariance::PreparedCovariance(const ConstBlockView<Scalar>& sigma) {
  const Asymmetry asymmetry = check_symmetric<Scalar>(sigma, rounded_to_float);
  sigma_ = sigma.template cast<double>();
  if (asymmetry.size > 0) sigma_ = (0.5 * (sigma_ + sigma_.transpose())).eval();
  trace_ = sigma_.trace();
  norm_ = sigma_.norm();
}

const Dense* PreparedCovariance::cholesky_factor() {
  if (!tried_cholesky_) {
    tried_cholesky_ = true;
    cholesky_ = sigma_;
    if (cholesky(cholesky_))
      definite_ = true;
    else
      cholesky_.resize(0, 0);
  }
  return cholesky_.size() > 0 ? &cholesky_ : nullptr;
}

const Dense* PreparedCovariance::pivoted_factor() {
  if (!tried_pivoted_) {
    tried_pivoted_ = true;
    pivoted_ = pivoted_factor_of(sigma_);
    definite_ |= pivoted_ && pivoted_->cols() == dim();
  }
  return pivoted_ ? &*pivoted_ : nullptr;
}

const Dense& PreparedCovariance::factor() {
  if (const Dense* pivoted = pivoted_factor()) return *pivoted;
  if (root_.size() > 0) return root_;
  Eigen::VectorXd values;
  Dense vectors;
  eigen_of_covariance(sigma_, values, vectors);
  check_eigenvalues(values.minCoeff(), values.maxCoeff(), dim(), rounded_to_float);
  root_ = eigen_factor(vectors, values);
  return root_;
}

void check_accuracy(const Accuracy& accuracy) {
  // An infinite one would accept a route that does not apply.
  for (const double share : {accuracy.relative, accuracy.of_variance})
    require(share >= 0 && std::isfinite(share), "an accuracy is ", share,
            "; it is a share of the distance or of the variance, 0 or more and finite");
}

bool wants_squares(const Accuracy& accuracy) {
  return accuracy.relative == 0 && accuracy.of_variance == 0;
}

std::optional<double> cheap_distance_squared(PreparedCovariance& a, PreparedCovariance& b, const Accuracy& accuracy) {
  check_accuracy(accuracy);
  if (wants_squares(accuracy)) return std::nullopt;
  const double allowed = accuracy.of_variance * (a.trace() + b.trace());
  for (const auto route : {by_eigenvalues, by_singular_values}) {
    const Bounded found = route(a, b);
    if (found.error <= std::max(allowed, accuracy.relative * (found.value - found.error)))
      return std::max(0.0, found.value);
  }
  return std::nullopt;
}

double distance_squared(PreparedCovariance& a, PreparedCovariance& b, const Accuracy& accuracy) {
  check_same_dimension(a.dim(), b.dim());
  if (const auto found = cheap_distance_squared(a, b, accuracy)) return *found;
  return couple(a.factor(), b.factor()).cost();
}

template PreparedCovariance::PreparedCovariance(const ConstBlockView<float>&);
template PreparedCovariance::PreparedCovariance(const ConstBlockView<double>&);

}  // namespace itspace
