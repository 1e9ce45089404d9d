// SPDX-License-Identifier: Apache-2.0
//
// Y = Q R with a well-conditioned basis Q, from r x r work in double.
//
// Cholesky QR on the column-equilibrated Gram matrix: one sweep for Y'Y, one for Y R^(-1). The certificate needs Y = Q
// R to hold row by row and Q to be well-conditioned, not orthonormal to the last bit, so no second Cholesky is made.
// Where the Gram matrix is too ill-conditioned for Cholesky, the columns are first rotated to its eigenvectors: mixed
// columns become graded ones, whose small members keep their own relative accuracy in the storage type, and the next
// Gram matrix is well-conditioned after equilibration. Directions at rounding level are dropped, so Q has q <= r
// columns.
#pragma once

#include "kernels/block_ops.hpp"

namespace itspace {

struct Basis {
  Index cols = 0;  // q
  Small r;         // q x r: Y = Q r
  Small inverse;   // r x q: Q = Y inverse
  Small y_gram;    // Y'Y; what length() uses where Q is not orthonormal
  bool orthonormal = true;
  bool direct = true;    // one Cholesky was enough: Y's equilibrated columns are well-conditioned
  double y_squared = 0;  // ||Y||^2
  bool finite = true;    // false: Y has a NaN or Inf, and nothing else is set

  // ||Y v||
  double length(const SmallVector& v) const;
};

// Fills the first basis.cols columns of q. @pre q has at least the columns of y and is not y.
template <Storage Scalar>
void make_basis(const ConstBlockView<Scalar>& y, BlockView<Scalar> q, Basis& basis, kernels::Panels& panels);

// The trivial basis of the gram route: Q = Y scaled by a power of two to ||Q|| in [1/2, 1), so that products with Q
// stay in range.
template <Storage Scalar>
void make_scaled_basis(const ConstBlockView<Scalar>& y, BlockView<Scalar> q, Basis& basis, kernels::Panels& panels);

}  // namespace itspace
