// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/evaluate.hpp>

#include "core/coupling.hpp"
#include "core/covariance_factor.hpp"
#include "core/distance_routes.hpp"
#include "core/feature_moments.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

// Above this many columns a target's factor is not spelled out, and its distance is taken from the certificate.
constexpr Index most_factor_cols = 2048;

// T of a factored target, a few columns at a time.
template <Storage Scalar>
Dense spell_out(TargetRef<Scalar> target) {
  const Index d = target.dim(), n = target.factor_cols();
  constexpr Index step = 128;
  Dense factor(d, n);
  for (Index first = 0; first < n; first += step) {
    const Index count = std::min(step, n - first);
    Block<Scalar> unit = Block<Scalar>::Zero(n, count), part(d, count);
    for (Index j = 0; j < count; ++j) unit(first + j, j) = Scalar(1);
    target.apply_factor(unit, part);
    factor.middleCols(first, count) = part.template cast<double>();
  }
  return factor;
}

}  // namespace

double Distance::w2() const {
  return std::sqrt(squared());
}

double mean_distance_squared(const Eigen::VectorXd& mean_a, const Eigen::VectorXd& mean_b) {
  check_same_dimension(mean_a.size(), mean_b.size());
  require(mean_a.allFinite() && mean_b.allFinite(),
          "a mean has a value that is not finite; remove or replace such samples first");
  return (mean_a - mean_b).squaredNorm();
}

double factor_distance_squared(const ConstBlockView<double>& a, const ConstBlockView<double>& b) {
  check_finite<double>(a, "factor");
  check_finite<double>(b, "factor");
  return couple(a, b).cost();
}

template <Storage Scalar>
double dense_distance_squared(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b,
                              const Accuracy& accuracy) {
  return dense_distance<Scalar>(a, b, accuracy).squared;
}

template <Storage Scalar>
DenseDistance dense_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b,
                             const Accuracy& accuracy) {
  PreparedCovariance first(a), second(b);
  const double squared = distance_squared(first, second, accuracy);
  return {squared, first.is_definite(), second.is_definite()};
}

template <Storage Scalar>
Distance features_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, const Accuracy& accuracy) {
  check_same_dimension(a.cols(), b.cols());
  check_accuracy(accuracy);
  check_finite<Scalar>(a, "features");
  check_finite<Scalar>(b, "features");
  const auto by_squares = [&]() -> Distance {
    return {factor_distance_squared(compact_factor<Scalar>(a), compact_factor<Scalar>(b)),
            mean_distance_squared(mean<Scalar>(a), mean<Scalar>(b))};
  };
  const Index d = a.cols();
  if (a.rows() <= d || b.rows() <= d || wants_squares(accuracy)) return by_squares();
  const Moments of_a = gather_moments<Scalar>(a, {}), of_b = gather_moments<Scalar>(b, {});
  PreparedCovariance first(ConstBlockView<double>(Block<double>(features_covariance<Scalar>(a, of_a)))),
      second(ConstBlockView<double>(Block<double>(features_covariance<Scalar>(b, of_b))));
  // Their entries are rounded, eps ||Sigma||, which the routes' bounds have in them. The factors are not.
  if (const auto found = cheap_distance_squared(first, second, accuracy))
    return {*found, mean_distance_squared(of_a.mean, of_b.mean)};
  return by_squares();
}

template <Storage Scalar>
double target_distance_squared(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                               const TargetArgument<Scalar>& given) {
  const TargetRef<Scalar> target = given;
  check_same_dimension(factor.rows(), target.dim());
  check_finite<Scalar>(factor, "factor");
  if (target.has_factor() && target.factor_cols() <= most_factor_cols) {
    const Dense spelled = spell_out<Scalar>(target);
    require(spelled.allFinite(), "the target's factor has a value that is not finite; check what it was made of");
    return couple(factor.template cast<double>(), spelled).cost();
  }
  const auto at = evaluate<Scalar>(target, factor, target.has_factor() ? Route::factor : Route::qr);
  require(at.status != Status::not_a_covariance, "the target is not a covariance: ", at.reason);
  require(!failed(at.status),
          "the product of the target with the factor is not finite; check both for values that are not finite or too "
          "large");
  return at.certificate.objective;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                            \
  template double dense_distance_squared<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, \
                                                 const Accuracy&);                                             \
  template DenseDistance dense_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&,  \
                                                const Accuracy&);                                              \
  template Distance features_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&,    \
                                              const Accuracy&);                                                \
  template double target_distance_squared<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&,         \
                                                  const TargetArgument<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
