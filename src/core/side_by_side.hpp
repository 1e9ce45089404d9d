// SPDX-License-Identifier: Apache-2.0
//
// Runs of the paper's solver with few columns, several of them side by side: the tall blocks of each run are its own,
// and the r x r work of all lies in the lanes of vectors (kernels/lanes.hpp). One run alone, which has its columns in
// the lanes, gains most: nothing is decomposed, and nothing allocated.
//
// The certificate is that of make_certificate by products, on route qr. It is for the plain case, where every direction
// of Y is seen far above its rounding and every step promises to descend; a run that meets anything else (null
// directions, an ill-conditioned Y, an objection to the target, a promise at rounding level) is handed to PaperSolver
// at that iterate, which evaluates it anew and goes on.
#pragma once

#include <itspace/align.hpp>

#include "core/run_context.hpp"

#include <span>

namespace itspace {

template <Storage Scalar>
struct SmallRun {
  RunContext<HostSpace<Scalar>>* context;
  Block<Scalar> start;
  Result<Scalar> result = {};  // filled in
};

// Whether runs with these options can be made here.
ITSPACE_API bool suits_side_by_side(const AlignOptions& options, Index rank);

// @pre suits_side_by_side, and what PaperSolver asks for; the starts have `rank` columns.
template <Storage Scalar>
ITSPACE_API void run_side_by_side(std::span<SmallRun<Scalar>> runs, Index rank, const AlignOptions& options,
                                  const OnStep<Scalar>& on_step);

}  // namespace itspace
