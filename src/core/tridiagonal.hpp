// SPDX-License-Identifier: Apache-2.0
//
// A symmetric matrix as Q T Q', T tridiagonal, on our own threads: what LAPACK's dsytrd makes, and as it leaves it.
//
// A reduction makes a product with a vector for each column. BLAS's threads wait for each other after each, and by
// giving their processor away: on a busy machine that takes a time slice, for every column. Ours take each other's
// parts instead (pool.hpp), and no one waits for a thread that has been set aside but for the part it holds.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

namespace itspace {

struct Tridiagonal {
  SmallVector diagonal, below;
  SmallVector tau;  // Q = H_1 .. H_(n-1), H_j = I - tau_j v v', v in column j below the diagonal, its first value 1
};

// Whether that is to be preferred to LAPACK's own: not for small matrices, on one thread, nor where this BLAS cannot be
// told to keep to one.
bool is_worth_own_reduction(Index n);

// Reads the lower triangle; reflectors are left below it. @pre values whose squares are numbers.
ITSPACE_API void make_tridiagonal(Small& a, Tridiagonal& out);

// vectors <- Q vectors, `reduced` being what make_tridiagonal has left.
void apply_reflectors(const Small& reduced, const SmallVector& tau, Small& vectors);

}  // namespace itspace
