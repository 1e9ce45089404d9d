// SPDX-License-Identifier: Apache-2.0
//
// The polar factor of an r x r matrix by products alone: no decomposition, so that it runs at the speed of products on
// every core.
//
// X <- a X + b XX'X + c (XX')^2 X moves every singular value s of X to p(s) = a s + b s^3 + c s^5 and leaves the
// singular vectors. With the polynomials that bring an interval [l, 1] closest to 1, each for the interval that the one
// before leaves, a matrix of condition number 1/l needs few of them: 5 for 50, 8 for 1e4, 11 for 1e6.
//
// Where the inverse is at hand, a step of Newton's iteration comes first, for no product: it brings a condition number
// of 50 to 4, and 1e4 to 50.
//
// Rounding turns the factor against the true one by eps times the condition number in the directions of small singular
// values. What is lost of <polar, k> is of second order in that.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include "kernels/small_products.hpp"

#include <span>
#include <vector>

namespace itspace {

// p(s) = a s + b s^3 + c s^5, the best for [lowest, 1], scaled to at most 1 there. Each is for what the one before it
// leaves; the last bring what is left to 1 to rounding.
struct OddPolynomial {
  double a = 0, b = 0, c = 0;
  double lowest = 0;
};
// What is above 1 by rounding is driven off, up to twenty-fold by each: the more of them, the more they need a cushion,
// with which they are at most 1 up to there. @pre 0 < lowest < 1 <= cushion.
ITSPACE_API std::vector<OddPolynomial> polar_polynomials_from(double lowest, double cushion);
ITSPACE_API std::span<const OddPolynomial> polar_polynomials();  // from 1/2 over the condition number below

// The largest condition numbers that polar_by_products takes, and the one in single precision.
inline constexpr double most_polar_condition = 1e6, most_single_condition = 3e4;

// polar = (kk')^(-1/2) k for a k with no more rows than columns, which has orthonormal rows. `smallest` is a lower
// bound of k's singular values; where it is above one of them, the rows are the less orthonormal. False where k is too
// ill-conditioned, or not finite. @pre entries whose fourth powers are numbers.
// `work` is memory that is kept from one call to the next.
struct PolarWork {
  template <Storage Scalar>
  struct Powers {
    kernels::SmallOf<Scalar> x, squared, fourth, moved;
  };
  Powers<float> in_single;
  Powers<double> in_double;
};
bool polar_by_products(const Small& k, double smallest, Small& polar, PolarWork& work);
// The same with most products in single precision: orthonormal to some of its roundings, and turned against the true
// one by as many in the directions of large singular values, by that times the condition number in the others.
bool single_polar_by_products(const Small& k, double smallest, Small& polar, PolarWork& work);

// A square k brought nearer to its polar factor, which it keeps: (g k + k^(-T)/g)/2, whose singular values are
// (gs + 1/(gs))/2 >= 1 for those of k. By estimates of the largest and the smallest of these, g = (largest
// smallest)^(-1/2); no bound depends on them. `inverse_transposed` is k^(-T).
ITSPACE_API void newton_step(const Small& k, const Small& inverse_transposed, double largest, double smallest,
                             Small& out);

// L^(-1) for kk' = LL', k with no more rows than columns: a matrix with the inverse singular values of k, to a percent.
// Rounding moves the eigenvalues of kk' by no more than (cols + 2 rows) eps ||k||^2; the matrix is empty where the
// least is not a hundred times that.
Small inverse_root(const Small& k);

// The orthogonal matrix closest to a square k, U V'; false where k is not finite.
ITSPACE_API bool closest_orthogonal(const Small& k, Small& out);

// By a decomposition, for any shape: U V' over the singular directions that are more than rounding, the polar factor
// where `a` has full rank. @pre a is finite.
ITSPACE_API Small compact_polar(const Small& a);

}  // namespace itspace
