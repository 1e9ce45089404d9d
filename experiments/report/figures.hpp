// SPDX-License-Identifier: Apache-2.0
//
// The figures of both experiments, as drawings for gnuplot.
#pragma once

#include "gnuplot.hpp"
#include "measures.hpp"

namespace itspace::experiments::report {

// The paper's figure 2: the gap against t_alg and against passes, log axes, thresholds dashed. A point is the median
// over the seeds of an iterate; a curve ends where the first of its runs does.
Drawing gap_curves(const Results& results, const AlignmentInstance& instance);

// One row per instance and drift: the value against the budget under each map, at the severity nearest the paper's
// 1.70, and the value against the severity.
Drawing drift_curves(const Results& results, const std::vector<const DriftInstance*>& instances);

}  // namespace itspace::experiments::report
