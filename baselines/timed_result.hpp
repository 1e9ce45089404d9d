// SPDX-License-Identifier: Apache-2.0
//
// A Result with the paper's clocks. Row i of the trace has its own entry in both lists:
//
//     t_alg = update + projection    (appendix D.2; checks of a line search are updates, logging is neither)
//     end to end = preprocessing + t_alg
//
// Trace::steps[i].passes counts sweeps over a d x d matrix (the target, a function of it, or the current iterate,
// projection included); an eigendecomposition of a d x d matrix counts as d sweeps, which is what its reduction to
// tridiagonal form makes. Trace::steps[i].seconds is t_alg.
#pragma once

#include <itspace/align.hpp>

#include <vector>

namespace itspace::baselines {

struct Timing {
  double preprocessing_seconds = 0;                        // what depends on the target alone, such as its root; once
  std::vector<double> update_seconds, projection_seconds;  // cumulative, one per row of the trace
  Index checks = 0;                                        // objectives evaluated inside the method (backtracking)
};

struct TimedResult {
  Result<double> result;  // iterates[i] is the rank-r factor of row i; row 0 is the start, truncated
  Timing timing;
};

}  // namespace itspace::baselines
