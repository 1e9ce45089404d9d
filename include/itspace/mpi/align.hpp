// SPDX-License-Identifier: Apache-2.0
//
// align with the rows of Y spread over the ranks: the solvers, options, trace, certificates and statuses of align.hpp,
// in an mpi::Space (all routes but `root`, which forms the square root of a dense matrix in one place).
//
//     mpi::FeatureColumns<float> target(ranks, d, my_columns);
//     auto result = mpi::align<float>(target, 16, {.steps = 5});   // a random start; called by all ranks
//     result.factor.local();                                       // the rows of this rank
//     Block<float> whole = mpi::gather<float>(ranks, result.factor);
//
// Where Y fits on every rank, FeatureRows and the ordinary align() are simpler and send less; give that align
// agreed(ranks, on_step) where it takes an on_step.
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/mpi/space.hpp>

namespace itspace::mpi {

template <Storage Scalar>
using TargetRef = BasicTargetRef<Space<Scalar>>;
template <Storage Scalar>
using Result = BasicResult<Space<Scalar>>;
template <Storage Scalar>
using OnStep = BasicOnStep<Space<Scalar>>;
template <Storage Scalar>
using Evaluation = BasicEvaluation<Space<Scalar>>;

// A target of spread blocks, and the ranks that it is spread over.
template <class T, class Scalar>
concept Target = Storage<Scalar> && TargetIn<T, Space<Scalar>> && requires(const T& target) {
  { target.ranks() } -> std::convertible_to<Communicator>;
};

// What functions take: any such target, a temporary too, which lives as long as the call.
template <Storage Scalar>
class TargetArgument {
 public:
  template <Target<Scalar> T>
  TargetArgument(const T& target)  // NOLINT(google-explicit-constructor): every target converts
      : ref_(target), ranks_(target.ranks()) {}
  TargetArgument(const TargetArgument&) = delete;
  TargetArgument& operator=(const TargetArgument&) = delete;

  const TargetRef<Scalar>& ref() const { return ref_; }
  const Communicator& ranks() const { return ranks_; }

 private:
  TargetRef<Scalar> ref_;
  Communicator ranks_;
};

// A run ends where on_step of one rank says so: each rank asks the others, once for each step.
template <Storage Scalar>
itspace::OnStep<Scalar> agreed(const Communicator& ranks, itspace::OnStep<Scalar> on_step) {
  return [ranks, on_step](const Step& step, const ConstBlockView<Scalar>& y) {
    return ranks.any(on_step(step, y) == StepAction::stop) ? StepAction::stop : StepAction::proceed;
  };
}

// From an explicit start: the rows of this rank of a d x r factor. What on_step says is agreed upon.
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target,
                                 const std::type_identity_t<ConstView<Scalar>>& start, const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// From the seeded random start Y0 = Sigma*Omega, scaled to ||Y0||^2 = tr Sigma (one pass, counted).
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target, Index rank, const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// The certificate at one factor, without a step.
template <Storage Scalar>
ITSPACE_API Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& target,
                                        const std::type_identity_t<ConstView<Scalar>>& factor,
                                        Route route = Route::automatic);

// The same run with all rows of its factor and iterates on every rank.
template <Storage Scalar>
itspace::Result<Scalar> gathered(const Communicator& ranks, const Result<Scalar>& result) {
  itspace::Result<Scalar> whole;
  whole.factor = gather<Scalar>(ranks, result.factor);
  whole.trace = result.trace;
  for (const Block<Scalar>& iterate : result.iterates) whole.iterates.push_back(gather<Scalar>(ranks, iterate));
  return whole;
}

}  // namespace itspace::mpi
