// SPDX-License-Identifier: Apache-2.0
//
// itspace._core: the library's functions on NumPy arrays. It holds no numerics of its own; the package around it gives
// them Python's manners. std::invalid_argument becomes ValueError, std::runtime_error RuntimeError.
#include "module.hpp"

#include <itspace/version.hpp>

#include <nanobind/stl/string_view.h>

NB_MODULE(_core, module) {
  module.def("version", &itspace::version);
  itspace::python::add_covariance(module);
  itspace::python::add_class_shares(module);
  itspace::python::add_target(module);
  itspace::python::add_trace(module);
  itspace::python::add_align(module);
  itspace::python::add_checkpoint(module);
  itspace::python::add_barycenter(module);
  itspace::python::add_batch(module);
  itspace::python::add_distance(module);
  itspace::python::add_follow_gate(module);
  itspace::python::add_gradient(module);
  itspace::python::add_map(module);
  itspace::python::add_online(module);
  itspace::python::add_rows(module);
  itspace::python::add_streamed(module);
  itspace::python::add_threads(module);
}
