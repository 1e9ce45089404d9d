// SPDX-License-Identifier: Apache-2.0
//
// The sum of the singular values of a square matrix K by products alone, for places where products are fast and
// decompositions are not, with a bound on what it misses.
//
// Polynomials bring X = K near its polar factor (polar.hpp). What is left shows in E = I - X'X: with the singular
// values s_i of K and p_i <= 1 of X, e_i = 1 - p_i^2, and
//
//     sum s_i = <X, K> + 1/2 <X, KE> + 3/8 <X, KE^2> + missed,   0 <= missed <= sum s_i e_i^3 <= ||KE^2|| ||E||,
//
// since 1 - (1 - e)^(1/2) (1 + e/2 + 3/8 e^2) is between 0 and e^3. So a singular value that was too small to be
// brought to 1 is in the bound with no more than itself, and needs not be known beforehand. Rounding is not in it: each
// singular value errs by about eps ||K||.
#pragma once

#include "core/polar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace itspace {

struct NuclearNorm {
  double value = 0;
  double missed = std::numeric_limits<double>::infinity();  // the sum is in [value, value + missed], but for rounding
  int products = 0;                                         // of d x d matrices
};

// Work is a place with d x d matrices:
//   Matrix make();
//   multiply(op_a, a, op_b, b, c)     c = op(a) op(b); an op is `true` for the transpose
//   combine(x, a, y, diagonal, c)     c = x a + y c + diagonal I
//   inner(a, b)                       sum a_ij b_ij
// `smallest` is a guess of the smallest singular value; too high a guess costs rounds of more polynomials, too low a
// one polynomials that were not needed. `enough(value, missed)` ends the rounds.
template <class Work, class Enough>
NuclearNorm nuclear_norm(Work& work, const typename Work::Matrix& k, double smallest, const Enough& enough) {
  using Matrix = typename Work::Matrix;
  // A later round begins with what the one before left behind: small singular values grow a hundredfold in it.
  constexpr double least_guess = 1e-12, highest_guess = 0.3, guess_of_later_rounds = 1e-2, cushion = 1.01;
  constexpr int most_rounds = 3;
  // Where all of [l, 1] is as near to 1, the formula above knows the sum to 1e-12 for any d of practice.
  constexpr double near_one = 1 - 1e-5;
  NuclearNorm found;
  Matrix x = work.make(), next = work.make(), s = work.make(), q = work.make();
  const auto multiply = [&](bool op_a, const Matrix& a, bool op_b, const Matrix& b, Matrix& c) {
    work.multiply(op_a, a, op_b, b, c);
    ++found.products;
  };
  const Matrix* at = &k;
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<OddPolynomial> polynomials;
    if (round > 0) polynomials = polar_polynomials_from(guess_of_later_rounds, cushion);
    for (std::size_t step = 0; step == 0 || (step < polynomials.size() && polynomials[step].lowest < near_one);
         ++step) {
      multiply(true, *at, false, *at, s);  // X'X
      multiply(false, s, false, s, q);
      double scale = 1;
      if (at == &k) {
        // ||X||_2 <= ||(X'X)^2||_F^(1/4).
        const double bound = std::pow(work.inner(q, q), 0.125);
        if (!std::isfinite(bound) || !(bound > 0)) return found;
        scale = 1 / bound;
        polynomials = polar_polynomials_from(std::clamp(smallest * scale, least_guess, highest_guess), cushion);
      }
      const OddPolynomial& p = polynomials[step];
      work.combine(p.b * std::pow(scale, 3), s, p.c * std::pow(scale, 5), p.a * scale, q);
      multiply(false, *at, false, q, next);
      std::swap(x, next);
      at = &x;
    }
    multiply(true, x, false, x, s);
    work.combine(-1, s, 0, 1, q);  // E
    multiply(false, k, false, q, next);
    multiply(false, next, false, q, s);  // KE^2
    found.value = work.inner(x, k) + 0.5 * work.inner(x, next) + 0.375 * work.inner(x, s);
    found.missed = std::sqrt(work.inner(s, s) * work.inner(q, q));
    if (!std::isfinite(found.value) || !std::isfinite(found.missed)) {
      found.missed = std::numeric_limits<double>::infinity();
      return found;
    }
    if (enough(found.value, found.missed)) return found;
  }
  return found;
}

}  // namespace itspace
