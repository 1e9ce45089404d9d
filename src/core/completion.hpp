// SPDX-License-Identifier: Apache-2.0
//
// Completion: an exact certificate that also serves the directions of Y that the target does not see.
//
// For the null directions N of Sigma^(1/2) Y draw Z, make it Sigma-orthogonal to Y and add (Sigma Z)(Z'Sigma Z)^(-1/2)
// N' to B. tr(Q'Sigma^(1/2) Y) does not change, so the certificate stays exact, and the state leaves the set on which
// the compact certificate stalls. Where the rest of the target's range has fewer directions than N, only those are
// filled.
#pragma once

#include "core/product.hpp"

namespace itspace {

// Extends certificate.m (and data) by the rows of Z. Returns how many null directions were filled; 0 leaves the
// certificate as it was. `z` (d x (r + completion_oversampling)) is overwritten.
template <Space S>
Index complete(S& space, Product<S>& product, const typename S::ConstView& q, const Random& random, typename S::View z,
               Index dim, ProductData& data, Certificate& certificate);

// The r x r half: fills null directions from the energies of `width` columns that data was extended by. `noise` is the
// rounding of energies in units of ||Sigma||_2.
ITSPACE_API Index fill_null_directions(Index width, double noise, const ProductData& data, Certificate& certificate);

}  // namespace itspace
