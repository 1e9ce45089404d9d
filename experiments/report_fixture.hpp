// SPDX-License-Identifier: Apache-2.0
//
// Made-up results for the tests of the report: plausible shapes, invented numbers, nothing measured.
#pragma once

#include "results.hpp"

namespace itspace::experiments::fixture {

// 17 methods, nine alignment instances (one failed, one skipped) and four of covdrift (one failed), three seeds, with
// thresholds missed, objectives that rise, and adaptation that hurts.
Results made_up_results();

}  // namespace itspace::experiments::fixture
