// SPDX-License-Identifier: Apache-2.0
//
// The r x r work of several small problems side by side, one problem in each lane of a vector: what a decomposition of
// one small matrix waits for, lanes of other problems fill. Everything is made of products, square roots and divisions,
// the same for all lanes, so that no lane knows of its neighbours: the bits of a problem do not depend on them. A
// problem alone has its columns in the lanes instead, and its sums in the same order: the same bits again.
#pragma once

#include <itspace/block.hpp>

#include <span>

namespace itspace::kernels {

// Up to this many columns lanes are worth their trouble, also where only one of them is used.
constexpr Index most_lane_columns = 16;

// How many problems lie side by side on this machine.
Index lane_count();

enum class Arrangement { side_by_side, alone };

// Where the entries of n x n matrices lie, in double, aligned for vectors.
struct LanePlaces {
  Arrangement arrangement;
  Index n;

  Index row_stride() const;  // a matrix has n rows
  // Entry (i, j) of a problem's matrix lies i row_stride() + entry(j, problem) from its beginning.
  Index entry(Index j, Index problem, Index lanes) const {
    return arrangement == Arrangement::alone ? j : j * lanes + problem;
  }
};

// An odd polynomial a s + b s^3 + c s^5, for values in [lowest, 1] (core/polar.hpp).
struct LanePolynomial {
  double a, b, c, lowest;
};

// G = E (U'U) E for each problem, E the diagonal matrix of the columns' lengths: r = U E, inverse = E^(-1) U^(-1), both
// upper triangular, and how long U^(-1) is. Where G is not positive definite there are NaNs. Columns beyond n are zero,
// here and below.
void lane_basis(Arrangement arrangement, Index n, const double* gram, double* r, double* inverse,
                double* inverse_length);

struct LaneCertificateIn {
  const double *theta, *w_gram, *r, *inverse;  // as in core/certificate.hpp: Q'Sigma Q, W'W, Y = Q r, Q = Y inverse
  const double* noise;                         // by problems: of the energies
};

// By problems; core/certificate.cpp says what they mean.
struct LaneCertificateOut {
  double* m;                // n x n
  double* nuclear_norm;     // tr H, H = P'K
  double* gap;              // nuclear_norm - tr(m' theta r)
  double* orthogonality;    // ||a - I||_F, a = m'theta m before it was shortened
  double* asymmetry;        // ||(H - H')/2||_F
  double* theta_asymmetry;  // the largest |theta_ij - theta_ji|
  double* theta_size;       // the largest |theta_ij|
  double* largest;          // ||K||_F
  double* inverse_norm;     // ||K^(-1)||_F
  double* columns_squared;  // ||C^(-1) P||_F^2
  double* columns_dot_r;    // <C^(-1) P, r>
  double* doubt;            // promise_doubt
};

// theta = C'C, K = C r, P its polar factor by the polynomials, m = C^(-1) P with columns shortened to feasibility. What
// is not to be had is NaN.
void lane_certificate(Arrangement arrangement, Index n, const LaneCertificateIn& in,
                      std::span<const LanePolynomial> polynomials, const LaneCertificateOut& out);

}  // namespace itspace::kernels
