// SPDX-License-Identifier: Apache-2.0
#include <itspace/batch.hpp>

#include "arrays.hpp"
#include "batch_outcome.hpp"
#include "core/require.hpp"
#include "interrupt.hpp"
#include "module.hpp"
#include "options.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace itspace::python {
namespace {

// @pre array.dtype() is that of Scalar.
template <Storage Scalar>
MatrixStack<Scalar> stack_as(const AnyStack& array) {
  const auto size = [&](size_t axis) { return static_cast<Index>(array.shape(axis)); };
  return {static_cast<const Scalar*>(array.data()), size(0), size(1), size(2)};
}

template <Storage Scalar, Storage Data>
nb::object run(const AnyStack& targets, const std::optional<AnyStack>& starts, Index rank, const AlignOptions& options,
               BatchOptions batch) {
  require(!starts || starts->dtype() == nb::dtype<Scalar>(),
          "the starts are not of the dtype of the run; convert them first");
  SignalCheck signals;
  batch.should_stop = [&signals] {
    signals.poll();
    return false;
  };
  BatchResult<Scalar> result;
  {
    const nb::gil_scoped_release unlocked;
    result = starts ? align_batch<Scalar, Data>(stack_as<Data>(targets), stack_as<Scalar>(*starts), options, batch)
                    : align_batch<Scalar, Data>(stack_as<Data>(targets), rank, options, batch);
  }
  if constexpr (!std::same_as<Scalar, Data>)
    for (Trace& trace : result.traces) trace.precision = "mixed";
  const nb::object factors = to_numpy<Scalar>(std::move(result.factors));
  return batch_outcome(factors, std::move(result));
}

nb::object align_batch_any(const AnyStack& targets, const std::optional<AnyStack>& starts, Index rank, bool features,
                           bool mixed, Index steps, std::optional<double> alpha, std::optional<double> lambda,
                           bool line_search, const std::string& solver, const std::string& route,
                           std::optional<Index> guard, std::uint64_t seed, bool keep_traces) {
  const AlignOptions options = align_options(steps, alpha, lambda, line_search, solver, route, guard, seed);
  BatchOptions batch;
  batch.targets = features ? StackOf::features : StackOf::covariances;
  batch.keep_traces = keep_traces;
  const bool of_float = targets.dtype() == nb::dtype<float>();
  require(of_float || targets.dtype() == nb::dtype<double>(),
          "the targets are neither float32 nor float64; convert them first");
  if (of_float && mixed) return run<double, float>(targets, starts, rank, options, batch);
  if (of_float) return run<float, float>(targets, starts, rank, options, batch);
  return run<double, double>(targets, starts, rank, options, batch);
}

}  // namespace

void add_batch(nb::module_& module) {
  module.def("align_batch", &align_batch_any, nb::arg("targets"), nb::arg("starts").none(), nb::arg("rank"),
             nb::arg("features"), nb::arg("mixed"), nb::arg("steps"), nb::arg("alpha").none(), nb::arg("lam").none(),
             nb::arg("line_search"), nb::arg("solver"), nb::arg("route"), nb::arg("guard").none(), nb::arg("seed"),
             nb::arg("keep_traces"));
}

}  // namespace itspace::python
