// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/batch.hpp>

#include "batch_outcome.hpp"
#include "cuda/device_arrays.hpp"
#include "cuda/module.hpp"
#include "interrupt.hpp"
#include "options.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace itspace::python {
namespace {

template <class Scalar>
using DeviceStack = nb::ndarray<const Scalar, nb::ndim<3>, nb::c_contig, nb::device::cuda>;

template <Storage Scalar>
cuda::MatrixStack<Scalar> stack(const DeviceStack<Scalar>& array) {
  const auto size = [&](size_t axis) { return static_cast<Index>(array.shape(axis)); };
  return {array.data(), size(0), size(1), size(2)};
}

template <Storage Scalar>
nb::object align_batch_on(const cuda::Device& device, const DeviceStack<Scalar>& targets,
                          const std::optional<DeviceStack<Scalar>>& starts, Index rank, bool features, Index steps,
                          std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                          const std::string& solver, const std::string& route, std::optional<Index> guard,
                          std::uint64_t seed, bool keep_traces, Index threads, const nb::object& make) {
  const AlignOptions options = align_options(steps, alpha, lambda, line_search, solver, route, guard, seed);
  BatchOptions batch;
  batch.targets = features ? StackOf::features : StackOf::covariances;
  batch.keep_traces = keep_traces;
  SignalCheck signals;
  batch.should_stop = [&signals] {
    signals.poll();
    return false;
  };
  cuda::BatchResult<Scalar> result;
  {
    const nb::gil_scoped_release unlocked;
    const ThreadScope limit(told(threads));
    result = starts ? cuda::align_batch<Scalar>(device, stack<Scalar>(targets), stack<Scalar>(*starts), options, batch)
                    : cuda::align_batch<Scalar>(device, stack<Scalar>(targets), rank, options, batch);
  }
  const nb::object factors = handed_over<Scalar>(device, result.factors, make);
  return batch_outcome(factors, std::move(result));
}

template <Storage Scalar>
void add_typed(nb::module_& module) {
  module.def("align_batch", &align_batch_on<Scalar>, nb::arg("device"), nb::arg("targets").noconvert(),
             nb::arg("starts").none().noconvert(), nb::arg("rank"), nb::arg("features"), nb::arg("steps"),
             nb::arg("alpha").none(), nb::arg("lam").none(), nb::arg("line_search"), nb::arg("solver"),
             nb::arg("route"), nb::arg("guard").none(), nb::arg("seed"), nb::arg("keep_traces"), nb::arg("threads"),
             nb::arg("make"));
}

}  // namespace

void add_device_batch(nb::module_& module) {
  add_typed<float>(module);
  add_typed<double>(module);
}

}  // namespace itspace::python
