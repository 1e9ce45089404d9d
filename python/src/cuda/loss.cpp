// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/loss.hpp>

#include "cuda/device_target.hpp"
#include "cuda/module.hpp"

namespace itspace::python {
namespace {

template <Storage Scalar>
const DeviceTarget::Typed<Scalar>& typed_as(const DeviceTarget& target) {
  const auto* typed = std::get_if<DeviceTarget::Typed<Scalar>>(&target.typed);
  require(typed != nullptr, "the factor is not of the target's dtype; convert it first");
  return *typed;
}

template <Storage Scalar>
double objective_and_gradient(const DeviceTarget& target, const DeviceMatrix<Scalar>& factor,
                              const WritableDeviceMatrix<Scalar>& gradient) {
  const auto& typed = typed_as<Scalar>(target);
  const auto y = view(factor);
  const auto out = view(gradient);
  const nb::gil_scoped_release unlocked;
  return cuda::objective_and_gradient<Scalar>(*typed.argument, y, out);
}

template <Storage Scalar>
double objective_and_features_gradient(const DeviceTarget& target, const DeviceMatrix<Scalar>& factor,
                                       const WritableDeviceMatrix<Scalar>& gradient,
                                       const WritableDeviceMatrix<Scalar>& features_gradient) {
  const auto& typed = typed_as<Scalar>(target);
  require(typed.features != nullptr, "the target is one of ", target.kind,
          ", and the gradient in features is that of features: pass itspace.Target.from_features(X)");
  const auto x = view(typed.array), y = view(factor);
  const auto out = view(gradient), features_out = view(features_gradient);
  const nb::gil_scoped_release unlocked;
  return cuda::objective_and_features_gradient<Scalar>(*typed.features, x, y, out, features_out);
}

template <Storage Scalar>
double remainder_of(const DeviceTarget& target, const DeviceMatrix<Scalar>& factor, double floor, double shrinkage) {
  const auto& typed = typed_as<Scalar>(target);
  const auto y = view(factor);
  const nb::gil_scoped_release unlocked;
  return cuda::remainder_of<Scalar>(*typed.argument, y, ModelOptions{.floor = floor, .shrinkage = shrinkage});
}

template <Storage Scalar>
void add_typed(nb::module_& module) {
  module.def("objective_and_gradient", &objective_and_gradient<Scalar>, nb::arg("target"),
             nb::arg("factor").noconvert(), nb::arg("gradient").noconvert());
  module.def("objective_and_features_gradient", &objective_and_features_gradient<Scalar>, nb::arg("target"),
             nb::arg("factor").noconvert(), nb::arg("gradient").noconvert(), nb::arg("features_gradient").noconvert());
  module.def("remainder_of", &remainder_of<Scalar>, nb::arg("target"), nb::arg("factor").noconvert(), nb::arg("floor"),
             nb::arg("shrinkage"));
}

}  // namespace

void add_device_loss(nb::module_& module) {
  add_typed<float>(module);
  add_typed<double>(module);
}

}  // namespace itspace::python
