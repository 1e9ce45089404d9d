// SPDX-License-Identifier: Apache-2.0
//
// Cholesky factors and inverses of triangles by blocks, over all threads where they are large; the same bits whatever
// their number.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// lower = L with LL' = a, of which the lower triangle is read, zero above its diagonal. False where there is none, or a
// number is not finite.
bool cholesky_factor(const Small& a, Small& lower);
// inverse = lower^(-1), zero above its diagonal.
void invert_triangle(const Small& lower, Small& inverse);

}  // namespace itspace::kernels
