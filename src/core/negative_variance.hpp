// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <itspace/covariance.hpp>

#include "core/require.hpp"

#include <string_view>

namespace itspace {

// Throws std::invalid_argument, calling the matrix `what`, for a variance that is negative beyond the rounding of float
// (symmetry_limit), or a trace below 0: what finite entries alone can say against a covariance; eigenvalues are looked
// at elsewhere. @pre square, finite, not empty.
template <Storage Scalar>
void refuse_negative_variance(const ConstBlockView<Scalar>& sigma, std::string_view what) {
  Index at = 0;
  const auto least = static_cast<double>(sigma.diagonal().minCoeff(&at));
  if (least >= 0) return;
  const double limit = symmetry_limit<Scalar>(sigma, rounded_to_float);
  require(least >= -limit, what, " is indefinite: ", what, "[", at, ", ", at, "] = ", least,
          ", and no variance is negative (limit ", -limit, "). Pass a covariance, or add a ridge of at least ", -least,
          " to its diagonal");
  const double trace = sigma.diagonal().template cast<double>().sum();
  require(trace >= 0, what, " is indefinite: its trace is ", trace,
          ", and the variances of a covariance add up to 0 or more. Pass a covariance, or add a ridge of at least ",
          -trace / static_cast<double>(sigma.rows()), " to its diagonal");
}

}  // namespace itspace
