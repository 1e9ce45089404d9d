// SPDX-License-Identifier: Apache-2.0
//
// What runs of every kind take and give back.
#pragma once

#include <itspace/align.hpp>
#include <itspace/covariance.hpp>

#include "arrays.hpp"
#include "core/require.hpp"
#include "interrupt.hpp"
#include "on_step.hpp"
#include "trace.hpp"

#include <optional>
#include <utility>

namespace itspace::python {

// A start of as many columns as the rank, finite, in the dtype of the run.
template <Storage Scalar>
MatrixView<Scalar> start_of_run(const AnyArray& start, Index rank) {
  require(start.dtype() == nb::dtype<Scalar>(), "the start is not of the target's dtype; convert it first");
  const auto cols = static_cast<Index>(start.shape(1));
  require(cols == rank, "rank is ", rank, " and the start has ", cols,
          " columns; a start is d x rank: pass rank=", cols, ", or cut it with itspace.truncate_factor(start, rank)");
  const MatrixView<Scalar> view = view_as<Scalar>(start);
  check_finite<Scalar>(view, "start");
  return view;
}

// (factor, trace, iterates)
template <Storage Scalar>
nb::object outcome_of(Result<Scalar> result, bool mixed) {
  if (mixed) result.trace.precision = "mixed";
  nb::list iterates;
  for (auto& iterate : result.iterates) iterates.append(to_numpy<Scalar>(std::move(iterate)));
  return nb::make_tuple(to_numpy<Scalar>(std::move(result.factor)), nb::cast(std::move(result.trace)), iterates);
}

// The outcome of run(start or nothing, on_step), which is made without Python's lock.
template <Storage Scalar, class Run>
nb::object outcome_of_run(const std::optional<AnyArray>& start, Index rank, bool mixed, const nb::object& callback,
                          const Run& run) {
  std::optional<MatrixView<Scalar>> first;
  if (start) first.emplace(start_of_run<Scalar>(*start, rank));
  SignalCheck signals;
  const OnStep<Scalar> on_step = on_step_calling<Scalar>(callback, signals);
  Result<Scalar> result;
  {
    const nb::gil_scoped_release unlocked;
    result = run(first, on_step);
  }
  return outcome_of<Scalar>(std::move(result), mixed);
}

}  // namespace itspace::python
