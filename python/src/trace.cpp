// SPDX-License-Identifier: Apache-2.0
//
// The record of a run as Python sees it, and back. What comes back may have been through a file, or written by hand:
// each entry is looked at, and one that does not fit is named with its value.
#include "trace.hpp"

#include "arrays.hpp"
#include "core/text.hpp"
#include "module.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
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

// The columns of a trace, by the names of its schema.
struct Column {
  const char* name;
  double Step::*value;
};
constexpr Column columns[] = {
    {"objective", &Step::objective},
    {"resolution", &Step::resolution},
    {"certificate_gap", &Step::certificate_gap},
    {"feasibility", &Step::feasibility},
    {"orthogonality", &Step::orthogonality},
    {"step_alpha", &Step::alpha},
    {"step_squared", &Step::step_squared},
    {"promised_descent", &Step::promised_descent},
    {"actual_descent", &Step::actual_descent},
    {"objective_bound", &Step::objective_bound},
    {"allowance", &Step::allowance},
    {"seconds", &Step::seconds},
};
struct CountColumn {
  const char* name;
  Index Step::*value;
};
constexpr CountColumn count_columns[] = {
    {"index", &Step::index}, {"gram_rank", &Step::gram_rank}, {"passes", &Step::passes}};

// Scalars, a float64 or int64 array for each number of a step, and lists for what may be missing (the Python side makes
// arrays of them).
nb::object trace_dict(const Trace& trace) {
  nb::dict out;
  out["schema"] = "itspace.trace/1";
  out["dim"] = trace.dim;
  out["rank"] = trace.rank;
  out["solver"] = trace.solver;
  out["route"] = text_of(name(trace.route));
  out["alpha"] = trace.alpha ? nb::object(nb::float_(*trace.alpha)) : nb::none();
  out["precision"] = trace.precision;
  out["status"] = text_of(name(trace.status));
  out["reason"] = trace.reason.empty() ? nb::none() : text_of(trace.reason);
  out["target_trace"] = trace.target_trace;
  out["passes_total"] = trace.passes_total;
  out["best"] = trace.best;
  for (const auto& column : count_columns) {
    std::vector<std::int64_t> values;
    for (const Step& step : trace.steps) values.push_back(step.*column.value);
    out[column.name] = to_numpy(std::move(values));
  }
  for (const auto& column : columns) {
    std::vector<double> values;
    for (const Step& step : trace.steps) values.push_back(step.*column.value);
    out[column.name] = to_numpy(std::move(values));
  }
  nb::list routes, certified;
  for (const Step& step : trace.steps) {
    routes.append(step.route ? text_of(name(*step.route)) : text_of(""));
    certified.append(flag_of(step.certified));
  }
  out["step_route"] = routes;
  out["certified"] = certified;
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

  std::optional<double> number_or_none() const {
    if (value.is_none()) return std::nullopt;
    return number("a number or None");
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

// (resolution, objective) of the first row whose objective is not known to 1 %, None where all are.
nb::object unresolved_of(const Trace& trace) {
  for (const Step& step : trace.steps)
    if (unresolved(step)) return nb::make_tuple(step.resolution, step.objective);
  return nb::none();
}

double objective(const Trace& trace) {
  const auto best = static_cast<size_t>(trace.best);
  return best < trace.steps.size() ? trace.steps[best].objective : not_a_number;
}

}  // namespace

nb::object step_dict(const Step& step) {
  nb::dict out;
  out["index"] = step.index;
  out["objective"] = step.objective;
  out["resolution"] = step.resolution;
  out["certificate_gap"] = step.certificate_gap;
  out["feasibility"] = step.feasibility;
  out["orthogonality"] = step.orthogonality;
  out["gram_rank"] = step.gram_rank;
  out["step_route"] = step.route ? text_of(name(*step.route)) : nb::none();
  out["step_alpha"] = step.alpha;
  out["step_squared"] = step.step_squared;
  out["promised_descent"] = step.promised_descent;
  out["actual_descent"] = step.actual_descent;
  out["objective_bound"] = step.objective_bound;
  out["allowance"] = step.allowance;
  out["certified"] = flag_of(step.certified);
  out["passes"] = step.passes;
  out["seconds"] = step.seconds;
  return out;
}

// The inverse of trace_dict. Arrays come as lists.
Trace trace_of(const nb::dict& dict) {
  require(!dict.contains("steps"),
          "the trace has an entry 'steps': it has rows, as the program writes it to a file, and not the columns of "
          "AlignResult.trace; check it with the program: itspace verify FACTOR --target TARGET --trace FILE");
  Trace trace;
  trace.dim = entry(dict, "dim").integer();
  trace.rank = entry(dict, "rank").integer();
  trace.solver = entry(dict, "solver").string();
  trace.route = entry(dict, "route").route();
  trace.status = entry(dict, "status").status();
  if (const Entry reason = entry(dict, "reason"); !reason.value.is_none())
    trace.reason = reason.string("a string or None");
  trace.alpha = entry(dict, "alpha").number_or_none();
  trace.precision = entry(dict, "precision").string();
  trace.target_trace = entry(dict, "target_trace").number();
  trace.passes_total = entry(dict, "passes_total").integer();
  trace.best = entry(dict, "best").integer();
  std::optional<size_t> rows;
  const auto fill = [&](const char* key, auto assign) {
    const Entry column = entry(dict, key);
    if (!PyList_Check(column.value.ptr()) && !PyTuple_Check(column.value.ptr()))
      column.wrong_type("an array or a list, one value for each iterate");
    const auto values = nb::borrow<nb::sequence>(column.value);
    const size_t size = nb::len(values);
    if (!rows) {
      rows = size;
      trace.steps.resize(size);
    }
    require(size == *rows, "the trace has ", size, " values of '", key, "' and ", *rows,
            " of 'objective'; it must have one for each iterate");
    for (size_t k = 0; k < size; ++k) {
      const nb::object value = values[k];
      assign(trace.steps[k], Entry{value, text(column.where, "[", k, "]")});
    }
  };
  for (const auto& column : columns)
    fill(column.name, [&](Step& step, const Entry& value) { step.*column.value = value.number(); });
  for (const auto& column : count_columns)
    fill(column.name, [&](Step& step, const Entry& value) { step.*column.value = value.integer(); });
  fill("step_route", [](Step& step, const Entry& value) { step.route = value.route_or_empty(); });
  fill("certified", [](Step& step, const Entry& value) { step.certified = value.flag(); });
  return trace;
}

void add_trace(nb::module_& module) {
  nb::class_<Trace>(module, "Trace", "The record of a run.")
      .def("to_dict", &trace_dict)
      .def_static("from_dict", &trace_of, nb::arg("trace"))
      .def_prop_ro("status", [](const Trace& trace) { return text_of(name(trace.status)); })
      .def_prop_ro("objective", &objective)
      .def_prop_ro("reason", [](const Trace& trace) { return text_of(trace.reason); })
      .def_prop_ro("unresolved", &unresolved_of)
      .def_prop_ro("certified", &Trace::certified);
}

}  // namespace itspace::python
