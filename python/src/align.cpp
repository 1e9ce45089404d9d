// SPDX-License-Identifier: Apache-2.0
#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/targets.hpp>
#include <itspace/verify.hpp>

#include "core/require.hpp"
#include "module.hpp"
#include "options.hpp"
#include "run_outcome.hpp"
#include "target.hpp"
#include "trace.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <optional>
#include <string>
#include <variant>

namespace itspace::python {
namespace {

nb::object align_any(const AnyTarget& target, const std::optional<AnyArray>& start, Index rank, Index steps,
                     std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                     const std::string& solver, const std::string& route, std::optional<Index> guard,
                     std::uint64_t seed, const nb::object& callback, bool keep_iterates) {
  AlignOptions options = align_options(steps, alpha, lambda, line_search, solver, route, guard, seed);
  options.keep_iterates = keep_iterates;
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        return outcome_of_run<Scalar>(start, rank, target.mixed, callback, [&](const auto& first, const auto& on_step) {
          return first ? align<Scalar>(ref, *first, options, on_step) : align<Scalar>(ref, rank, options, on_step);
        });
      },
      target.ref);
}

// `given` is the factor in the type that it was saved in, whose checksum a trace may name; `factor` has the target's.
nb::object verify_any(const AnyTarget& target, const AnyArray& factor, const AnyArray& given, const Trace* trace) {
  Verification found = std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        require(factor.dtype() == nb::dtype<Scalar>(), "the factor is not of the target's dtype; convert it first");
        const MatrixView<Scalar> view = view_as<Scalar>(factor);
        check_factor<Scalar>(view, ref.dim(), "factor");
        const nb::gil_scoped_release unlocked;
        return verify<Scalar>(view, ref, trace);
      },
      target.ref);
  if (trace && !trace->factor_checksum.empty()) found.claims.push_back(checksum_claim(*trace, checksum_of(given)));
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
  out["certified"] = found.certified ? nb::object(nb::bool_(*found.certified)) : nb::none();
  out["holds"] = found.holds();
  return out;
}

// The library's own defaults, for the test that holds Python's against them.
nb::object default_options() {
  const AlignOptions options;
  nb::dict out;
  out["steps"] = options.steps;
  out["solver"] = text_of(name(options.solver));
  out["alpha"] = nb::none();  // by the number of steps
  require(options.step_size.kind() == StepSize::Kind::by_steps, "the library's default step size has changed");
  out["route"] = text_of(name(options.route));
  out["guard"] = options.guard ? nb::object(nb::int_(*options.guard)) : nb::none();
  out["seed"] = options.seed;
  out["keep_iterates"] = options.keep_iterates;
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
  module.def("align", &align_any, nb::arg("target"), nb::arg("start").none(), nb::arg("rank"), nb::arg("steps"),
             nb::arg("alpha").none(), nb::arg("lam").none(), nb::arg("line_search"), nb::arg("solver"),
             nb::arg("route"), nb::arg("guard").none(), nb::arg("seed"), nb::arg("callback").none(),
             nb::arg("keep_iterates"));
  module.def("_default_options", &default_options);
  module.def("_seconds_per_align", &seconds_per_align, nb::arg("sigma"), nb::arg("start"), nb::arg("steps"),
             nb::arg("repeats"));
  module.def("verify", &verify_any, nb::arg("target"), nb::arg("factor"), nb::arg("given"), nb::arg("trace").none());
}

}  // namespace itspace::python
