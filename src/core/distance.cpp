// SPDX-License-Identifier: Apache-2.0
#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>

#include "core/factors.hpp"
#include "core/lapack.hpp"
#include "core/text.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

// Above this many columns a target's factor is not spelled out, and its distance is taken from the certificate.
constexpr Index most_factor_cols = 2048;

void check_dims(Index a, Index b) {
  require(a == b, "the two sides have dimensions ", a, " and ", b, "; a distance needs them equal");
}

// The optimal coupling of two factors: `wide` and `narrow` turned to it, so that W2^2 = ||wide - turned||^2.
struct Coupling {
  Small wide, turned;
  bool first_is_wide;
};

Coupling couple(const Small& a_in, const Small& b_in) {
  check_dims(a_in.rows(), b_in.rows());
  Coupling coupling;
  Small a = narrow_factor(a_in), b = narrow_factor(b_in);
  coupling.first_is_wide = a.cols() >= b.cols();
  if (!coupling.first_is_wide) std::swap(a, b);
  // polar(b'a) with orthonormal rows, so that all of b is coupled even where b'a is rank-deficient.
  Svd parts;
  require(svd(b.transpose() * a, SvdSize::thin, parts), "a factor has a value that is not finite");
  coupling.turned = (b * parts.u) * parts.v.transpose();
  coupling.wide = std::move(a);
  return coupling;
}

template <Storage Scalar>
Small dense_factor(const ConstBlockView<Scalar>& sigma) {
  require(sigma.rows() == sigma.cols(), "the covariance is ", sigma.rows(), " x ", sigma.cols(), "; it must be square");
  Small wide = sigma.template cast<double>();
  const double cut =
      std::sqrt(static_cast<double>(sigma.rows()) * static_cast<double>(Eigen::NumTraits<Scalar>::epsilon()));
  Small root = leading_root(wide, wide.rows());
  // Eigenvalues at rounding of the largest are rounding: their roots would not be.
  for (Index j = 0; j < root.cols(); ++j)
    if (root.col(j).norm() <= cut * root.col(0).norm()) root.col(j).setZero();
  return root;
}

Small symmetric_root(const Small& a) {
  SmallVector values;
  Small vectors;
  require(symmetric_eigen(a, values, vectors), "the covariance has a value that is not finite");
  return vectors * values.cwiseMax(0.0).cwiseSqrt().asDiagonal() * vectors.transpose();
}

// T of a factored target, a few columns at a time.
template <Storage Scalar>
Small spell_out(TargetRef<Scalar> target) {
  const Index d = target.dim(), n = target.factor_cols();
  constexpr Index step = 128;
  Small factor(d, n);
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
  check_dims(mean_a.size(), mean_b.size());
  return (mean_a - mean_b).squaredNorm();
}

double factor_distance_squared(const ConstBlockView<double>& a, const ConstBlockView<double>& b) {
  const Coupling coupling = couple(a, b);
  return (coupling.wide - coupling.turned).squaredNorm();
}

template <Storage Scalar>
double dense_distance_squared(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_dims(a.rows(), b.rows());
  const Coupling coupling = couple(dense_factor<Scalar>(a), dense_factor<Scalar>(b));
  return (coupling.wide - coupling.turned).squaredNorm();
}

template <Storage Scalar>
Distance features_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_dims(a.cols(), b.cols());
  Distance distance;
  distance.covariance_part = factor_distance_squared(compact_factor<Scalar>(a), compact_factor<Scalar>(b));
  distance.mean_part = mean_distance_squared(mean<Scalar>(a), mean<Scalar>(b));
  return distance;
}

template <Storage Scalar>
double target_distance_squared(const std::type_identity_t<ConstBlockView<Scalar>>& factor, TargetRef<Scalar> target) {
  check_dims(factor.rows(), target.dim());
  if (target.has_factor() && target.factor_cols() <= most_factor_cols) {
    const Coupling coupling = couple(factor.template cast<double>(), spell_out<Scalar>(target));
    return (coupling.wide - coupling.turned).squaredNorm();
  }
  AlignOptions look_only;
  look_only.steps = 0;
  look_only.route = target.has_factor() ? Route::factor : Route::qr;
  return align<Scalar>(target, factor, look_only).trace.steps.front().objective;
}

Block<double> geodesic_factor(const ConstBlockView<double>& a, const ConstBlockView<double>& b, double t) {
  require(t >= 0 && t <= 1, "t is ", t, "; the geodesic runs from t = 0 (the first) to t = 1 (the second)");
  const Coupling coupling = couple(a, b);
  const double to_wide = coupling.first_is_wide ? 1 - t : t;
  return to_wide * coupling.wide + (1 - to_wide) * coupling.turned;
}

template <Storage Scalar>
Block<Scalar> geodesic(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, double t) {
  const Block<double> factor = geodesic_factor(dense_factor<Scalar>(a), dense_factor<Scalar>(b), t);
  Small point = Small::Zero(factor.rows(), factor.rows());
  point.selfadjointView<Eigen::Lower>().rankUpdate(factor);
  point.triangularView<Eigen::StrictlyUpper>() = point.transpose();
  return point.cast<Scalar>();
}

template <Storage Scalar>
double coupling_cost(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_dims(a.rows(), b.rows());
  const Small wide_a = a.template cast<double>(), wide_b = b.template cast<double>();
  const Small root = symmetric_root(wide_a);
  const Eigen::LLT<Small> llt(root);
  require(llt.info() == Eigen::Success,
          "the first covariance is singular, so there is no map from it; swap the two, or add a ridge to it");
  // M A^(1/2) = A^(-1/2) (A^(1/2) B A^(1/2))^(1/2)
  const Small moved = llt.solve(symmetric_root(root * wide_b * root));
  return (root - moved).squaredNorm();
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                              \
  template double dense_distance_squared<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);  \
  template Distance features_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);     \
  template double target_distance_squared<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&,           \
                                                  TargetRef<Scalar>);                                            \
  template Block<Scalar> geodesic<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double); \
  template double coupling_cost<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
