// SPDX-License-Identifier: Apache-2.0
//
// What belongs to a whole run, from the call of align() on: the place its blocks live in, the target whose sweeps are
// counted, the clock, and what there was before, where the run goes on behind a checkpoint.
#pragma once

#include <itspace/trace.hpp>

#include "core/counted_target.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace itspace {

// A run up to the iterate that the next stretch of it starts from.
template <Space S>
struct Before {
  typename S::Block best;
  Trace trace;  // the last row is that of the start
};

template <Space S>
struct RunContext {
  RunContext(S& place, BasicTargetRef<S> of) : space(place), target(place, of) {}

  // Sweeps and seconds are counted on from there.
  void go_on_from(Before<S> earlier) {
    target.count_from(earlier.trace.passes_total);
    if (!earlier.trace.steps.empty())
      begin -= std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(earlier.trace.steps.back().seconds));
    before = std::move(earlier);
  }
  // The row that a run begins with.
  Index first_row() const { return before ? static_cast<Index>(before->trace.steps.size()) - 1 : 0; }

  S& space;
  CountedTarget<S> target;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::optional<Before<S>> before;
};

}  // namespace itspace
