// SPDX-License-Identifier: Apache-2.0
#include "baselines/dense_algebra.hpp"
#include "baselines/sinkhorn.hpp"
#include "core/require.hpp"

#include <cmath>
#include <limits>

namespace itspace::baselines {

Small entropic_gaussian_covariance(const Small& a, const Small& b, double epsilon) {
  check_symmetric(a, a.rows(), "the start");
  check_symmetric(b, a.rows(), "the target");
  require(std::isfinite(epsilon) && epsilon >= 0, "epsilon is ", epsilon, "; it must not be negative");
  const SymmetricEigen eigen(a);
  require(eigen.values()(0) > 0, "the start has the eigenvalue ", eigen.values()(0),
          "; it must be positive definite. Add a ridge to its diagonal");
  const Small vectors = eigen.vectors();
  const Small root = weighted_square(vectors, eigen.values().cwiseSqrt());
  const Small inverse_root = weighted_square(vectors, eigen.values().array().rsqrt());
  // With D = (4 a^(1/2) b a^(1/2) + s^4 I)^(1/2): C = a^(1/2) (D - s^2 I)/2 a^(-1/2), so that C'a^(-1)C
  // = a^(-1/2) ((D - s^2 I)/2)^2 a^(-1/2).
  const SymmetricEigen sandwich(congruence(root, b));
  const double s2 = epsilon / 2;
  // (sqrt(4x + s^4) - s^2)/2 without cancellation.
  const Eigen::ArrayXd x = sandwich.values().array().max(0.0);
  const Eigen::ArrayXd half = 2 * x / ((4 * x + s2 * s2).sqrt() + s2).max(std::numeric_limits<double>::min());
  return congruence(inverse_root, weighted_square(sandwich.vectors(), half.square()));
}

}  // namespace itspace::baselines
