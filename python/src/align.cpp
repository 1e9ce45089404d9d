// SPDX-License-Identifier: Apache-2.0
#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/targets.hpp>
#include <itspace/verify.hpp>

#include "core/text.hpp"
#include "interrupt.hpp"
#include "module.hpp"
#include "target.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <optional>
#include <string>
#include <variant>

namespace itspace::python {
namespace {

nb::object text_of(std::string_view text) {
  return nb::str(text.data(), text.size());
}

nb::object flag_of(const std::optional<bool>& flag) {
  if (!flag) return nb::none();
  return nb::bool_(*flag);
}

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

template <class Value>
Value entry(const nb::dict& dict, const char* key) {
  require(dict.contains(key), "the trace has no entry '", key, "'; pass AlignResult.trace as it was returned");
  return nb::cast<Value>(dict[key]);
}

// The inverse of trace_dict. Arrays come as lists.
Trace trace_of(const nb::dict& dict) {
  Trace trace;
  trace.dim = entry<Index>(dict, "dim");
  trace.rank = entry<Index>(dict, "rank");
  trace.solver = entry<std::string>(dict, "solver");
  const auto route = route_named(entry<std::string>(dict, "route"));
  const auto status = status_named(entry<std::string>(dict, "status"));
  require(route && status, "the trace names a route '", entry<std::string>(dict, "route"), "' and a status '",
          entry<std::string>(dict, "status"), "'; at least one of them is unknown here");
  trace.route = *route;
  trace.status = *status;
  if (dict.contains("reason")) trace.reason = entry<std::optional<std::string>>(dict, "reason").value_or("");
  trace.alpha = entry<std::optional<double>>(dict, "alpha");
  trace.precision = entry<std::string>(dict, "precision");
  trace.target_trace = entry<double>(dict, "target_trace");
  trace.passes_total = entry<Index>(dict, "passes_total");
  trace.best = entry<Index>(dict, "best");
  const auto objectives = entry<nb::list>(dict, "objective");
  trace.steps.resize(objectives.size());
  const auto fill = [&](const char* key, auto assign) {
    const auto list = entry<nb::list>(dict, key);
    require(list.size() == trace.steps.size(), "the trace has ", list.size(), " values of '", key, "' for ",
            trace.steps.size(), " rows; it must have one for each");
    for (size_t k = 0; k < list.size(); ++k) assign(trace.steps[k], list[k]);
  };
  for (const auto& column : columns)
    fill(column.name, [&](Step& step, nb::handle value) { step.*column.value = nb::cast<double>(value); });
  for (const auto& column : count_columns)
    fill(column.name, [&](Step& step, nb::handle value) { step.*column.value = nb::cast<Index>(value); });
  fill("step_route", [](Step& step, nb::handle value) { step.route = route_named(nb::cast<std::string>(value)); });
  fill("certified", [](Step& step, nb::handle value) { step.certified = nb::cast<std::optional<bool>>(value); });
  return trace;
}

Solver solver_named(const std::string& text) {
  require(text == "paper" || text == "ritz", "solver is '", text, "'; it must be 'paper' or 'ritz'");
  return text == "ritz" ? Solver::ritz : Solver::paper;
}

StepSize step_size(std::optional<double> alpha, std::optional<double> lambda, bool line_search) {
  require(int(alpha.has_value()) + int(lambda.has_value()) + int(line_search) <= 1,
          "alpha and lam are both given; they are two ways to say the same step size: pass one of them");
  if (alpha) return StepSize::alpha(*alpha);
  if (lambda) return StepSize::lambda(*lambda);
  if (line_search) return StepSize::line_search();
  return {};
}

template <Storage Scalar>
OnStep<Scalar> on_step_calling(const nb::object& callback, SignalCheck& signals) {
  if (callback.is_none())
    return [&signals](const Step&, const ConstBlockView<Scalar>&) {
      signals.poll();
      return StepAction::proceed;
    };
  return [callback = callback.ptr()](const Step& step, const ConstBlockView<Scalar>& factor) {
    const nb::gil_scoped_acquire lock;
    SignalCheck::raise();
    // A copy: the view is gone after this call, and Python may keep what it is given.
    const nb::object answer = nb::handle(callback)(step_dict(step), to_numpy<Scalar>(Block<Scalar>(factor)));
    const int stop = PyObject_IsTrue(answer.ptr());
    if (stop < 0) throw nb::python_error();
    return stop != 0 ? StepAction::stop : StepAction::proceed;
  };
}

using AnyArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <Storage Scalar>
nb::object run(TargetRef<Scalar> target, const std::optional<AnyArray>& start, Index rank, const AlignOptions& options,
               const nb::object& callback) {
  require(!start || start->dtype() == nb::dtype<Scalar>(), "the start is not of the target's dtype; convert it first");
  SignalCheck signals;
  const OnStep<Scalar> on_step = on_step_calling<Scalar>(callback, signals);
  Result<Scalar> result;
  {
    const nb::gil_scoped_release unlocked;
    if (start) {
      const auto rows = static_cast<Index>(start->shape(0)), cols = static_cast<Index>(start->shape(1));
      require(cols == rank, "rank is ", rank, " and the start has ", cols,
              " columns; a start is d x rank: pass rank=", cols,
              ", or cut it with itspace.truncate_factor(start, rank)");
      const MatrixView<Scalar> view(static_cast<const Scalar*>(start->data()), rows, cols, Eigen::OuterStride<>(cols));
      check_finite<Scalar>(view, "start");
      result = align<Scalar>(target, view, options, on_step);
    } else {
      result = align<Scalar>(target, rank, options, on_step);
    }
  }
  nb::list iterates;
  for (auto& iterate : result.iterates) iterates.append(to_numpy<Scalar>(std::move(iterate)));
  return nb::make_tuple(to_numpy<Scalar>(std::move(result.factor)), nb::cast(std::move(result.trace)), iterates);
}

nb::object align_any(const AnyTarget& target, const std::optional<AnyArray>& start, Index rank, Index steps,
                     std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                     const std::string& solver, const std::string& route, std::optional<Index> guard,
                     std::uint64_t seed, const nb::object& callback, bool keep_iterates) {
  AlignOptions options;
  options.steps = steps;
  options.solver = solver_named(solver);
  options.step_size = step_size(alpha, lambda, line_search);
  const auto named = route_named(route);
  require(named.has_value(), "route is '", route, "'; it must be 'auto', 'qr', 'gram', 'factor' or 'root'");
  options.route = *named;
  options.guard = guard;
  options.seed = seed;
  options.keep_iterates = keep_iterates;
  return std::visit([&](const auto& ref) { return run(ref, start, rank, options, callback); }, target.ref);
}

double objective(const Trace& trace) {
  const auto best = static_cast<size_t>(trace.best);
  return best < trace.steps.size() ? trace.steps[best].objective : not_a_number;
}

nb::object verify_any(const AnyTarget& target, const AnyArray& factor, const std::optional<nb::dict>& trace) {
  std::optional<Trace> claimed;
  if (trace) claimed = trace_of(*trace);
  const Verification found = std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        require(factor.dtype() == nb::dtype<Scalar>(), "the factor is not of the target's dtype; convert it first");
        const auto rows = static_cast<Index>(factor.shape(0)), cols = static_cast<Index>(factor.shape(1));
        const MatrixView<Scalar> view(static_cast<const Scalar*>(factor.data()), rows, cols,
                                      Eigen::OuterStride<>(cols));
        check_factor<Scalar>(view, ref.dim(), "factor");
        const nb::gil_scoped_release unlocked;
        return verify<Scalar>(view, ref, claimed ? &*claimed : nullptr);
      },
      target.ref);
  nb::dict out;
  out["dim"] = found.found.dim;
  out["rank"] = found.found.rank;
  out["objective"] = found.found.objective;
  out["target_trace"] = found.found.target_trace;
  out["factor_squared"] = found.found.factor_squared;
  out["certificate_gap"] = found.certificate.certificate_gap;
  out["feasibility"] = found.certificate.feasibility;
  out["orthogonality"] = found.certificate.orthogonality;
  out["gram_rank"] = found.certificate.gram_rank;
  out["route"] = found.certificate.route ? text_of(name(*found.certificate.route)) : nb::none();
  nb::list claims;
  for (const Claim& claim : found.claims) {
    nb::dict row;
    row["name"] = claim.name;
    row["holds"] = claim.holds;
    row["claimed"] = claim.claimed;
    row["found"] = claim.found;
    claims.append(row);
  }
  out["claims"] = claims;
  out["holds"] = found.holds();
  return out;
}

