// SPDX-License-Identifier: Apache-2.0
//
// A symmetric matrix times a vector, from its lower triangle: each value is read once and used twice. What a reduction
// to tridiagonal form asks of each column.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// y += what columns [begin, end) of the lower triangle, and their mirror image, give of a x: rows begin to n. The
// matrix lies by columns, `stride` apart; x and y have n values.
void add_symmetric_columns(const double* a, Index stride, Index n, Index begin, Index end, const double* x, double* y);

}  // namespace itspace::kernels
