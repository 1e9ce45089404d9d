// SPDX-License-Identifier: Apache-2.0
//
// Where the suite makes its runs. With ITSPACE_TEST_PLACE=split:P in the environment the solvers run in a SplitSpace of
// P parts, with cuda on a GPU, with mpi on a job's ranks (other_place.hpp), else on the host; the tests are the same.
#pragma once

#include <itspace/align.hpp>
#include <itspace/barycenter.hpp>
#include <itspace/evaluate.hpp>

#include <vector>

namespace itspace::test {

// 0: on the host.
Index parts_of_this_place();

template <Storage Scalar>
Result<Scalar> align_here(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                          const AlignOptions& options = {}, const std::type_identity_t<OnStep<Scalar>>& on_step = {});
template <Storage Scalar>
Result<Scalar> align_here(TargetRef<Scalar> target, Index rank, const AlignOptions& options = {},
                          const std::type_identity_t<OnStep<Scalar>>& on_step = {});
template <Storage Scalar>
Evaluation<Scalar> evaluate_here(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                 Route route = Route::automatic);

// From that start; a GPU has none of its own, there it is the host's.
template <Storage Scalar>
Barycenter<Scalar> barycenter_here(const std::vector<TargetRef<Scalar>>& targets, const Eigen::VectorXd& weights,
                                   const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                   const BarycenterOptions& options = {});

// The same in so many parts, wherever the suite runs.
template <Storage Scalar>
Result<Scalar> align_split(Index parts, TargetRef<Scalar> target,
                           const std::type_identity_t<ConstBlockView<Scalar>>& start, const AlignOptions& options = {},
                           const std::type_identity_t<OnStep<Scalar>>& on_step = {});

}  // namespace itspace::test