// Seconds for one call of the library from C++, for the benchmark of what the Python side adds. The work is that of
// itspace.align on a matrix: look it over, wrap it, align.
double seconds_per_align(const Matrix<double>& sigma, const Matrix<double>& start, Index steps, Index repeats) {
  AlignOptions options;
  options.steps = steps;
  const nb::gil_scoped_release unlocked;
  const auto begin = std::chrono::steady_clock::now();
  for (Index k = 0; k < repeats; ++k) {
    check_symmetric<double>(view<double>(sigma));
    const DenseTarget<double> target(borrow<double>(sigma));
    align<double>(target, view<double>(start), options);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(repeats);
}

}  // namespace

void add_align(nb::module_& module) {
  nb::class_<Trace>(module, "Trace", "The record of a run.")
      .def("to_dict", &trace_dict)
      .def_static("from_dict", &trace_of, nb::arg("trace"))
      .def_prop_ro("status", [](const Trace& trace) { return text_of(name(trace.status)); })
      .def_prop_ro("objective", &objective)
      .def_prop_ro("certified", &Trace::certified);
  module.def("align", &align_any, nb::arg("target"), nb::arg("start").none(), nb::arg("rank"), nb::arg("steps"),
             nb::arg("alpha").none(), nb::arg("lam").none(), nb::arg("line_search"), nb::arg("solver"),
             nb::arg("route"), nb::arg("guard").none(), nb::arg("seed"), nb::arg("callback").none(),
             nb::arg("keep_iterates"));
  module.def("_seconds_per_align", &seconds_per_align, nb::arg("sigma"), nb::arg("start"), nb::arg("steps"),
             nb::arg("repeats"));
  module.def("verify", &verify_any, nb::arg("target"), nb::arg("factor"), nb::arg("trace").none());
}

}  // namespace itspace::python
