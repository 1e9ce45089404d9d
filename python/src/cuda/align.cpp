// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/align.hpp>
#include <itspace/cuda/checks.hpp>

#include "cuda/device_target.hpp"
#include "cuda/module.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "trace.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

namespace itspace::python {
namespace {

// None where nobody looks: all steps may then be made without the host.
template <Storage Scalar>
cuda::OnStep<Scalar> on_step_calling(const cuda::Device& device, const nb::object& callback, const nb::object& make) {
  if (callback.is_none()) return {};
  return [&device, callback = callback.ptr(), &make](const Step& step, const cuda::ConstView<Scalar>& factor) {
    const nb::gil_scoped_acquire lock;
    SignalCheck::raise();
    const nb::object answer = nb::handle(callback)(step_dict(step), handed_over<Scalar>(device, factor, make));
    const int stop = PyObject_IsTrue(answer.ptr());
    if (stop < 0) throw nb::python_error();
    return stop != 0 ? StepAction::stop : StepAction::proceed;
  };
}

template <Storage Scalar>
nb::object run(const DeviceTarget::Typed<Scalar>& typed, const std::optional<nb::object>& start, Index rank,
               const AlignOptions& options, const nb::object& callback, const nb::object& make) {
  const cuda::TargetArgument<Scalar>& target = *typed.argument;
  const cuda::Device& device = target.device();
  const cuda::OnStep<Scalar> on_step = on_step_calling<Scalar>(device, callback, make);
  cuda::Result<Scalar> result;
  if (start) {
    const auto first = nb::cast<DeviceMatrix<Scalar>>(*start, false);
    const cuda::ConstView<Scalar> block = view(first);
    require(block.cols() == rank, "rank is ", rank, " and the start has ", block.cols(),
            " columns; a start is d x rank: pass rank=", block.cols());
    const nb::gil_scoped_release unlocked;
    cuda::check_finite<Scalar>(device, block, "start");
    result = cuda::align<Scalar>(target, block, options, on_step);
  } else {
    const nb::gil_scoped_release unlocked;
    result = cuda::align<Scalar>(target, rank, options, on_step);
  }
  SignalCheck::raise();
  nb::list iterates;
  for (const auto& iterate : result.iterates) iterates.append(handed_over<Scalar>(device, iterate, make));
  nb::object factor = handed_over<Scalar>(device, result.factor, make);
  return nb::make_tuple(factor, nb::cast(std::move(result.trace)), iterates);
}

nb::object align_any(const DeviceTarget& target, const std::optional<nb::object>& start, Index rank, Index steps,
                     std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                     const std::string& solver, const std::string& route, std::optional<Index> guard,
                     std::uint64_t seed, const nb::object& callback, bool keep_iterates, const nb::object& make) {
  AlignOptions options = align_options(steps, alpha, lambda, line_search, solver, route, guard, seed);
  options.keep_iterates = keep_iterates;
  return std::visit([&](const auto& typed) { return run(typed, start, rank, options, callback, make); }, target.typed);
}

}  // namespace

void add_device_align(nb::module_& module) {
  module.def("align", &align_any, nb::arg("target"), nb::arg("start").none(), nb::arg("rank"), nb::arg("steps"),
             nb::arg("alpha").none(), nb::arg("lam").none(), nb::arg("line_search"), nb::arg("solver"),
             nb::arg("route"), nb::arg("guard").none(), nb::arg("seed"), nb::arg("callback").none(),
             nb::arg("keep_iterates"), nb::arg("make"));
}

}  // namespace itspace::python
