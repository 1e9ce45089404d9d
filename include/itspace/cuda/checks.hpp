// SPDX-License-Identifier: Apache-2.0
//
// What data on a device must be, looked at where it lies: one sweep and one wait each. The rules are the host's
// (covariance.hpp); what does not keep them throws std::invalid_argument, calling it `what`.
#pragma once

#include <itspace/cuda/space.hpp>

#include <string_view>

namespace itspace::cuda {

template <Storage Scalar>
ITSPACE_API void check_finite(const Device& device, const std::type_identity_t<ConstView<Scalar>>& block,
                              std::string_view what);

// Square, finite, symmetric up to d eps max|a_ij| with the eps of float, and no variance below that limit. Returns the
// largest |a_ij - a_ji|: products on a device read rows as they lie, so that what is not exactly symmetric should be
// averaged with its transpose first.
template <Storage Scalar>
ITSPACE_API double check_symmetric(const Device& device, const std::type_identity_t<ConstView<Scalar>>& sigma,
                                   std::string_view what);

// Whether sigma + d eps max(a_ii) I has a Cholesky factor, with the eps of float: then it is a covariance by the rule
// of check_covariance (covariance.hpp). Where it has none, and where d is above 46340, that one judges, on the host.
// Needs cuBLAS and cuSOLVER at run time, see cuda/distance.hpp. @pre check_symmetric has nothing against it.
template <Storage Scalar>
ITSPACE_API bool is_semidefinite(const Device& device, const std::type_identity_t<ConstView<Scalar>>& sigma);

}  // namespace itspace::cuda
