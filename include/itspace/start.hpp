// SPDX-License-Identifier: Apache-2.0
//
// Where a run starts. A start is a d x r block; these make one from what a user has at hand. An explicit factor needs
// no function: pass it to align, or cut it to the rank budget with truncate_factor (covariance.hpp). All of them work
// in double; Data is the type of what they read where it is not that of the start (mixed precision, see targets.hpp).
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <type_traits>

namespace itspace {

// The rank-r truncation of a covariance: U_r diag(lambda_r)^(1/2).
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API Block<Scalar> start_from_covariance(const std::type_identity_t<ConstBlockView<Data>>& sigma, Index rank);

// The rank-r truncation of the covariance of features, through the smaller of n and d; no d x d matrix where n < d.
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API Block<Scalar> start_from_features(const std::type_identity_t<ConstBlockView<Data>>& features, Index rank,
                                              const Eigen::VectorXd& weights = {});

// The centred features themselves, Zc'/sqrt(n - 1): d x n, so r = n.
template <Storage Scalar>
ITSPACE_API Block<Scalar> start_from_all_features(const ConstBlockView<Scalar>& features,
                                                  const Eigen::VectorXd& weights = {});

// The rank-r truncation of any target: through its factor where it has one of at most d columns, else through its d x d
// entries (one pass with d columns).
template <Storage Scalar>
ITSPACE_API Block<Scalar> start_from_target(const TargetArgument<Scalar>& target, Index rank);

// Sigma*Omega with seeded Gaussian Omega, scaled to ||Y0||^2 = tr Sigma. One pass over the target. Products or a trace
// that are not finite throw std::invalid_argument; align() without a start ends as not_finite there.
template <Storage Scalar>
ITSPACE_API Block<Scalar> random_start(const TargetArgument<Scalar>& target, Index rank, std::uint64_t seed = 0);

}  // namespace itspace
