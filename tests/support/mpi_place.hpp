// SPDX-License-Identifier: Apache-2.0
//
// The suite in an mpi::Space: every rank of the job runs the same tests, on targets that see all rows. In a build
// without itspace::mpi the process says so and ends with the code for "skipped".
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>

namespace itspace::test {

template <Storage Scalar>
Result<Scalar> align_on_mpi(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                            const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step);
template <Storage Scalar>
Result<Scalar> align_on_mpi(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                            const std::type_identity_t<OnStep<Scalar>>& on_step);
template <Storage Scalar>
Evaluation<Scalar> evaluate_on_mpi(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                   Route route);

}  // namespace itspace::test
