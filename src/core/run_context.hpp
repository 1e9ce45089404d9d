// SPDX-License-Identifier: Apache-2.0
//
// What belongs to a whole run, from the call of align() on: the place its blocks live in, the target whose sweeps are
// counted, and the clock.
#pragma once

#include "core/counted_target.hpp"

#include <chrono>

namespace itspace {

template <Space S>
struct RunContext {
  RunContext(S& place, BasicTargetRef<S> of) : space(place), target(place, of) {}

  S& space;
  CountedTarget<S> target;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

}  // namespace itspace
