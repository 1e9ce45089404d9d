// SPDX-License-Identifier: Apache-2.0
#include <itspace/checkpoint.hpp>

#include "core/align_impl.hpp"
#include "core/require.hpp"
#include "core/truncation.hpp"

#include <iterator>
#include <optional>
#include <utility>

namespace itspace {
namespace {

template <Storage Scalar>
using Host = HostSpace<Scalar>;

template <Storage Scalar>
void check(TargetRef<Scalar> target, const AlignOptions& options, const Checkpoints<Scalar>& checkpoints) {
  check_options(target.dim(), target.has_factor(), options);
  require(options.route != Route::root,
          "route root computes with a root of the target's entries, of which no checkpoint is made; use route qr");
  require(checkpoints.every >= 1, "a checkpoint every ", checkpoints.every, " steps was asked for; give 1 or more");
}

// A stretch of the run ends at a checkpoint, and the next one begins with nothing but that. `begin` makes the first.
template <Storage Scalar, class Begin>
Result<Scalar> run_in_stretches(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                                const Checkpoints<Scalar>& checkpoints, const OnStep<Scalar>& on_step,
                                std::optional<Checkpoint<Scalar>> from, Begin begin) {
  std::vector<Block<Scalar>> iterates;
  for (;;) {
    std::optional<Block<Scalar>> reached;
    const OnStep<Scalar> watch = [&](const Step& step, const ConstBlockView<Scalar>& iterate) {
      if (on_step && on_step(step, iterate) == StepAction::stop) return StepAction::stop;
      if (step.index == 0 || step.index % checkpoints.every != 0 || step.index >= options.steps)
        return StepAction::proceed;
      reached = Block<Scalar>(iterate);
      return StepAction::stop;
    };
    Host<Scalar> space;
    RunContext<Host<Scalar>> context(space, target);
    Block<Scalar> start;
    if (from) {
      start = std::move(from->current);
      context.go_on_from({std::move(from->best), std::move(from->trace)});
    } else {
      start = begin(context);
    }
    Result<Scalar> result = run_from(context, std::move(start), rank, options, watch);
    iterates.insert(iterates.end(), std::move_iterator(result.iterates.begin()),
                    std::move_iterator(result.iterates.end()));
    if (!reached || result.status() != Status::stopped) {
      result.iterates = std::move(iterates);
      return result;
    }
    from = Checkpoint<Scalar>{std::move(*reached), std::move(result.factor), std::move(result.trace)};
    if (checkpoints.save) checkpoints.save(*from);
  }
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align_with_checkpoints(const TargetArgument<Scalar>& given,
                                      const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                      const AlignOptions& options,
                                      const std::type_identity_t<Checkpoints<Scalar>>& checkpoints,
                                      const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const TargetRef<Scalar> target = given;
  check(target, options, checkpoints);
  check_start(start.rows(), start.cols(), target.dim());
  return run_in_stretches<Scalar>(target, start.cols(), options, checkpoints, on_step, std::nullopt,
                                  [&](auto&) { return Block<Scalar>(start); });
}

template <Storage Scalar>
Result<Scalar> align_with_checkpoints(const TargetArgument<Scalar>& given, Index rank, const AlignOptions& options,
                                      const std::type_identity_t<Checkpoints<Scalar>>& checkpoints,
                                      const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const TargetRef<Scalar> target = given;
  check(target, options, checkpoints);
  check_rank(rank, target.dim());
  return run_in_stretches<Scalar>(target, rank, options, checkpoints, on_step, std::nullopt,
                                  [&](auto& context) { return make_random_start(context, rank, options.seed); });
}

template <Storage Scalar>
Result<Scalar> resume(const TargetArgument<Scalar>& given, const std::type_identity_t<Checkpoint<Scalar>>& from,
                      const AlignOptions& options, const std::type_identity_t<Checkpoints<Scalar>>& checkpoints,
                      const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const TargetRef<Scalar> target = given;
  check(target, options, checkpoints);
  const Index d = target.dim(), rank = from.current.cols(), reached = std::ssize(from.trace.steps) - 1;
  require(from.current.rows() == d && from.best.rows() == d && from.best.cols() == rank, "the checkpoint is of a ",
          from.current.rows(), " x ", rank, " factor and the target has dimension ", d,
          "; resume with the target of the run");
  check_start_cols(rank, d);
  require(reached >= 0 && reached < options.steps, "the checkpoint was made after step ", reached, " of a run of ",
          options.steps, " steps; resume with the steps of the run");
  return run_in_stretches<Scalar>(target, rank, options, checkpoints, on_step, from,
                                  [&](auto&) { return Block<Scalar>(); });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                 \
  template Result<Scalar> align_with_checkpoints<Scalar>(                                                           \
      const TargetArgument<Scalar>&, const std::type_identity_t<ConstBlockView<Scalar>>&, const AlignOptions&,      \
      const std::type_identity_t<Checkpoints<Scalar>>&, const std::type_identity_t<OnStep<Scalar>>&);               \
  template Result<Scalar> align_with_checkpoints<Scalar>(const TargetArgument<Scalar>&, Index, const AlignOptions&, \
                                                         const std::type_identity_t<Checkpoints<Scalar>>&,          \
                                                         const std::type_identity_t<OnStep<Scalar>>&);              \
  template Result<Scalar> resume<Scalar>(                                                                           \
      const TargetArgument<Scalar>&, const std::type_identity_t<Checkpoint<Scalar>>&, const AlignOptions&,          \
      const std::type_identity_t<Checkpoints<Scalar>>&, const std::type_identity_t<OnStep<Scalar>>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
