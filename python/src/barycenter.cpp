// SPDX-License-Identifier: Apache-2.0
#include <itspace/barycenter.hpp>

#include "core/require.hpp"
#include "interrupt.hpp"
#include "module.hpp"
#include "on_step.hpp"
#include "target.hpp"
#include "trace.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace itspace::python {
namespace {

template <Storage Scalar>
nb::object run(const std::vector<const AnyTarget*>& given, const Eigen::VectorXd& weights,
               const std::optional<AnyArray>& start, Index rank, const BarycenterOptions& options,
               const nb::object& callback) {
  std::vector<TargetRef<Scalar>> targets;
  bool mixed = false;
  for (const AnyTarget* target : given) {
    const auto* ref = std::get_if<TargetRef<Scalar>>(&target->ref);
    require(ref != nullptr, "the targets are not of one dtype; convert them first");
    targets.push_back(*ref);
    mixed = mixed || target->mixed;
  }
  require(!start || start->dtype() == nb::dtype<Scalar>(), "the start is not of the targets' dtype; convert it first");
  SignalCheck signals;
  const OnStep<Scalar> on_step = on_step_calling<Scalar>(callback, signals);
  Barycenter<Scalar> result;
  {
    const nb::gil_scoped_release unlocked;
    if (start) {
      const MatrixView<Scalar> view = view_as<Scalar>(*start);
      require(view.cols() == rank, "rank is ", rank, " and the start has ", view.cols(),
              " columns; a start is d x rank: pass rank=", view.cols(),
              ", or cut it with itspace.truncate_factor(start, rank)");
      check_finite<Scalar>(view, "start");
      result = barycenter<Scalar>(targets, weights, view, options, on_step);
    } else {
      result = barycenter<Scalar>(targets, weights, rank, options, on_step);
    }
  }
  if (mixed) result.trace.precision = "mixed";
  nb::list iterates;
  for (auto& iterate : result.iterates) iterates.append(to_numpy<Scalar>(std::move(iterate)));
  const Eigen::VectorXd ends =
      Eigen::Map<const Eigen::VectorXd>(result.start_objectives.data(), Index(result.start_objectives.size()));
  return nb::make_tuple(to_numpy<Scalar>(std::move(result.factor)), nb::cast(std::move(result.trace)), iterates,
                        to_numpy(result.weights), result.weights_normalised, to_numpy(result.objectives),
                        to_numpy(ends), result.best_start);
}

nb::object barycenter_any(const std::vector<const AnyTarget*>& targets, const std::optional<Vector>& weights,
                          const std::optional<AnyArray>& start, Index rank, Index steps, std::optional<double> alpha,
                          double tolerance, Index subset, Index starts, std::uint64_t seed, const nb::object& callback,
                          bool keep_iterates) {
  require(!targets.empty(), "there is no target; a barycenter is that of one or more");
  // An empty vector stands for equal weights in C++; here that is None.
  require(!weights || weights->shape(0) > 0, "there are 0 weights and ", targets.size(),
          " targets; give one weight for each target, or None for equal ones");
  BarycenterOptions options;
  options.steps = steps;
  if (alpha) options.step_size = StepSize::alpha(*alpha);
  options.tolerance = tolerance;
  options.subset = subset;
  options.starts = starts;
  options.seed = seed;
  options.keep_iterates = keep_iterates;
  const Eigen::VectorXd shares = weights ? copy_of(*weights) : Eigen::VectorXd();
  return targets.front()->float32() ? run<float>(targets, shares, start, rank, options, callback)
                                    : run<double>(targets, shares, start, rank, options, callback);
}

// The library's own defaults, for the test that holds Python's against them.
nb::object default_options() {
  const BarycenterOptions options;
  nb::dict out;
  out["steps"] = options.steps;
  out["alpha"] = nb::none();
  require(options.step_size.kind() == StepSize::Kind::by_steps, "the library's default step size has changed");
  out["tolerance"] = options.tolerance;
  out["subset"] = options.subset;
  out["starts"] = options.starts;
  out["seed"] = options.seed;
  out["keep_iterates"] = options.keep_iterates;
  return out;
}

}  // namespace

void add_barycenter(nb::module_& module) {
  module.def("barycenter", &barycenter_any, nb::arg("targets"), nb::arg("weights").none(), nb::arg("start").none(),
             nb::arg("rank"), nb::arg("steps"), nb::arg("alpha").none(), nb::arg("tolerance"), nb::arg("subset"),
             nb::arg("starts"), nb::arg("seed"), nb::arg("callback").none(), nb::arg("keep_iterates"));
  module.def("_default_barycenter_options", &default_options);
}

}  // namespace itspace::python
