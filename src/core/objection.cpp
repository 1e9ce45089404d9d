// SPDX-License-Identifier: Apache-2.0
#include "core/objection.hpp"

#include "kernels/small_sweeps.hpp"

#include "core/lapack.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {

std::string objection_to(const ProductData& data, double target_trace, Index dim, const StorageRounding& storage,
                         bool definite) {
  if (!data.overwritten) return "apply() must overwrite its output block, and left what was in it";
  if (target_trace < 0) return text("its trace is ", target_trace, ", and a covariance has none below 0");
  const Small& theta = data.theta;
  const double size = theta.rows() > 0 ? kernels::largest_entry(theta) : 0;
  if (theta.rows() == 0 || !std::isfinite(size) || !std::isfinite(target_trace)) return "";
  // The rounding of a float32 matrix of that dimension, wherever it was made.
  const double share = static_cast<double>(dim + 16) * std::numeric_limits<float>::epsilon();
  const double norm = std::max(data.target_norm, size);
  const double rounding = share * norm + storage.vanishing;

  const double asymmetry = 2 * kernels::asymmetry_of(theta).largest;
  if (asymmetry > rounding)
    return text("Y'Sigma Y is not symmetric: entries that should agree differ by ", asymmetry, " where they are up to ",
                norm);
  // A basis of graded columns is orthonormal to a few digits only.
  if (0.99 * data.seen_trace > target_trace + rounding)
    return text("the products show a trace of at least ", data.seen_trace, ", and trace() says ", target_trace);
  if (definite) return "";
  Small shifted = theta / norm, lower;
  shifted.diagonal().array() += rounding / norm;
  SmallVector values;
  if (norm > 0 && !lower_cholesky(shifted, lower) && symmetric_eigenvalues(0.5 * (theta + theta.transpose()), values) &&
      values.minCoeff() < -rounding)
    return text("Y'Sigma Y has an eigenvalue of ", values.minCoeff(), " where its largest is ", values.maxCoeff());
  return "";
}

}  // namespace itspace
