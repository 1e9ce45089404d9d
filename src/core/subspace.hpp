// SPDX-License-Identifier: Apache-2.0
//
// Rayleigh-Ritz on a tall basis S whose product Sigma S is kept: orthogonalisation, the projected problem, and the
// Nystrom factor of the subspace. Blocks are moved in storage precision; s x s work is in double.
#pragma once

#include <itspace/space.hpp>

namespace itspace {

// x <- x - s (s'x), for an s with orthonormal columns. Returns the coefficients s'x, so that a kept product can follow.
template <Space S>
Small project_out(S& space, const typename S::ConstView& s, typename S::View x);

// Orthonormalises the columns of x by the eigendecomposition of its Gram matrix (SVQB, Stathopoulos and Wu 2002),
// dropping directions whose eigenvalue is at most `drop`: times the largest after scaling columns to length one
// (`relative`), or as it is (`absolute`, which bounds the amplification of a kept product by drop^(-1/2)).
// Returns the coefficients c: the new x is (old x) c, in its first c.cols() columns, the strongest direction first.
enum class Drop { relative, absolute };
template <Space S>
Small orthonormalise(S& space, typename S::View x, double drop, Drop kind);
// The coefficients alone, from the Gram matrix of x.
ITSPACE_API Small orthonormalising_coefficients(Small gram, double drop, Drop kind);

// For an s with orthonormal columns, c = s'x and gram = x'x: what turns [s, x] into an orthonormal basis of x beyond s,
// [-c t; t], directions of at most `drop` dropped as by Drop::absolute. One reduction and one product do both steps,
// where `drop` is far above the rounding that s is orthonormal to.
ITSPACE_API Small remaining_directions(const Small& c, const Small& gram, double drop);

// The same for an x whose part along s is rounding: first x by itself, scaled to length one and dropped as by
// Drop::relative, then of what is left the directions that are beyond s by more than `rounding` (squared). In
// coordinates both, so that it is for blocks of less precision than double.
ITSPACE_API Small new_directions(const Small& c, const Small& gram, double drop, double rounding);
// ||x a||^2 beyond [s, q], for a q of these directions whose coefficients on x are t.
ITSPACE_API double left_squared(const Small& c, const Small& gram, const Small& t, const Small& a);

// The same where everything is known in coordinates of a basis with Gram matrix m: an m-orthonormal basis of `count` of
// its columns from `first` on, beyond the m-orthonormal columns of c. However short they were beyond c, the result has
// columns of length one. They are c a + t on those columns; `turn` becomes [a; t].
ITSPACE_API Small columns_beyond(const Small& c, const Small& m, Index first, Index count, double drop,
                                 Small* turn = nullptr);
ITSPACE_API Small energies(const Small& h, const Small& x);  // x'h x
// The same for columns_beyond() of Ritz vectors c with these values, to which they are h-orthogonal as well: t'h t - a'
// diag(values) a, h being that of the columns they were made of.
ITSPACE_API Small energies_beyond(const SmallVector& values, const Small& h, const Small& turn);

// The pencil (h, m): h = S'Sigma S, m = S'S. Ritz pairs with values descending and m-orthonormal vectors, the leading
// `count`. False where m is not positive definite or a number is not finite.
struct RitzPairs {
  SmallVector values;
  Small vectors;  // s x count
};
ITSPACE_API bool ritz_pairs(const Small& h, const Small& m, Index count, RitzPairs& out);

// The rank-r truncation of the Nystrom factor B = Sigma U theta^(-1/2) of Ritz vectors U is Sigma U a. `captured` is
// the sum of its r leading squared singular values: F(Sigma U a) <= tr Sigma - captured. k = (Sigma U)'(Sigma U), whose
// rounding is that of each column by itself, so that columns of any size keep their digits. theta is known up to
// `noise`: values of at most twice that are left out, and the others are divided by (theta + noise)^(1/2), so that BB'
// <= Sigma holds beyond doubt.
struct Polish {
  Small a;  // as many rows as there are Ritz vectors, r columns
  double captured = 0;
  bool finite = true;
};
ITSPACE_API void nystrom_polish(const SmallVector& theta, const Small& k, Index rank, double noise, Polish& out);
// a, turned by the orthogonal matrix that brings b a closest to y, for b'y = inner; as it is where there is none.
ITSPACE_API Small turned_closest(const Small& a, const Small& inner);
// What a basis with Gram matrix m, I but for rounding of storage, needs of its products with y to make y: m^(-1) along.
ITSPACE_API Small coordinates_of(const Small& m, const Small& along);

}  // namespace itspace
