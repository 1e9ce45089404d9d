// SPDX-License-Identifier: Apache-2.0
//
// The polar certificate without a decomposition, for the plain case: every direction is seen far above its rounding.
//
// The polar factor P of K = C c (certificate.hpp) is made by products (polar.hpp), and any orthonormal directions will
// do, so they are those of the columns: m = C^(-1) P. What is not exact about it is measured, in double: with
// H = m'theta c = S + A, S symmetric and A not,
//
//     tr S <= ||K||_* <= tr S + ||A||_F^2/(2 s_min(S)),
//
// since tr X^(1/2) is concave: tr (H'H)^(1/2) <= tr S + tr(S^(-1)(H'H - S^2))/2. So a factor that is turned against the
// true one by some roundings of single precision loses the square of that, and the gap says how much.
#pragma once

#include "core/certificate.hpp"
#include "core/polar.hpp"

namespace itspace {

// What is measured of a polar factor P of K = C c that was made by products, H = P'K being symmetric but for its
// rounding; where the matrices are elsewhere (in lanes, on a device) this is all that is known of them.
struct PolarMeasures {
  double nuclear_norm = 0;   // tr H
  double largest = 0;        // singular value of K
  double smallest = 0;       // an estimate of the least one; 0: not known
  double asymmetry = 0;      // ||(H - H')/2||_F
  double orthogonality = 0;  // as in Certificate
  double rounding = 0;       // of tr H by that of the energies: sum_i s_i noise/h_i
};

// Such a certificate of r columns, without its matrices and its gap: every direction is seen, and nearly orthonormal.
ITSPACE_API Certificate certificate_of(const PolarMeasures& measures, Index r);

// theta = C'C and c, brought to order one.
struct ScaledData {
  const Small &theta, &coordinates;
  const Small& lower;  // C'
  int half, other;     // by which powers of two theta (twice) and the coordinates were divided
};

// The matrices that it takes.
struct ProductsWork {
  Small k, lower_inverted, k_inverse, polar, m_transposed, m_theta, excess, h;
  kernels::SmallOf<float> half, m, correction;
  PolarWork of_polar;
};

// As good as the certificate of a decomposition, but for a gap of some hundred roundings of double (where the blocks
// are in single precision, of some hundredths of theirs), and with an estimate (from below) of the condition number.
// False where a direction may be null, or where the products did not converge; the certificate is then anything.
bool certify_by_products(const ScaledData& data, const Basis& basis, const NullRule& rule, ProductsWork& work,
                         Certificate& certificate);

}  // namespace itspace
