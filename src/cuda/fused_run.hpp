// SPDX-License-Identifier: Apache-2.0
//
// A run of the paper's solver in one launch (fused.hpp), with the trace that the general solver would have written.
#pragma once

#include <itspace/cuda/align.hpp>

#include "core/run_context.hpp"

#include <optional>

namespace itspace::cuda {

// The run, where this is one for the fused steps and they could certify every iterate; nothing elsewhere: the general
// solver then makes it from the start, which is left as it is.
//
// For a dense Sigma, up to 32 columns, or features in float32, up to 16, whose rows begin at multiples of 16 bytes; a
// fixed alpha in (0, 2), routes automatic and gram. Not where somebody looks in between (on_step, keep_iterates, a
// tolerance, a probe).
template <Storage Scalar>
std::optional<Result<Scalar>> run_fused(RunContext<Space<Scalar>>& context, const TargetArgument<Scalar>& target,
                                        const ConstView<Scalar>& start, const AlignOptions& options);

}  // namespace itspace::cuda
