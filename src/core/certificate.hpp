// SPDX-License-Identifier: Apache-2.0
//
// The polar certificate at Y, in r x r matrices.
//
// Let X be a basis (of q columns) of Sigma^(1/2)-images with Gram matrix theta = X'X, and let Y have coordinates c in
// it: Sigma^(1/2) Y = X c. On the operator routes X = Sigma^(1/2) Q, theta = Q'Sigma Q, c = R; on the factor routes X =
// Q_A from T'Q = Q_A R_A, theta = Q_A'Q_A, c = R_A R. With theta = C'C and the SVD C c = U S V',
//
//     polar(Sigma^(1/2) Y) = X m,   m = C^(-1) U V',   nuclear norm = sum S,
//
// and X itself is never formed: the caller lifts m to B = Sigma^(1/2) X m with the products it has.
#pragma once

#include "core/basis.hpp"

namespace itspace {

// Which right singular directions v_i of Sigma^(1/2) Y are null, that is, too short for the target to be seen in:
//   lambda_i / ||Y v_i||^2 <= energy ||Sigma||_2,   ||Y v_i|| <= length ||Y||,   or   s_i <= relative s_1.
struct NullRule {
  double target_norm = 0;  // an estimate of ||Sigma||_2
  double energy = 0;
  double length = 0;
  double relative = 0;
};

struct Certificate {
  Small m;                // q x r
  Small seen;             // q x rank: X seen is an orthonormal basis of the seen part of Sigma^(1/2) Y
  Small null_directions;  // r x (r - rank), orthonormal
  Index rank = 0;
  double nuclear_norm = 0;   // tr(G^(1/2)) over the seen directions
  double gap = 0;            // eps = nuclear_norm - tr(m' theta c) >= 0
  double feasibility = 0;    // ||X m||_2 before normalisation
  double orthogonality = 0;  // ||m' theta m - P||_F, P the projector on the directions that m serves
  double condition = 0;      // lambda_max/lambda_min of G; infinite where a direction is null
  double uncertainty = 0;    // of 2 tr(G^(1/2)), from seen directions so near to null that rounding moves them
  bool finite = true;
};

// `regularization` is delta/(tr(G)/r): singular values of m become s/sqrt(s^2 + delta) instead of 1.
void make_certificate(const Small& theta, const Small& coordinates, const Basis& basis, const NullRule& rule,
                      double regularization, Certificate& certificate);

// Measures certificate.m against theta and c, whatever it is: sets feasibility, orthogonality and gap, and divides m by
// max(1, feasibility) before the gap is taken.
void measure_certificate(const Small& theta, const Small& coordinates, const Small& projector,
                         Certificate& certificate);

}  // namespace itspace
