// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/subspace.hpp"

namespace itspace {

template <Space S>
Small project_out(S& space, const typename S::ConstView& s, typename S::View x) {
  const Small coefficients = gram(space, s, x);
  space.multiply(s, -coefficients, x, Write::add);
  return coefficients;
}

template <Space S>
Small orthonormalise(S& space, typename S::View x, double drop, Drop kind) {
  const Small c = orthonormalising_coefficients(gram(space, x), drop, kind);
  multiply(space, x, c, space.columns(x, 0, c.cols()));
  return c;
}

}  // namespace itspace
