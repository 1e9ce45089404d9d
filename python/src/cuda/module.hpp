// SPDX-License-Identifier: Apache-2.0
//
// One function for each part of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace itspace::python {

void add_device(nanobind::module_& module);
void add_device_target(nanobind::module_& module);
void add_device_align(nanobind::module_& module);
void add_device_batch(nanobind::module_& module);
void add_device_distance(nanobind::module_& module);
void add_device_loss(nanobind::module_& module);
void add_device_map(nanobind::module_& module);

}  // namespace itspace::python
