// SPDX-License-Identifier: Apache-2.0
//
// The record of a run as Python sees it, and back. What comes back may have been through a file, or written by hand:
// each entry is looked at, and one that does not fit is named with its value.
#include "trace.hpp"

#include <itspace/io.hpp>

#include "arrays.hpp"
#include "core/require.hpp"
#include "core/trace_fields.hpp"
#include "module.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace itspace::python {

nb::object text_of(std::string_view text) {
  return nb::str(text.data(), text.size());
}

namespace {

nb::object flag_of(const std::optional<bool>& flag) {
  if (!flag) return nb::none();
  return nb::bool_(*flag);
}

// In a dict of columns a row's own route and alpha stand beside those of the run.
std::string column_name(const RowField& field) {
  const std::string name(field.name);
  return name == "route" || name == "alpha" ? "step_" + name : name;
}

nb::object as_object(double value) {
  return nb::float_(value);
}
nb::object as_object(Index value) {
  return nb::int_(value);
}
nb::object as_object(std::optional<bool> value) {
  return flag_of(value);
}
nb::object as_object(std::optional<Route> value) {
  return value ? text_of(name(*value)) : nb::none();
}
nb::object as_object(const std::string& value) {
  return value.empty() ? nb::none() : text_of(value);
}

// A float64 or int64 array for each number of a step, and a list for what may be missing (the Python side makes an
// array of it).
nb::object column_of(const std::vector<Step>& steps, double Step::*value) {
  std::vector<double> column;
  for (const Step& step : steps) column.push_back(step.*value);
  return to_numpy(std::move(column));
}
nb::object column_of(const std::vector<Step>& steps, Index Step::*value) {
  std::vector<std::int64_t> column;
  for (const Step& step : steps) column.push_back(step.*value);
  return to_numpy(std::move(column));
}
nb::object column_of(const std::vector<Step>& steps, std::optional<bool> Step::*value) {
  nb::list column;
  for (const Step& step : steps) column.append(flag_of(step.*value));
  return column;
}
nb::object column_of(const std::vector<Step>& steps, std::optional<Route> Step::*value) {
  nb::list column;
  for (const Step& step : steps) column.append(text_of(step.*value ? name(*(step.*value)) : ""));
  return column;
}

nb::object trace_dict(const Trace& trace) {
  nb::dict out;
  out["schema"] = text_of(trace_schema);
  out["dim"] = trace.dim;
  out["rank"] = trace.rank;
  out["solver"] = trace.solver;
  out["route"] = text_of(name(trace.route));
  out["alpha"] = trace.alpha ? as_object(*trace.alpha) : text_of(line_search_alpha);
  out["precision"] = trace.precision;
  out["status"] = text_of(name(trace.status));
  out["reason"] = as_object(trace.reason);
  out["target_trace"] = trace.target_trace;
  out["passes_total"] = trace.passes_total;
  out["best"] = trace.best;
  out["factor_checksum"] = as_object(trace.factor_checksum);
  for (const RowField& field : row_fields)
    out[column_name(field).c_str()] =
        std::visit([&](auto member) { return column_of(trace.steps, member); }, field.value);
  return out;
}

// A value of the trace and the words for where it stands: trace['best'], trace['objective'][2].
struct Entry {
  nb::handle value;
  std::string where;

