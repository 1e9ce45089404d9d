// SPDX-License-Identifier: Apache-2.0
//
// Traces as dicts of Python.
#pragma once

#include <itspace/trace.hpp>

#include <nanobind/nanobind.h>

#include <string_view>

namespace itspace::python {

nanobind::object text_of(std::string_view text);
nanobind::object step_dict(const Step& step);

// Throws ValueError or TypeError, naming the entry that does not fit.
Trace trace_of(const nanobind::dict& dict);

}  // namespace itspace::python
