// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/distance.hpp>
#include <itspace/threads.hpp>

#include "cuda/device_arrays.hpp"
#include "cuda/module.hpp"

namespace itspace::python {
namespace {

// (W2^2, its bound, whether the host had to compute it, d x d products on the device).
template <Storage Scalar>
nb::tuple dense_distance(const cuda::Device& device, const DeviceMatrix<Scalar>& a, const DeviceMatrix<Scalar>& b,
                         double relative, Index threads) {
  const auto first = view(a), second = view(b);
  cuda::DeviceDistance found;
  {
    const nb::gil_scoped_release unlocked;
    const ThreadScope limit(told(threads));
    found = cuda::dense_distance<Scalar>(device, first, second, {relative, 0});
  }
  return nb::make_tuple(found.squared, found.error, found.on_host, found.products);
}

template <Storage Scalar>
nb::tuple features_distance(const cuda::Device& device, const DeviceMatrix<Scalar>& a, const DeviceMatrix<Scalar>& b,
                            double relative, Index threads) {
  const auto first = view(a), second = view(b);
  Distance found;
  {
    const nb::gil_scoped_release unlocked;
    const ThreadScope limit(told(threads));
    found = cuda::features_distance<Scalar>(device, first, second, {relative, 0});
  }
  return nb::make_tuple(found.covariance_part, found.mean_part);
}

template <Storage Scalar>
void add_typed(nb::module_& module) {
  module.def("dense_distance", &dense_distance<Scalar>, nb::arg("device"), nb::arg("a").noconvert(),
             nb::arg("b").noconvert(), nb::arg("relative"), nb::arg("threads") = 0);
  module.def("features_distance", &features_distance<Scalar>, nb::arg("device"), nb::arg("a").noconvert(),
             nb::arg("b").noconvert(), nb::arg("relative"), nb::arg("threads") = 0);
}

}  // namespace

void add_device_distance(nb::module_& module) {
  add_typed<float>(module);
  add_typed<double>(module);
}

}  // namespace itspace::python
