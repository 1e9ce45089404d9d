// SPDX-License-Identifier: Apache-2.0
//
// Factors and covariances cut to a rank.
#pragma once

#include <itspace/block.hpp>

#include "core/dense.hpp"

namespace itspace {

// Throws std::invalid_argument unless 1 <= rank <= dim.
ITSPACE_API void check_rank(Index rank, Index dim);

// A factor of F F' with at most d columns.
Dense narrow_factor(const Dense& factor);

// The leading left singular part U_r S_r of F: the factor of Pi_r(F F'). The rank may exceed the columns of F; the rest
// is zero.
Dense leading_part(const Dense& factor, Index rank);

// U diag(lambda)^(1/2) of the `count` leading eigenpairs of a symmetric matrix, which is overwritten.
Dense leading_root(Dense& sigma, Index count);

}  // namespace itspace
