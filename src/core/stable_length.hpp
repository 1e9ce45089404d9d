// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

namespace itspace {

// ||x||, also where squares overflow or vanish; not finite where a value is not. (Eigen's own loses a NaN that stands
// among zeros.)
inline double stable_length(const Eigen::Ref<const Eigen::VectorXd>& x) {
  return x.allFinite() ? x.stableNorm() : x.cwiseAbs().sum();
}

}  // namespace itspace
