// SPDX-License-Identifier: Apache-2.0
//
// The few leading eigenpairs of a small symmetric matrix, in a tenth of the time that all of them take: reflections to
// a tridiagonal matrix, its values by counting how many lie below a cut, and a vector for each value by itself, several
// of them in the lanes of vectors.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// The `count` largest eigenvalues of the n x n matrix at `a`, descending, and their vectors as the columns of `vectors`
// (n x count), both contiguous and by columns; reads the lower triangle. What is found is measured: residuals are a few
// n eps of the norm, and vectors orthonormal to the same. False where they are not (values that agree to rounding have
// vectors that are made together, or not at all): a decomposition's turn. @pre n >= 1, entries of order one, finite.
bool leading_pairs(Index n, Index count, const double* a, double* values, double* vectors);

}  // namespace itspace::kernels
