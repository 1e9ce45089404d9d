// SPDX-License-Identifier: Apache-2.0
//
// One function for each part of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace itspace::python {

void add_checkpoint(nanobind::module_& module);
void add_class_shares(nanobind::module_& module);
void add_covariance(nanobind::module_& module);
void add_target(nanobind::module_& module);
void add_trace(nanobind::module_& module);
void add_align(nanobind::module_& module);
void add_barycenter(nanobind::module_& module);
void add_batch(nanobind::module_& module);
void add_distance(nanobind::module_& module);
void add_follow_gate(nanobind::module_& module);
void add_gradient(nanobind::module_& module);
void add_map(nanobind::module_& module);
void add_online(nanobind::module_& module);
void add_rows(nanobind::module_& module);
void add_streamed(nanobind::module_& module);
void add_threads(nanobind::module_& module);

}  // namespace itspace::python
