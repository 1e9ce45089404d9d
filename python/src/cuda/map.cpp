// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/transport.hpp>

#include "cuda/device_arrays.hpp"
#include "cuda/module.hpp"

namespace itspace::python {
namespace {

template <Storage Scalar>
void add_map_of(nb::module_& module, const char* name) {
  using Map = cuda::MapOnDevice<Scalar>;
  nb::class_<Map>(module, name, "A transport map whose small parts lie on a GPU.")
      .def(nb::init<cuda::Device, const TransportMap&>(), nb::arg("device"), nb::arg("map"))
      .def(
          "apply_in_place",
          [](const Map& map, const WritableDeviceMatrix<Scalar>& samples) {
            const auto rows = view(samples);
            const nb::gil_scoped_release unlocked;
            map.apply(rows);
          },
          nb::arg("samples").noconvert());
}

}  // namespace

void add_device_map(nb::module_& module) {
  add_map_of<float>(module, "Map32");
  add_map_of<double>(module, "Map64");
}

}  // namespace itspace::python