  // The value as Python would write it, cut short; not every object can be written.
  std::string shown() const {
    constexpr size_t most = 60;
    const nb::object written = nb::steal(PyObject_Repr(value.ptr()));
    const char* utf8 = written.is_valid() ? PyUnicode_AsUTF8(written.ptr()) : nullptr;
    if (utf8 == nullptr) {
      PyErr_Clear();
      return std::string("a value of type ") + Py_TYPE(value.ptr())->tp_name;
    }
    std::string out = utf8;
    if (out.size() <= most) return out;
    size_t end = most;
    while ((static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;  // not inside a character of UTF-8
    return out.substr(0, end) + "...";
  }

  std::string refusal(const char* expected) const {
    return text(where, " is ", shown(), "; it must be ", expected, ": pass AlignResult.trace as it was returned");
  }
  [[noreturn]] void wrong_type(const char* expected) const { throw nb::type_error(refusal(expected).c_str()); }
  [[noreturn]] void wrong_value(const char* expected) const { throw nb::value_error(refusal(expected).c_str()); }

  Index integer() const {
    if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) wrong_type("an integer");
    const nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
    if (!whole.is_valid()) {  // such as an array of several
      PyErr_Clear();
      wrong_type("an integer");
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    if (overflow != 0) wrong_value("an integer, at least -2**63 and less than 2**63");
    return static_cast<Index>(number);
  }

  double number(const char* expected = "a number") const {
    const PyNumberMethods* methods = Py_TYPE(value.ptr())->tp_as_number;
    const bool numeric = methods != nullptr && (methods->nb_float != nullptr || methods->nb_index != nullptr);
    if (PyBool_Check(value.ptr()) || !numeric) wrong_type(expected);
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) {
      const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
      PyErr_Clear();
      if (too_large) wrong_value("a number that float64 can hold, below 1.8e308");
      wrong_type(expected);
    }
    return number;
  }

  // Empty for line search.
  std::optional<double> alpha() const {
    if (PyUnicode_Check(value.ptr()) &&
        PyUnicode_CompareWithASCIIString(value.ptr(), std::string(line_search_alpha).c_str()) == 0)
      return std::nullopt;
    return number("a number or 'line-search'");
  }

  std::string string(const char* expected = "a string") const {
    if (!PyUnicode_Check(value.ptr())) wrong_type(expected);
    Py_ssize_t size = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (utf8 == nullptr) {
      PyErr_Clear();
      wrong_value("a string that can be written as UTF-8");
    }
    return {utf8, static_cast<size_t>(size)};
  }

  Route route() const {
    const auto named = route_named(string());
    if (!named) wrong_value("'auto', 'qr', 'gram', 'factor' or 'root'");
    return *named;
  }

  std::optional<Route> route_or_empty() const {
    if (string().empty()) return std::nullopt;
    return route();
  }

  Status status() const {
    const auto named = status_named(string());
    if (!named)
      wrong_value("'step_limit', 'converged', 'stopped', 'certificate_failed', 'not_finite' or 'not_a_covariance'");
    return *named;
  }

  std::optional<bool> flag() const {
    if (value.is_none()) return std::nullopt;
    if (!PyBool_Check(value.ptr())) wrong_type("True, False or None");
    return value.ptr() == Py_True;
  }
};

Entry entry(const nb::dict& dict, const char* key) {
  require(dict.contains(key), "the trace has no entry '", key, "'; pass AlignResult.trace as it was returned");
  return {dict[key], text("trace['", key, "']")};
}

// Of the first row whose objective is not known to 1 %, None where all are.
nb::object first_unresolved(const Trace& trace) {
  for (const Step& step : trace.steps)
    if (unresolved(step)) return unresolved_of(step);
  return nb::none();
}

double objective(const Trace& trace) {
  const auto best = static_cast<size_t>(trace.best);
  return best < trace.steps.size() ? trace.steps[best].objective : not_a_number;
}

}  // namespace

std::string checksum_of(const AnyArray& factor) {
  return factor.dtype() == nb::dtype<float>() ? io::checksum_of<float>(view_as<float>(factor))
                                              : io::checksum_of<double>(view_as<double>(factor));
}

nb::object unresolved_of(const Step& step) {
  return unresolved(step) ? nb::object(nb::make_tuple(step.resolution, step.objective)) : nb::none();
}

nb::object step_dict(const Step& step) {
  nb::dict out;
  for (const RowField& field : row_fields)
    out[column_name(field).c_str()] = std::visit([&](auto member) { return as_object(step.*member); }, field.value);
  return out;
}

namespace {

void read(const Entry& entry, double& value) {
  value = entry.number();
}
void read(const Entry& entry, Index& value) {
  value = entry.integer();
}
void read(const Entry& entry, std::optional<bool>& value) {
  value = entry.flag();
}
void read(const Entry& entry, std::optional<Route>& value) {
  value = entry.route_or_empty();
}
void read(const Entry& entry, std::string& value) {
  if (!entry.value.is_none()) value = entry.string("a string or None");
}

// The inverse of trace_dict. Arrays come as lists. Throws ValueError or TypeError, naming the entry that does not fit.
Trace trace_of(const nb::dict& dict) {
  Trace trace;
  trace.dim = entry(dict, "dim").integer();
  trace.rank = entry(dict, "rank").integer();
  trace.solver = entry(dict, "solver").string();
  trace.route = entry(dict, "route").route();
  trace.status = entry(dict, "status").status();
  read(entry(dict, "reason"), trace.reason);
  trace.alpha = entry(dict, "alpha").alpha();
  trace.precision = entry(dict, "precision").string();
  trace.target_trace = entry(dict, "target_trace").number();
  trace.passes_total = entry(dict, "passes_total").integer();
  trace.best = entry(dict, "best").integer();
  read(entry(dict, "factor_checksum"), trace.factor_checksum);
  std::string first;  // the column that the others are held against
  for (const RowField& field : row_fields) {
    const std::string key = column_name(field);
    const Entry column = entry(dict, key.c_str());
    if (!PyList_Check(column.value.ptr()) && !PyTuple_Check(column.value.ptr()))
      column.wrong_type("an array or a list, one value for each iterate");
    const auto values = nb::borrow<nb::sequence>(column.value);
    const size_t size = nb::len(values);
    if (first.empty()) {
      first = key;
      trace.steps.resize(size);
    }
    require(size == trace.steps.size(), "the trace has ", size, " values of '", key, "' and ", trace.steps.size(),
            " of '", first, "'; it must have one for each iterate");
    for (size_t k = 0; k < size; ++k) {
      const nb::object value = values[k];
      const Entry found{value, text(column.where, "[", k, "]")};
      std::visit([&](auto member) { read(found, trace.steps[k].*member); }, field.value);
    }
  }
  return trace;
}

// The rows of a file, as the program writes and reads them, with the checksum of the factor that goes with them.
std::string json_of(Trace trace, const AnyArray& factor) {
  trace.factor_checksum = checksum_of(factor);
  return io::to_json(trace);
}

Trace trace_of_json(const std::string& json) {
  try {
    return io::trace_from_json(json);
  } catch (const std::runtime_error& error) {
    throw nb::value_error(error.what());
  }
}

}  // namespace

void add_trace(nb::module_& module) {
  nb::class_<Trace>(module, "Trace", "The record of a run.")
      .def("to_dict", &trace_dict)
      .def("to_json", &json_of, nb::arg("factor"))
      .def_static("from_dict", &trace_of, nb::arg("trace"))
      .def_static("from_json", &trace_of_json, nb::arg("json"))
      .def_prop_ro("status", [](const Trace& trace) { return text_of(name(trace.status)); })
      .def_prop_ro("objective", &objective)
      .def_prop_ro("reason", [](const Trace& trace) { return text_of(trace.reason); })
      .def_prop_ro("unresolved", &first_unresolved)
      .def_prop_ro("certified", &Trace::certified);
}

}  // namespace itspace::python
