// SPDX-License-Identifier: Apache-2.0
//
// What batches have in common, wherever their problems are solved.
#pragma once

#include <itspace/batch.hpp>

namespace itspace {

struct StackShape {
  Index count, rows, cols;
};

// All that a batch is asked before it begins: from starts of that shape, or from random ones.
ITSPACE_API void check_stacks(const StackShape& targets, const StackShape& starts, const AlignOptions& options,
                              const BatchOptions& batch);
ITSPACE_API void check_stack(const StackShape& targets, Index rank, const AlignOptions& options,
                             const BatchOptions& batch);

// No problem has an outcome yet.
ITSPACE_API void make_outcomes(Index count, Index dim, Index rank, Index steps, bool keep_traces,
                               BatchOutcomes& outcomes);

// What the trace says of problem i, but for what needs memory: its reason, and the trace itself.
ITSPACE_API void store_trace(Index i, const Trace& trace, BatchOutcomes& outcomes) noexcept;

// The reason of a problem without a run, in a call that was stopped.
inline constexpr const char* stopped_before = "the call was stopped before this problem was begun";

}  // namespace itspace
