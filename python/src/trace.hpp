// SPDX-License-Identifier: Apache-2.0
//
// Traces as dicts of Python.
#pragma once

#include <itspace/trace.hpp>

#include "arrays.hpp"

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace itspace::python {

nanobind::object text_of(std::string_view text);
nanobind::object step_dict(const Step& step);
// (resolution, objective) where the objective is not known to 1 %, None where it is.
nanobind::object unresolved_of(const Step& step);
std::string checksum_of(const AnyArray& factor);  // @pre float32 or float64

}  // namespace itspace::python
