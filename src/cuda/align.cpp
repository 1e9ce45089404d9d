// SPDX-License-Identifier: Apache-2.0
//
// The solvers of the core, for blocks on a device. The fused run of all steps is asked first, and hands over to these
// where it meets what it cannot certify.
#include <itspace/cuda/align.hpp>

#include "core/align_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/ritz_solver_impl.hpp"
#include "cuda/fused_run.hpp"

namespace itspace::cuda {
namespace {

template <Storage Scalar>
Block<Scalar> copy_of(Space<Scalar>& space, const ConstView<Scalar>& block) {
  Block<Scalar> copy = space.make_block(block.rows, block.cols());
  space.copy(block, copy);
  return copy;
}

// `own` makes the block that the general solver may write to.
template <Storage Scalar, class Own>
Result<Scalar> run(const TargetArgument<Scalar>& target, RunContext<Space<Scalar>>& context,
                   const ConstView<Scalar>& start, const Own& own, const AlignOptions& options,
                   const OnStep<Scalar>& on_step) {
  if (!on_step)
    if (auto result = run_fused<Scalar>(context, target, start, options)) return std::move(*result);
  return run_from(context, own(), start.cols(), options, on_step);
}

template <Storage Scalar>
Result<Scalar> run(const TargetArgument<Scalar>& target, RunContext<Space<Scalar>>& context, Block<Scalar> start,
                   const AlignOptions& options, const OnStep<Scalar>& on_step) {
  return run<Scalar>(
      target, context, ConstView<Scalar>(start), [&] { return std::move(start); }, options, on_step);
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& start,
                     const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_run(target.ref(), start.rows, start.cols(), options);
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run<Scalar>(
      target, context, start, [&] { return copy_of<Scalar>(space, start); }, options, on_step);
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                     const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_run(target.ref(), start.rows(), start.cols(), options);
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run<Scalar>(target, context, to_device<Scalar>(target.device(), start), options, on_step);
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, Index rank, const AlignOptions& options,
                     const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_run(target.ref(), rank, options);
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run<Scalar>(target, context, make_random_start(context, rank, options.seed), options, on_step);
}

template <Storage Scalar>
Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& factor,
                            Route route) {
  check_evaluation(target.ref(), factor.rows, factor.cols(), route);
  Space<Scalar> space(target.device());
  RunContext<Space<Scalar>> context(space, target.ref());
  return evaluate_at(context, copy_of<Scalar>(space, factor), factor.cols(), route);
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
