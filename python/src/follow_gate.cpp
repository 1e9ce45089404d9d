// SPDX-License-Identifier: Apache-2.0
#include <itspace/follow_gate.hpp>
#include <itspace/followed_shift.hpp>

#include "arrays.hpp"
#include "core/require.hpp"
#include "models.hpp"
#include "module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace itspace::python {
namespace {

// As the package hands them over (_gate.Shift, _compare.Clusters).
using Moments = std::tuple<double, double, double, double, double, std::optional<double>>;
using Clusters = std::tuple<Matrix<double>, Vector>;

nb::object shift_out(const ModelTuple& source, const ModelTuple& stream, const std::optional<Clusters>& clusters) {
  const LowRankGaussian to = model_from(source), from = model_from(stream);
  std::optional<ClusterMeans> known;
  if (clusters) known = ClusterMeans{view<double>(std::get<0>(*clusters)), copy_of(std::get<1>(*clusters))};
  FollowedShift shift;
  {
    const nb::gil_scoped_release unlocked;
    shift = followed_shift(to, from, known ? &*known : nullptr);
  }
  const MomentEvidence& seen = shift.moments;
  const nb::object deviations =
      shift.deviations_kept.size() > 0 ? to_numpy(Eigen::VectorXd(shift.deviations_kept)) : nb::none();
  return nb::make_tuple(Moments(seen.mean_share, seen.mean_kept, seen.covariance, seen.covariance_kept,
                                seen.covariance_kept_scaled, seen.unexplained),
                        deviations);
}

FollowGate gate_of(const std::vector<std::string>& maps, Index samples, Index patience, const std::string& choice,
                   const std::string& proposed, Index times) {
  FollowGate::Parts parts;
  parts.options.maps.clear();
  for (const std::string& text : maps) {
    const auto kind = map_kind_named(text);
    require(kind.has_value(), "kinds has '", text, "'; each must be ", map_kind_names());
    parts.options.maps.push_back(*kind);
  }
  parts.options.samples = samples;
  parts.options.patience = patience;
  parts.choice = choice;
  parts.proposed = proposed;
  parts.times = times;
  return FollowGate(std::move(parts));
}

nb::object judge(FollowGate& gate, const std::vector<Matrix<double>>& sides, const Moments& moments, Index classes) {
  require(!sides.empty(), "there are no answers to decide by");
  GateAnswers all{view<double>(sides.front()), {}};
  for (std::size_t i = 1; i < sides.size(); ++i) all.after.emplace_back(view<double>(sides[i]));
  const auto& [mean_share, mean_kept, covariance, kept, kept_scaled, unexplained] = moments;
  const MomentEvidence evidence{mean_share, mean_kept, covariance, kept, kept_scaled, unexplained};
  const FollowVerdict verdict = gate.judge(all, evidence, classes);
  std::vector<std::tuple<double, std::optional<double>>> numbers;
  for (const Predictions& each : verdict.predictions) numbers.emplace_back(each.spread, each.information);
  return nb::make_tuple(verdict.choice, verdict.decision.sentence, numbers);
}

}  // namespace

void add_follow_gate(nb::module_& module) {
  module.def("followed_shift", &shift_out, nb::arg("source"), nb::arg("stream"), nb::arg("clusters").none());
  nb::class_<FollowGate>(module, "FollowGate")
      .def_static("make", &gate_of, nb::arg("maps"), nb::arg("samples"), nb::arg("patience"),
                  nb::arg("choice") = "none", nb::arg("proposed") = "none", nb::arg("times") = 0)
      .def("judge", &judge, nb::arg("sides"), nb::arg("moments"), nb::arg("classes"))
      .def("state", [](const FollowGate& gate) {
        return nb::make_tuple(gate.parts().choice, gate.parts().proposed, gate.parts().times);
      });
}

}  // namespace itspace::python
