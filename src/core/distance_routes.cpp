// SPDX-License-Identifier: Apache-2.0
#include "core/distance_routes.hpp"

#include <itspace/covariance.hpp>

#include "core/coupling.hpp"
#include "core/covariance_factor.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();
constexpr double rounded_to_float = Eigen::NumTraits<float>::epsilon();

// A value with a bound on its rounding; the bound is infinite where the route does not apply.
struct Bounded {
  double value = 0;
  double error = std::numeric_limits<double>::infinity();
};

// Products and reductions err by about eps ||A|| ||B|| in every eigenvalue lambda of L'BL, so its root by at most
// delta/(lambda^(1/2) + delta^(1/2)); the sum takes all of these with one sign.
Bounded by_eigenvalues(PreparedCovariance& a, PreparedCovariance& b) {
  const Dense* l = a.cholesky_factor();
  if (!l) return {};
  Dense c = b.sigma();
  congruence(*l, c);
  Eigen::VectorXd values;
  if (!symmetric_eigenvalues(c, values)) return {};
  const double delta = eps64 * a.norm() * b.norm(), root_delta = std::sqrt(delta);
  double sum = 0, error = 0;
  for (const double value : values) {
    const double root = std::sqrt(std::max(0.0, value));
    sum += root;
    if (delta > 0) error += delta / (root + root_delta);
  }
  // A negative direction of B beyond rounding is not for this route to judge.
  if (values.minCoeff() < -static_cast<double>(values.size()) * delta) return {};
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
  const double error = eps64 * static_cast<double>(values.size()) * std::sqrt(a.norm() * b.norm());
  return {variance - 2 * values.sum(), 2 * error + 4 * eps64 * variance};
}

}  // namespace

template <Storage Scalar>
PreparedCovariance::PreparedCovariance(const ConstBlockView<Scalar>& sigma) {
  check_symmetric<Scalar>(sigma, rounded_to_float);
  sigma_ = sigma.template cast<double>();
  trace_ = sigma_.trace();
  norm_ = sigma_.norm();
}

const Dense* PreparedCovariance::cholesky_factor() {
  if (!tried_cholesky_) {
    tried_cholesky_ = true;
    cholesky_ = sigma_;
    if (!cholesky(cholesky_)) cholesky_.resize(0, 0);
  }
  return cholesky_.size() > 0 ? &cholesky_ : nullptr;
}

const Dense* PreparedCovariance::pivoted_factor() {
  if (!tried_pivoted_) {
    tried_pivoted_ = true;
    pivoted_ = pivoted_factor_of(sigma_);
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

std::optional<double> cheap_distance_squared(PreparedCovariance& a, PreparedCovariance& b, const Accuracy& accuracy) {
  // An infinite one would accept a route that does not apply.
  for (const double share : {accuracy.relative, accuracy.of_variance})
    require(share >= 0 && std::isfinite(share), "an accuracy is ", share,
            "; it is a share of the distance or of the variance, 0 or more and finite");
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
