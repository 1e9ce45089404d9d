// SPDX-License-Identifier: Apache-2.0
//
// Along the optimal coupling: the points between two Gaussians, and what the way costs.
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>

#include "core/coupling.hpp"
#include "core/covariance_factor.hpp"
#include "core/require.hpp"

#include <Eigen/Cholesky>

namespace itspace {
namespace {

Dense symmetric_root(const Dense& a) {
  Eigen::VectorXd values;
  Dense vectors;
  eigen_of_covariance(a, values, vectors);
  return vectors * values.cwiseMax(0.0).cwiseSqrt().asDiagonal() * vectors.transpose();
}

}  // namespace

Block<double> geodesic_factor(const ConstBlockView<double>& a, const ConstBlockView<double>& b, double t) {
  require(t >= 0 && t <= 1, "t is ", t, "; the geodesic runs from t = 0 (the first) to t = 1 (the second)");
  check_finite<double>(a, "factor");
  check_finite<double>(b, "factor");
  const Coupling coupling = couple(a, b);
  const double to_wide = coupling.first_is_wide ? 1 - t : t;
  return to_wide * coupling.wide + (1 - to_wide) * coupling.turned;
}

template <Storage Scalar>
Block<Scalar> geodesic(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, double t) {
  const Block<double> factor = geodesic_factor(dense_factor<Scalar>(a), dense_factor<Scalar>(b), t);
  Dense point = Dense::Zero(factor.rows(), factor.rows());
  point.selfadjointView<Eigen::Lower>().rankUpdate(factor);
  point.triangularView<Eigen::StrictlyUpper>() = point.transpose();
  return point.cast<Scalar>();
}

template <Storage Scalar>
double coupling_cost(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_same_dimension(a.rows(), b.rows());
  for (const auto* sigma : {&a, &b})
    require(sigma->rows() == sigma->cols(), "a covariance is ", sigma->rows(), " x ", sigma->cols(),
            "; it must be square");
  check_finite<Scalar>(a, "covariance");
  check_finite<Scalar>(b, "covariance");
  const Dense wide_a = a.template cast<double>(), wide_b = b.template cast<double>();
  const Dense root = symmetric_root(wide_a);
  const Eigen::LLT<Dense> llt(root);
  require(llt.info() == Eigen::Success,
          "the first covariance is singular, so there is no map from it; swap the two, or add a ridge to it");
  // M A^(1/2) = A^(-1/2) (A^(1/2) B A^(1/2))^(1/2)
  const Dense moved = llt.solve(symmetric_root(root * wide_b * root));
  return (root - moved).squaredNorm();
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                              \
  template Block<Scalar> geodesic<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double); \
  template double coupling_cost<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
