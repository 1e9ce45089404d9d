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

#include <itspace/space.hpp>

namespace itspace {

struct ITSPACE_API Basis {
  Index cols = 0;  // q
  Small r;         // q x r: Y = Q r
  Small inverse;   // r x q: Q = Y inverse, to the rounding of storage
  Small y_gram;    // Y'Y; what lengths() uses where Q is not orthonormal
  bool orthonormal = true;
  bool direct = true;    // one Cholesky was enough: Y's equilibrated columns are well-conditioned
  bool exact = true;     // r inverse = I to the rounding of double
  double y_squared = 0;  // ||Y||^2
  bool finite = true;    // false: Y has a NaN or Inf, or no basis was found; nothing else is set

  // ||Y v_i|| for the columns v_i.
  SmallVector lengths(const Small& v) const;
  SmallVector lengths_of_columns() const;  // ||Y e_j||
};

// Fills the first basis.cols columns of q. @pre q has at least the columns of y and is not y.
template <Space S>
void make_basis(S& space, const typename S::ConstView& y, typename S::View q, Basis& basis);

// The trivial basis of the gram route: Q = Y scaled by a power of two to ||Q|| in [1/2, 1), so that products with Q
// stay in range.
template <Space S>
void make_scaled_basis(S& space, const typename S::ConstView& y, typename S::View q, Basis& basis);

// ||U^(-1)|| of the equilibrated Gram matrix U'U from which on R is taken anew from Q and Y: Y - Q U loses that times
// eps.
inline constexpr double accurate_inverse = 30;

// One stage Q_new = Q(:, kept) inverse of make_basis, from the Gram matrix of the kept columns: Q(:, kept) = Q_new
// step.
struct BasisStage {
  Small step, inverse;
  bool found;     // false: the eigenvectors were not to be had
  bool trusted;   // by Cholesky, which ends the sequence; else a rotation to the eigenvectors of the Gram matrix
  bool accurate;  // Q_new step is Q to rounding
};
ITSPACE_API BasisStage make_basis_stage(const Small& gram);

// r <- r + Q'(Y - Q r) from Q'Y and Q'Q.
ITSPACE_API void correct_coordinates(const Small& q_y, const Small& q_gram, Basis& basis);

}  // namespace itspace
