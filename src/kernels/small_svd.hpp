// SPDX-License-Identifier: Apache-2.0
//
// The singular value decomposition of a small matrix, by one-sided Jacobi rotations, a round of independent ones at a
// time. Up to some forty columns it takes a third to a half of LAPACK's time, and it is accurate to the relative size
// of each column where LAPACK is to that of the largest.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

inline constexpr Index most_jacobi_columns = 40;

// a = u diag(s) v' for an m x n matrix, n <= m and n <= most_jacobi_columns, all column-major and contiguous; s
// descending. False where the rotations did not converge, or where a singular value is so small beside the largest that
// its left vector is rounding: LAPACK's turn. @pre entries of order one.
bool jacobi_svd(Index m, Index n, const double* a, double* u, double* s, double* v);

}  // namespace itspace::kernels
