// SPDX-License-Identifier: Apache-2.0
//
// The solvers of the core, for blocks on a device. The fused run of all steps is asked first, and hands over to these
// where it meets what it cannot certify.
#include <itspace/cuda/align.hpp>

#include "core/align_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/require.hpp"
#include "core/ritz_solver_impl.hpp"
#include "core/truncation.hpp"
#include "cuda/fused_run.hpp"

namespace itspace {

template class PaperSolver<cuda::Space<float>>;
template class PaperSolver<cuda::Space<double>>;
template class RitzSolver<cuda::Space<float>>;
template class RitzSolver<cuda::Space<double>>;

}  // namespace itspace

namespace itspace::cuda {
namespace {

template <Storage Scalar>
void check_start(const TargetRef<Scalar>& target, Index rows, Index cols, const AlignOptions& options) {
  require(rows == target.dim(), "the start has ", rows, " rows and the target has dimension ", target.dim(),
          "; a start is a d x r factor of the target's dimension");
  check_options(target.dim(), target.has_factor(), options);
  check_start_cols(cols, target.dim());
}

template <Storage Scalar>
Result<Scalar> run(const TargetArgument<Scalar>& target, RunContext<Space<Scalar>>& context, Block<Scalar> start,
                   const AlignOptions& options, const OnStep<Scalar>& on_step) {
  if (target.entries() && !on_step)
    if (auto result = run_fused<Scalar>(context, *target.entries(), target.ref().trace(), start, options))
      return std::move(*result);
  const Index rank = start.cols();
  return run_from(context, std::move(start), rank, options, on_step);
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& start,
                     const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_start<Scalar>(target.ref(), start.rows, start.cols(), options);
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  Block<Scalar> first = space.make_block(start.rows, start.cols());
  space.copy(start, first);
  return run<Scalar>(target, context, std::move(first), options, on_step);
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                     const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_start<Scalar>(target.ref(), start.rows(), start.cols(), options);
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run<Scalar>(target, context, to_device<Scalar>(target.device(), start), options, on_step);
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, Index rank, const AlignOptions& options,
                     const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_options(target.ref().dim(), target.ref().has_factor(), options);
  check_rank(rank, target.ref().dim());
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run<Scalar>(target, context, make_random_start(context, rank, options.seed), options, on_step);
}

template <Storage Scalar>
Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& factor,
                            Route route) {
  require(factor.rows == target.ref().dim() && factor.cols() >= 1, "the factor is ", factor.rows, " x ", factor.cols(),
          " and the target has dimension ", target.ref().dim(), "; a factor is d x r with at least one column");
  check_options(target.ref().dim(), target.ref().has_factor(), evaluation_options(route));
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  Block<Scalar> at = space.make_block(factor.rows, factor.cols());
  space.copy(factor, at);
  return evaluate_at(context, std::move(at), factor.cols(), route);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                    \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&, const std::type_identity_t<ConstView<Scalar>>&, \
                                        const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&);             \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&,                                                 \
                                        const std::type_identity_t<ConstBlockView<Scalar>>&, const AlignOptions&,      \
                                        const std::type_identity_t<OnStep<Scalar>>&);                                  \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&, Index, const AlignOptions&,                     \
                                        const std::type_identity_t<OnStep<Scalar>>&);                                  \
  template Evaluation<Scalar> evaluate<Scalar>(const TargetArgument<Scalar>&,                                          \
                                               const std::type_identity_t<ConstView<Scalar>>&, Route);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda
