// SPDX-License-Identifier: Apache-2.0
#include "targets/batch_parts.hpp"

#include "core/align_impl.hpp"
#include "core/feature_moments.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <limits>

namespace itspace {
namespace {

// The table of objectives has a column for each; where runs are to be so long, few would fit beside each other.
constexpr Index most_steps = std::numeric_limits<std::int32_t>::max();

void check_targets(const StackShape& targets, const AlignOptions& options, const BatchOptions& batch) {
  require(targets.count >= 0 && targets.rows >= 0 && targets.cols >= 0, "the stack of targets is ", targets.count,
          " x ", targets.rows, " x ", targets.cols, "; no size is below 0");
  const bool features = batch.targets == StackOf::features;
  require(features || targets.rows == targets.cols, "the targets are ", targets.rows, " x ", targets.cols,
          "; a covariance is square. If their rows are samples, pass them as StackOf::features");
  if (features) check_features(targets.rows, targets.cols, {});
  check_options(targets.cols, features, options);
  require(options.steps <= most_steps, "steps is ", options.steps, "; align_batch keeps every objective, and takes ",
          most_steps, " steps at most. Make longer runs with align");
  require(!options.keep_iterates,
          "keep_iterates is set, and align_batch keeps no iterates; run align where they are "
          "wanted, or leave it out");
}

}  // namespace

void check_stacks(const StackShape& targets, const StackShape& starts, const AlignOptions& options,
                  const BatchOptions& batch) {
  check_targets(targets, options, batch);
  require(starts.count == targets.count, "there are ", targets.count, " targets and ", starts.count,
          " starts; every target needs one start, in the same order");
  require(starts.rows == targets.cols, "the starts have ", starts.rows, " rows and the targets have dimension ",
          targets.cols, "; a start is a d x r factor of the target's dimension");
  check_start_cols(starts.cols, targets.cols);
}

void check_stack(const StackShape& targets, Index rank, const AlignOptions& options, const BatchOptions& batch) {
  check_targets(targets, options, batch);
  check_rank(rank, targets.cols);
}

void make_outcomes(Index count, Index dim, Index rank, Index steps, bool keep_traces, BatchOutcomes& outcomes) {
  const auto problems = static_cast<std::size_t>(count);
  outcomes.count = count;
  outcomes.dim = dim;
  outcomes.rank = rank;
  outcomes.objectives = Block<double>(count, steps + 1);
  outcomes.objectives.setConstant(not_a_number);
  outcomes.status.resize(problems);
  outcomes.reasons.resize(problems);
  outcomes.best.resize(problems);
  outcomes.certified.resize(problems);
  outcomes.unresolved.resize(problems);
  if (keep_traces) outcomes.traces.resize(problems);
}

void store_trace(Index i, const Trace& trace, BatchOutcomes& outcomes) noexcept {
  const auto at = static_cast<std::size_t>(i);
  for (const Step& step : trace.steps) outcomes.objectives(i, step.index) = step.objective;
  outcomes.best[at] = trace.best;
  outcomes.certified[at] = trace.certified();
  outcomes.unresolved[at] = std::any_of(trace.steps.begin(), trace.steps.end(), unresolved);
  outcomes.status[at] = trace.status;
}

}  // namespace itspace
