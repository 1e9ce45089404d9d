// SPDX-License-Identifier: Apache-2.0
//
// What every call of LAPACK is asked before and after.
#pragma once

#include "core/lapack.hpp"
#include "core/require.hpp"

#include <lapacke.h>

#include <new>
#include <stdexcept>

namespace itspace {

// BLAS's threads wait for each other, each time by giving the processor away: on a busy machine a wait may take a time
// slice. LAPACK's reductions make a product with a vector for each column, and wait after each, so that a second turns
// into minutes. They have one thread of BLAS (kernels::OneBlasThread), whatever their size; tridiagonal.hpp has ours.
// Factorisations and inverses of large triangles, which wait once for each panel, keep all of them.

inline bool fits(double work) {
  return work <= static_cast<double>(blas_limit());
}

inline void require_fits(double work, Index rows, Index cols, const char* routine) {
  require(fits(work), "a ", rows, " x ", cols, " matrix is too large for LAPACK's ", routine,
          ": its work array would have ", work, " values, and LAPACK counts to ", blas_limit(),
          ". Reduce the dimension first, for example by a projection; align needs no decomposition of that size");
}

// Whether LAPACK reached its end. A positive info is an outcome, for the caller to judge; want of memory is not, nor is
// an argument that LAPACK calls wrong.
[[nodiscard]] inline bool done(lapack_int info, const char* routine) {
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR) throw std::bad_alloc();
  if (info < 0) throw std::logic_error(text("LAPACK's ", routine, " refused its argument ", -info));
  return info == 0;
}

// Whether our own loops are for a matrix with this largest entry: they multiply squares of lengths with each other.
// LAPACK scales what is larger or smaller.
inline bool has_fourth_powers(double size) {
  constexpr double largest = 1e70, smallest = 1e-70;
  return size > smallest && size < largest;
}

}  // namespace itspace
