// SPDX-License-Identifier: Apache-2.0
//
// The leading eigenpairs of a symmetric operator, to a residual of 1e-8, for the truncations of the dense methods.
//
// Block Lanczos with full orthogonalisation and Rayleigh-Ritz, S = [Q, AQ, A^2 Q, ...] from a random Q of four columns,
// restarted with its leading Ritz vectors when it has grown to four times the rank (thick restart, Wu and Simon 2000).
// What it returns has been confirmed by a fresh random block. "Leading" means algebraically largest; the operator need
// not be positive.
#pragma once

#include <itspace/block.hpp>

#include <functional>

namespace itspace::baselines {

struct LeadingPairs {
  SmallVector values;   // descending
  Small vectors;        // d x count, orthonormal
  Index products = 0;   // blocks the operator was applied to
  double residual = 0;  // max_i ||A v_i - lambda_i v_i|| / max |theta|
  bool converged = false;
};

// out = A in, for blocks of columns.
using ColumnsRef = Eigen::Ref<Small>;
using SymmetricOperator = std::function<void(const Eigen::Ref<const Small>& in, ColumnsRef out)>;

// @pre dim >= 256 and dim >= 6 count.
LeadingPairs leading_pairs_by_krylov(const SymmetricOperator& apply, Index dim, Index count);

// Of a dense symmetric matrix: by the iteration above where d is large enough for it to pay, and by LAPACK (dsyevr by
// index) where it is not or where the iteration did not converge. Adds its sweeps over the matrix to `passes`, d for
// LAPACK's reduction.
LeadingPairs leading_pairs(const Small& a, Index count, Index& passes);

// Of w diag(weights) w' without forming it; two sweeps, over w' and over w, per product.
LeadingPairs leading_pairs_of_product(const Small& w, const SmallVector& weights, Index count, Index& passes);

// V diag(values)^(1/2), negative values taken as 0.
Block<double> factor_of(const LeadingPairs& pairs);

}  // namespace itspace::baselines
