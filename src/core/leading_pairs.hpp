// SPDX-License-Identifier: Apache-2.0
//
// The leading eigenpairs of a covariance from its products with blocks alone: Rayleigh-Ritz on the block Krylov space
// of a seeded random start, [X, Sigma X, Sigma^2 X, ...], with all products kept. Where a spectrum falls off it takes a
// small part of the d^3 of an eigendecomposition; where it does not it gives up early, and the caller decomposes.
#pragma once

#include <itspace/block.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"

#include <functional>
#include <optional>

namespace itspace {

struct LeadingPairs {
  Eigen::VectorXd values;  // descending
  Dense vectors;           // orthonormal columns
};

// out <- Sigma in, for a symmetric Sigma.
using BlockProduct = std::function<void(const ConstBlockView<double>& in, BlockView<double> out)>;

// Whether `count` pairs in `dim` dimensions are few enough to try: the one place that decides it.
bool worth_iterating(Index dim, Index count);

// The `count` largest pairs, each with ||Sigma v - theta v|| <= d eps ||Sigma||, which is what LAPACK promises; nothing
// where they are not worth_iterating, are not found within d/3 columns, or may not be the largest. That they are is
// checked three times: as many columns as pairs begin the space, unless fewer found no eigenvalue that often; the next
// Ritz value has converged too, or as far as it takes to stay below them; and random columns outside of them show,
// after a power step, no larger Rayleigh quotient. The work of giving up is about a third of the eigendecomposition.
std::optional<LeadingPairs> leading_pairs(Index dim, Index count, const BlockProduct& product);

// The same of a covariance that is spelled out. @pre square and finite.
template <Storage Scalar>
std::optional<LeadingPairs> leading_pairs_of(const ConstBlockView<Scalar>& sigma, Index count);

// The leading left singular part U_r S_r of a factor, with its squares, through the smaller side. Products with F F'
// know an eigenvalue up to eps of the largest, singular values of F up to the root of that: nothing, too, where one of
// them is below 1e-6 of the largest.
struct LeadingPart {
  Eigen::VectorXd squares;  // descending
  Dense part;
};
std::optional<LeadingPart> leading_part_of(const Dense& factor, Index count);

// The same of the centred samples T, T T' = Sigma (feature_moments.hpp), from the features as they lie.
template <Storage Scalar>
std::optional<LeadingPart> leading_part_of_features(const ConstBlockView<Scalar>& features, const Moments& moments,
                                                    Index count);

}  // namespace itspace
