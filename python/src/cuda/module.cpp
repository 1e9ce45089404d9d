// SPDX-License-Identifier: Apache-2.0
//
// itspace._cuda: the library's GPU room on tensors that stay there. It holds no numerics of its own, and is built only
// where CUDA is found; the package says what is missing where it is not. Records of runs and maps are types of
// itspace._core, which must be imported first.
#include "cuda/module.hpp"

#include <itspace/cuda/checks.hpp>
#include <itspace/cuda/device.hpp>

#include "cuda/device_arrays.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>

namespace itspace::python {
namespace {

template <Storage Scalar>
double check_covariance_on(const cuda::Device& device, const DeviceMatrix<Scalar>& sigma, const std::string& name) {
  const auto entries = view(sigma);
  const nb::gil_scoped_release unlocked;
  return cuda::check_symmetric<Scalar>(device, entries, name);
}

template <Storage Scalar>
bool is_semidefinite_on(const cuda::Device& device, const DeviceMatrix<Scalar>& sigma) {
  const auto entries = view(sigma);
  const nb::gil_scoped_release unlocked;
  return cuda::is_semidefinite<Scalar>(device, entries);
}

template <Storage Scalar>
void check_finite_on(const cuda::Device& device, const DeviceMatrix<Scalar>& block, const std::string& name) {
  const auto values = view(block);
  const nb::gil_scoped_release unlocked;
  cuda::check_finite<Scalar>(device, values, name);
}

template <Storage Scalar>
void add_checks(nb::module_& module) {
  module.def("check_symmetric", &check_covariance_on<Scalar>, nb::arg("device"), nb::arg("sigma").noconvert(),
             nb::arg("name"));
  module.def("is_semidefinite", &is_semidefinite_on<Scalar>, nb::arg("device"), nb::arg("sigma").noconvert());
  module.def("check_finite", &check_finite_on<Scalar>, nb::arg("device"), nb::arg("block").noconvert(),
             nb::arg("name"));
}

}  // namespace

void add_device(nb::module_& module) {
  module.def("device_count", &cuda::device_count);
  module.def("why_no_device", &cuda::why_no_device);
  nb::class_<cuda::Device>(module, "Device", nb::is_weak_referenceable(), "A stream of a GPU, and its scratch memory.")
      .def(
          "__init__",
          [](cuda::Device* self, int ordinal, std::uintptr_t stream) {
            new (self) cuda::Device(ordinal, reinterpret_cast<cuda::Stream>(stream));
          },
          nb::arg("ordinal"), nb::arg("stream"))
      .def_prop_ro("ordinal", &cuda::Device::ordinal)
      .def_prop_ro("stream",
                   [](const cuda::Device& device) { return reinterpret_cast<std::uintptr_t>(device.stream()); })
      .def("release_unused", &cuda::Device::release_unused)
      .def("synchronize", [](const cuda::Device& device) {
        const nb::gil_scoped_release unlocked;
        device.synchronize();
      });
  add_checks<float>(module);
  add_checks<double>(module);
}

}  // namespace itspace::python

NB_MODULE(_cuda, module) {
  itspace::python::add_device(module);
  itspace::python::add_device_target(module);
  itspace::python::add_device_align(module);
  itspace::python::add_device_batch(module);
  itspace::python::add_device_distance(module);
  itspace::python::add_device_loss(module);
  itspace::python::add_device_map(module);
}
