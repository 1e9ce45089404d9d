// SPDX-License-Identifier: Apache-2.0
//
// The oracle approximating shrinkage from the three numbers that it needs.
#pragma once

#include <algorithm>

namespace itspace {

// With a = ||Sigma||_F^2/d^2, mu = tr Sigma/d: rho = min(1, (a + mu^2)/((n + 1)(a - mu^2/d))).
inline double oas_share(double squared_size, double trace, double dim, double samples) {
  const double a = squared_size / (dim * dim), mean_variance = trace / dim;
  const double below = (samples + 1) * (a - mean_variance * mean_variance / dim);
  return below > 0 ? std::min(1.0, (a + mean_variance * mean_variance) / below) : 1.0;
}

}  // namespace itspace
