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
//
// A certificate must be feasible (||X m||_2 <= 1), or its promise is worth nothing. Rounding breaks that most in the
// directions where the target has little energy: what is measured is mended by shortening each direction by itself, and
// what cannot be measured, the doubt in the energies, is granted to the promise (promise_doubt).
#pragma once

#include "core/basis.hpp"

#include <algorithm>
#include <limits>
#include <memory>

namespace itspace {

// What sums over d products lose in a storage type: a share of them, and what is below the least number that has all
// its digits. A target all of whose entries are is not told apart from zero.
struct StorageRounding {
  double eps, vanishing;
};
template <Storage Scalar>
StorageRounding storage_rounding(Index dim) {
  using Limits = std::numeric_limits<Scalar>;
  return {static_cast<double>(Limits::epsilon()), static_cast<double>(dim) * static_cast<double>(Limits::min())};
}

// How finely the energies h_i = v_i'G v_i/||Y v_i||^2 are known, and which right singular directions v_i of
// Sigma^(1/2) Y are null, that is, too short for the target to be seen in:
//   h_i <= 2 noise (4 noise where roots of energies were rounded),   ||Y v_i|| <= length ||Y||,   or
//   s_i <= relative s_1.
struct NullRule {
  double noise = 0;         // 2 eps ||Sigma||_2 where products with Sigma were rounded, (2 eps)^2 ||Sigma||_2 with T
  bool of_roots = false;    // the rounding is that of sqrt(h), not of h: products with T were taken
  bool of_columns = false;  // G = Y'Sigma Y itself was formed: its rounding is that of Y's longest direction
  double length = 0;
  double relative = 0;
  bool single_precision = false;  // the blocks are: a gap far below their rounding is none
};

struct Certificate {
  Small m;                  // q x r, = served served_directions'
  Small served;             // q x p: the coefficients by directions, of very different sizes where energies are
  Small served_directions;  // r x p, orthonormal
  bool graded = false;      // they are so different that m, which mixes them, would lose the small ones in rounding
  Small seen;               // q x rank: X seen is an orthonormal basis of the seen part of Sigma^(1/2) Y
  Small directions;         // r x rank: the v_i of the seen part
  SmallVector doubt;        // of the seen directions: the share of h_i that may be rounding
  Small null_directions;    // r x (r - rank), orthonormal
  Index rank = 0;
  double nuclear_norm = 0;   // tr(G^(1/2)) over the seen directions, or what products reached of it
  double gap = 0;            // eps = nuclear_norm - tr(m' theta c) >= 0
  double feasibility = 0;    // ||X m||_2 before normalisation
  double orthogonality = 0;  // ||m' theta m - P||_F, P the projector on the directions that m serves
  double condition = 0;      // lambda_max/lambda_min of G; infinite where a direction is null
  double uncertainty = 0;    // of 2 tr(G^(1/2)), from the doubt of its directions and from the null ones
  bool by_products = false;  // made without a decomposition: the directions are those of the columns
  double noise = 0;          // then: the norm of theta's rounding, of which `doubt` is made
  bool finite = true;
};

// F(Y) = ||Y||^2 + tr Sigma - 2 tr(G^(1/2)), and how finely it is known: the rounding of its sums, and of tr(G^(1/2)).
inline double objective_of(const Certificate& certificate, double y_squared, double target_trace) {
  return std::max(0.0, y_squared + target_trace - 2 * certificate.nuclear_norm);
}
inline double resolution_of(const Certificate& certificate, double y_squared, double target_trace,
                            const StorageRounding& storage) {
  const double vanishing = target_trace > 0 ? storage.vanishing : 0;  // of nothing, nothing vanishes
  return 6 * storage.eps * (target_trace + y_squared) + vanishing + certificate.uncertainty;
}

// `regularization` is delta/(tr(G)/r): singular values of m become s/sqrt(s^2 + delta) instead of 1.
// A certificate of an operator route, where X is Sigma^(1/2) Q and ||Q x|| = ||x||, may be made of products instead of
// a decomposition (certificate_by_products.hpp).
// `work` keeps the memory that it takes from one call to the next; none is kept without.
struct CertificateWork;
ITSPACE_API void make_certificate(const Small& theta, const Small& coordinates, const Basis& basis,
                                  const NullRule& rule, double regularization, Certificate& certificate,
                                  bool may_use_products = false, CertificateWork* work = nullptr);
ITSPACE_API std::shared_ptr<CertificateWork> make_certificate_work();

// What a certificate is made of: m = columns diag(weights) directions', where X columns is orthonormal up to rounding.
struct CertificateParts {
  Small columns;        // q x p
  Small directions;     // r x p, orthonormal
  SmallVector weights;  // p, at most 1
  SmallVector doubt;    // p
  SmallVector margin;  // p: by how much more than measured a column may be too long (squared); it is shortened for that
};

// b such that diag(b)^(-1/2) a diag(b)^(-1/2) <= I, for a symmetric `a` that is nearly I.
SmallVector feasibility_bounds(const Small& a, const SmallVector& doubt);

// Columns that are orthonormal to this have their norm bounded rather than computed.
inline constexpr double near_orthonormal = 1e-11;

// Measures the parts against theta and c, whatever they are: sets feasibility, orthogonality and gap, and m with each
// direction shortened so that ||X m||_2 <= 1.
ITSPACE_API void measure_certificate(const Small& theta, const Small& coordinates, const CertificateParts& parts,
                                     Certificate& certificate);

// ||B v_i|| for the directions that are served, from W'W for the W with B = W m; and ||Y v_i||.
ITSPACE_API SmallVector image_lengths(const Small& w_gram, const Certificate& certificate);
ITSPACE_API SmallVector direction_lengths(const Basis& basis, const Certificate& certificate);

// Where energies are known to a share d_i, Q v_i may be too long by d_i/2, which spoils the promise of a step to Y+ by
// sum_i d_i ||B v_i|| ||Y+ v_i||: this, for the worse of Y+ = B and Y+ = Y. `images`: the ||B v_i||; none where they
// are in no doubt.
ITSPACE_API double promise_doubt(const SmallVector& images, const Basis& basis, const Certificate& certificate);

// The same of a certificate by products, from `image_gram`, B'B. Column by column the doubt is up to r times what is
// meant, since columns lie along no singular direction: a rounding D of theta moves the promise to Y+ by
// tr(D m B'Y+ m'), at most ||D|| ||B m'|| ||Y+ m'||.
ITSPACE_API double joint_promise_doubt(const Small& image_gram, const Basis& basis, const Certificate& certificate);

}  // namespace itspace
