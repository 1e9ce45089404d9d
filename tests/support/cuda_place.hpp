// SPDX-License-Identifier: Apache-2.0
//
// The suite on a GPU: the solvers run in a cuda::Space, on targets of the host, whose products are fetched from there.
// Where there is no device, or no itspace::cuda in this build, the process says so and ends with the code for
// "skipped".
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>

namespace itspace::test {

inline constexpr int skipped_exit_code = 77;

template <Storage Scalar>
Result<Scalar> align_on_cuda(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                             const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step);
template <Storage Scalar>
Result<Scalar> align_on_cuda(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                             const std::type_identity_t<OnStep<Scalar>>& on_step);
template <Storage Scalar>
Evaluation<Scalar> evaluate_on_cuda(TargetRef<Scalar> target,
                                    const std::type_identity_t<ConstBlockView<Scalar>>& factor, Route route);

}  // namespace itspace::test
