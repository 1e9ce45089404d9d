// SPDX-License-Identifier: Apache-2.0
//
// Runs that can be killed: every N steps all that is kept of the run is handed out, and the run goes on from that
// alone.
//
// At a checkpoint after step k the solver is made anew from Y_k, as resume() does, so that a run which was killed and
// resumed ends in the same bits as one that was not. What a solver holds beside Y_k is lost on both: it makes the pass
// at Y_k once more (one sweep for each checkpoint, counted in the trace), and solver ritz draws new guard columns and
// starts again without the directions of the step before. Few checkpoints cost little; choose N so that N steps are
// what you can bear to lose.
//
//     auto result = align_with_checkpoints<double>(target, start, {.steps = 100}, {.every = 20, .save = save});
//     auto result = resume<double>(target, load(), {.steps = 100}, {.every = 20, .save = save});
#pragma once

#include <itspace/align.hpp>

#include <functional>

namespace itspace {

template <Storage Scalar>
struct Checkpoint {
  Block<Scalar> current;  // Y_k
  Block<Scalar> best;     // the best iterate so far
  Trace trace;            // rows 0 to k, complete
};

template <Storage Scalar>
struct Checkpoints {
  Index every = 10;  // steps; @pre 1 or more
  std::function<void(const Checkpoint<Scalar>&)> save = {};
};

// As align(), with a checkpoint after each `every` steps but the last. Route root, which computes with a root of the
// target's entries, is refused.
template <Storage Scalar>
ITSPACE_API Result<Scalar> align_with_checkpoints(const TargetArgument<Scalar>& target,
                                                  const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                                  const AlignOptions& options,
                                                  const std::type_identity_t<Checkpoints<Scalar>>& checkpoints,
                                                  const std::type_identity_t<OnStep<Scalar>>& on_step = {});
template <Storage Scalar>
ITSPACE_API Result<Scalar> align_with_checkpoints(const TargetArgument<Scalar>& target, Index rank,
                                                  const AlignOptions& options,
                                                  const std::type_identity_t<Checkpoints<Scalar>>& checkpoints,
                                                  const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// Goes on behind a checkpoint of a run with the same target and options. on_step is called for the rows that are new;
// the trace has all of them, and Result::iterates those that are new.
template <Storage Scalar>
ITSPACE_API Result<Scalar> resume(const TargetArgument<Scalar>& target,
                                  const std::type_identity_t<Checkpoint<Scalar>>& from, const AlignOptions& options,
                                  const std::type_identity_t<Checkpoints<Scalar>>& checkpoints,
                                  const std::type_identity_t<OnStep<Scalar>>& on_step = {});

}  // namespace itspace
