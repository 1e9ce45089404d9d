// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/checks.hpp>

#include "arrays.hpp"
#include "cuda/device_target.hpp"
#include "cuda/module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

namespace itspace::python {
namespace {

Eigen::VectorXd given_or_empty(const std::optional<Vector>& values) {
  return values ? Eigen::VectorXd(copy_of(*values)) : Eigen::VectorXd();
}

// Makes a target of class T on the tensor, which must be finite: with a name, that is looked at.
template <template <class> class T, Storage Scalar, class... More>
DeviceTarget made_of(const char* kind, const char* name, const cuda::Device& device, const DeviceMatrix<Scalar>& array,
                     const More&... more) {
  const cuda::ConstView<Scalar> data = view(array);
  std::shared_ptr<const T<Scalar>> target;
  {
    const nb::gil_scoped_release unlocked;
    if (name != nullptr) cuda::check_finite<Scalar>(device, data, name);
    target = std::make_shared<const T<Scalar>>(device, cuda::DeviceData<Scalar>(data), more...);
  }
  return DeviceTarget::make<Scalar>(kind, std::move(target), array);
}

// What check_symmetric has looked over, for NaN too.
template <Storage Scalar>
DeviceTarget from_covariance(const cuda::Device& device, const DeviceMatrix<Scalar>& sigma) {
  return made_of<cuda::DenseTarget, Scalar>("covariance", nullptr, device, sigma);
}

template <Storage Scalar>
DeviceTarget from_features(const cuda::Device& device, const DeviceMatrix<Scalar>& features,
                           const std::optional<Vector>& weights) {
  return made_of<cuda::FeaturesTarget, Scalar>("features", "X", device, features, given_or_empty(weights));
}

template <Storage Scalar>
DeviceTarget from_factor(const cuda::Device& device, const DeviceMatrix<Scalar>& factor) {
  return made_of<cuda::FactorTarget, Scalar>("factor", "T", device, factor);
}

template <Storage Scalar>
DeviceTarget low_rank_plus_diagonal(const cuda::Device& device, const DeviceMatrix<Scalar>& u, const Vector& s,
                                    const Vector& sigma2) {
  return made_of<cuda::LowRankDiagonalTarget, Scalar>("low_rank_plus_diagonal", "U", device, u,
                                                      Eigen::VectorXd(copy_of(s)), Eigen::VectorXd(copy_of(sigma2)));
}

template <Storage Scalar>
void apply(const DeviceTarget& target, const DeviceMatrix<Scalar>& y, const WritableDeviceMatrix<Scalar>& out) {
  const auto* typed = std::get_if<DeviceTarget::Typed<Scalar>>(&target.typed);
  require(typed != nullptr, "the block is not of the target's dtype; convert it first");
  const auto& ref = typed->argument->ref();
  require(static_cast<Index>(y.shape(0)) == ref.dim(), "the block has ", y.shape(0),
          " rows and the target has dimension ", ref.dim(), "; it must be d x r");
  const auto block = view(y);
  const auto product = view(out);
  const nb::gil_scoped_release unlocked;
  ref.apply(block, product);
}

template <Storage Scalar>
void add_typed(nb::class_<DeviceTarget>& type) {
  type.def_static("from_covariance", &from_covariance<Scalar>, nb::arg("device"), nb::arg("sigma").noconvert());
  type.def_static("from_features", &from_features<Scalar>, nb::arg("device"), nb::arg("features").noconvert(),
                  nb::arg("weights").none());
  type.def_static("from_factor", &from_factor<Scalar>, nb::arg("device"), nb::arg("factor").noconvert());
  type.def_static("low_rank_plus_diagonal", &low_rank_plus_diagonal<Scalar>, nb::arg("device"),
                  nb::arg("u").noconvert(), nb::arg("s"), nb::arg("sigma2"));
  type.def("apply", &apply<Scalar>, nb::arg("y").noconvert(), nb::arg("out").noconvert());
}

}  // namespace

void add_device_target(nb::module_& module) {
  nb::class_<DeviceTarget> type(module, "Target", "A covariance as an operator, on a GPU.");
  add_typed<float>(type);
  add_typed<double>(type);
  const auto ref_of = [](const auto& typed) -> const auto& {
    return typed.argument->ref();
  };
  type.def_prop_ro("dim", [ref_of](const DeviceTarget& target) {
    return std::visit([&](const auto& typed) { return ref_of(typed).dim(); }, target.typed);
  });
  type.def_prop_ro("trace", [ref_of](const DeviceTarget& target) {
    return std::visit([&](const auto& typed) { return ref_of(typed).trace(); }, target.typed);
  });
  type.def_prop_ro("has_factor", [ref_of](const DeviceTarget& target) {
    return std::visit([&](const auto& typed) { return ref_of(typed).has_factor(); }, target.typed);
  });
  type.def_prop_ro("float32", &DeviceTarget::float32);
  type.def_prop_ro("kind", [](const DeviceTarget& target) { return target.kind; });
  type.def_prop_ro("samples", [](const DeviceTarget& target) { return target.samples; });
  type.def_prop_ro("mean", [](const DeviceTarget& target) -> nb::object {
    if (!target.mean) return nb::none();
    return to_numpy(*target.mean);
  });
}

}  // namespace itspace::python
