// SPDX-License-Identifier: Apache-2.0
//
// align_batch: many small problems in one call.
//
// A stack of B targets, one after the other in memory, and one start for each (or a rank, for random starts). Every
// problem is a run of align() by itself, with the same options, and its result is bit for bit what align() gives alone
// on one thread. The problems are spread over the threads that a call may use (threads.hpp), a few at a time, and where
// they have few columns those few are solved side by side, one in each lane of a vector. While that lasts BLAS, whose
// number is one for the whole process, uses one thread:
//
//     const itspace::MatrixStack<double> targets{data, 10000, 64, 64}, starts{more_data, 10000, 64, 8};
//     auto result = itspace::align_batch<double>(targets, starts, {.steps = 2});
//     result.factor(17);                 // the best iterate of problem 17, d x r
//     result.objectives(17, 2);          // W2^2 of its iterate 2
//     result.status[17];                 // how it ended
//
// Misuse of the whole call (shapes, options) throws std::invalid_argument. What is wrong with one problem is that
// problem's outcome, and the others are not touched by it: its status and its reason say what was found, and its factor
// is its start.
#pragma once

#include <itspace/align.hpp>
#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace itspace {

// `count` matrices, rows x cols each, row-major, one after the other. The memory is the caller's.
template <Storage Scalar>
struct MatrixStack {
  const Scalar* data = nullptr;
  Index count = 0, rows = 0, cols = 0;

  ConstBlockView<Scalar> operator[](Index i) const { return {data + i * rows * cols, rows, cols, cols}; }
};

enum class StackOf {
  covariances,  // d x d each
  features,     // n x d each, one sample per row: their covariances are never formed
};

struct BatchOptions {
  StackOf targets = StackOf::covariances;
  bool keep_traces = false;  // fill BatchResult::traces

  // Whether to end the call. Asked on the calling thread alone: once at the beginning, before each problem that it
  // takes (several, where they are solved side by side) and after each step of those. Once it says so, runs that are
  // under way end as Status::stopped and the others are not begun. What it throws comes out of align_batch when all
  // threads have ended.
  std::function<bool()> should_stop = {};
};

// What is known of each problem, in order.
struct BatchOutcomes {
  Index count = 0, dim = 0, rank = 0;

  // count x (steps + 1): entry (i, k) is the objective of iterate k of problem i. NaN where there is no such iterate,
  // because the run ended before, or where it was not evaluated.
  Block<double> objectives;

  // How each run ended. Empty where there was none: the call was stopped before, or memory ran out; its reason says so.
  // A covariance with a value that is not finite ends as not_finite, one that is not symmetric (up to d eps max|S_ij|
  // with the eps of float) or has a negative variance as not_a_covariance, both without a run.
  std::vector<std::optional<Status>> status;
  std::vector<std::string> reasons;  // Trace::reason; empty where the status says all

  std::vector<Index> best;               // Trace::best: the iterate that is the factor
  std::vector<std::uint8_t> certified;   // Trace::certified()
  std::vector<std::uint8_t> unresolved;  // some objective of the run is not known to a hundredth of itself (trace.hpp)
  std::vector<Trace> traces;             // where they were asked for
};

template <Storage Scalar>
struct BatchResult : BatchOutcomes {
  Block<Scalar> factors;  // (count * dim) x rank: the best iterates, one after the other

  ConstBlockView<Scalar> factor(Index i) const { return {factors.data() + i * dim * rank, dim, rank, rank}; }
};

// From explicit starts: as many as there are targets, d x r each. Asymmetry of a covariance within the limit above is
// averaged away, in a copy. Data may be float where the blocks are double (mixed precision).
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API BatchResult<Scalar> align_batch(const std::type_identity_t<MatrixStack<Data>>& targets,
                                            const std::type_identity_t<MatrixStack<Scalar>>& starts,
                                            const AlignOptions& options = {}, const BatchOptions& batch = {});

// Each from the random start that align() makes for the target with that seed. Where there is no run there is no start
// either, and the factor is NaN.
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API BatchResult<Scalar> align_batch(const std::type_identity_t<MatrixStack<Data>>& targets, Index rank,
                                            const AlignOptions& options = {}, const BatchOptions& batch = {});

}  // namespace itspace
