// SPDX-License-Identifier: Apache-2.0
//
// What a figure was measured on.
#pragma once

#include "results.hpp"

namespace itspace::experiments {

Machine this_machine();

// Now, in UTC: 2026-01-31T12:00:00Z.
std::string utc_now();

}  // namespace itspace::experiments
