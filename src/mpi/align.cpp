// SPDX-License-Identifier: Apache-2.0
//
// The solvers of the core, for blocks whose rows are spread.
#include <itspace/mpi/align.hpp>

#include "core/align_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/require.hpp"
#include "core/ritz_solver_impl.hpp"

namespace itspace::mpi {
namespace {

template <Storage Scalar>
OnStep<Scalar> agreed_upon(const Communicator& ranks, const OnStep<Scalar>& on_step) {
  if (!on_step) return {};
  return [ranks, &on_step](const Step& step, const ConstView<Scalar>& y) {
    return ranks.any(on_step(step, y) == StepAction::stop) ? StepAction::stop : StepAction::proceed;
  };
}

template <Storage Scalar>
Block<Scalar> copy_of(Space<Scalar>& space, const ConstView<Scalar>& block) {
  Block<Scalar> copy = space.make_block(block.rows, block.cols());
  require(block.local_rows == copy.local().rows() && block.first == copy.first_row(), "this rank has rows ",
          block.first, " to ", block.first + block.local_rows, " of a block of ", block.rows,
          "; its share are the rows ", copy.first_row(), " to ", copy.first_row() + copy.local().rows());
  space.copy(block, copy);
  return copy;
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& start,
                     const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_run(target.ref(), start.rows, start.cols(), options);
  Space<Scalar> space(target.ranks());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run_from(context, copy_of<Scalar>(space, start), start.cols(), options,
                  agreed_upon<Scalar>(target.ranks(), on_step));
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& target, Index rank, const AlignOptions& options,
                     const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_run(target.ref(), rank, options);
  Space<Scalar> space(target.ranks());
  RunContext<Space<Scalar>> context(space, target.ref());
  return run_from(context, make_random_start(context, rank, options.seed), rank, options,
                  agreed_upon<Scalar>(target.ranks(), on_step));
}

template <Storage Scalar>
Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& factor,
                            Route route) {
  check_evaluation(target.ref(), factor.rows, factor.cols(), route);
  Space<Scalar> space(target.ranks());
  RunContext<Space<Scalar>> context(space, target.ref());
  return evaluate_at(context, copy_of<Scalar>(space, factor), factor.cols(), route);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                    \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&, const std::type_identity_t<ConstView<Scalar>>&, \
                                        const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&);             \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&, Index, const AlignOptions&,                     \
                                        const std::type_identity_t<OnStep<Scalar>>&);                                  \
  template Evaluation<Scalar> evaluate<Scalar>(const TargetArgument<Scalar>&,                                          \
                                               const std::type_identity_t<ConstView<Scalar>>&, Route);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::mpi
