// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "oracle.hpp"

#include <itspace/online_target.hpp>

namespace itspace::test {

// What the target makes of the identity.
template <Storage Scalar>
RealMatrix entries(const OnlineTarget<Scalar>& target) {
  Block<Scalar> out(target.dim(), target.dim());
  target.apply(Block<Scalar>::Identity(target.dim(), target.dim()), out);
  return real(out);
}

}  // namespace itspace::test
