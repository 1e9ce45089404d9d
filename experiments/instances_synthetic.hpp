// SPDX-License-Identifier: Apache-2.0
//
// Synthetic domains of any dimension, the same numbers everywhere. Gaussian samples whose covariance has eigenvalues
// max(i^-1.2, 1e-4), along axes that are rotated in both domains, and in the target once more: enough to move the
// larger part of the leading 16 directions out of their span.
#pragma once

#include "instances.hpp"

namespace itspace::experiments {

inline constexpr Index least_synthetic_dim = 2, most_synthetic_dim = 8192, default_synthetic_dim = 2048;

// Labels ignored: 2d samples each, so that both empirical covariances have full rank. Labels wanted: ten classes whose
// means lie along the leading directions, 2d samples but at least 1,000, and a mild rotation between the domains, so
// that a head trained on one makes sense on the other.
// @pre dim within the limits above.
void fill_synthetic(Index dim, Labels labels, Instance& instance);

}  // namespace itspace::experiments
