// SPDX-License-Identifier: Apache-2.0
//
// How much rank a covariance needs: the explained-variance rule of principal component analysis. And how much it has,
// in effect, where no eigenvalue is 0 but few count.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <cstdint>

namespace itspace {

inline constexpr double default_explained_share = 0.95;

// The least r with lambda_1 + ... + lambda_r >= share * trace, the eigenvalues given in descending order; their number
// where they do not reach it. @pre 0 < share <= 1.
ITSPACE_API Index rank_explaining(const Eigen::VectorXd& descending, double trace, double share);

// The same for a target. Up to dimension 1024 from all its eigenvalues (one pass with d columns); above it from Ritz
// values, which are lower bounds of the eigenvalues, of blocks that double until they explain enough (four passes
// each): the rank is then enough, and may be a little more than the least.
template <Storage Scalar>
ITSPACE_API Index rank_explaining(const TargetArgument<Scalar>& target, double share = default_explained_share,
                                  std::uint64_t seed = 0);

// How many directions carry the variance, by two measures; 0 where there is none. Both are d for a multiple of the
// identity and 1 for a single direction, whatever the scale.
struct EffectiveRank {
  double participation_ratio = 0;  // (sum lambda)^2 / sum lambda^2
  double intrinsic_dimension = 0;  // sum lambda / lambda_max
};
// From all eigenvalues, in descending order, and their sum, the trace.
ITSPACE_API EffectiveRank effective_rank(const Eigen::VectorXd& descending, double trace);

}  // namespace itspace
