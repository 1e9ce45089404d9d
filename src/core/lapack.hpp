// SPDX-License-Identifier: Apache-2.0
//
// The LAPACK calls of the core, on Eigen's column-major double matrices. They return false where the input has a
// non-finite number, or where LAPACK did not converge by its fastest method nor by the slower ones that follow it; the
// caller decides what that means. Want of memory throws std::bad_alloc, a matrix that is too large for the integers of
// LAPACK std::invalid_argument. Marked for export is what the other libraries of this project use; the header is not
// installed.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include "kernels/blas_int.hpp"

namespace itspace {

// LAPACK computes the lengths of its work arrays itself and, beyond the largest integer (blas_int.hpp), wrongly. So
// every work array is measured before the routine is called; where it is too long a method with a shorter one follows,
// or std::invalid_argument.
//
// What the routines ask for at most, from their documentation, with the widest block that LAPACK knows. In double,
// where squares of sizes do not overflow.
namespace lapack_work {
double dsyevd(double n, bool vectors);
double dsyev(double n);
double dsyevr(double n);
// Singular values alone, or with thin or full vectors, of an m x n matrix.
enum class Vectors { none, thin, full };
double dgesdd(double m, double n, Vectors vectors);
double dgesvd(double m, double n, Vectors vectors);
double dgeqrf(double n);
}  // namespace lapack_work

// a = vectors diag(values) vectors', values ascending. Reads the lower triangle.
ITSPACE_API bool symmetric_eigen(const Small& a, SmallVector& values, Small& vectors);
ITSPACE_API bool symmetric_eigenvalues(const Small& a, SmallVector& values);

// The `count` largest eigenpairs only, values descending, vectors n x count. `a` is overwritten.
ITSPACE_API bool leading_eigenpairs(Small& a, Index count, SmallVector& values, Small* vectors);
// The same for a small matrix, of which no more than most eigenpairs are wanted.
bool few_leading_eigenpairs(const Small& a, Index count, SmallVector& values, Small& vectors);
// The smallest eigenvalue. `a` is overwritten.
bool smallest_eigenvalue(Small& a, double& value);

// a = u diag(s) v': u is m x m and v is n x n (`full`), or both have min(m, n) columns.
struct Svd {
  Small u, v;
  SmallVector s;
};
enum class SvdSize { full, thin };
bool singular_values(const Small& a, SmallVector& values);
ITSPACE_API bool svd(const Small& a, SvdSize size, Svd& out);

// The lower triangular L with a = L L', in place (the upper triangle is zeroed); false where a is not numerically
// positive definite. Reads the lower triangle.
bool cholesky(Small& a);
// The same beside a, and the inverse of an L, its upper triangle zero too.
bool lower_cholesky(const Small& a, Small& lower);
Small lower_inverse(const Small& lower);
void lower_inverse_into(const Small& lower, Small& inverse);
// A factor (n x rank, rows in the order of a) of a positive semidefinite a, by Cholesky with complete pivoting down to
// pivots of `tolerance`. Reads the lower triangle.
Small pivoted_cholesky(const Small& a, double tolerance);
// l' b l for lower triangular l, in the lower triangle of b. @pre b is symmetric.
void congruence(const Small& l, Small& b);

// a'b, and sum += a'a in the lower triangle, through BLAS.
Small product_transposed(const Small& a, const Small& b);
void add_gram(const Small& a, Small& sum);

// The upper triangular R (min(m, n) x n) of a = Q R, Householder; all NaN where a has a non-finite number. `a` is
// overwritten.
Small qr_triangle(Small& a);

// Throws std::runtime_error where LAPACK gave up on finite input: `what` did not converge.
void require_converged(bool converged, const char* what);

}  // namespace itspace
