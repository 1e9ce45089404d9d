// SPDX-License-Identifier: Apache-2.0
//
// What speaks for the map that `itspace map` makes: a classifier's predictions, the moments of the domains, or both.
#pragma once

#include "predictions.hpp"

#include <itspace/gate.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace itspace::cli {

// --predictions FILE,FILE,...: of the samples as they are, then under the map; for `auto` under scale and, as far as
// given, scale+monge and monge. `kind` is a kind of map or "auto".
std::vector<PredictionFile> prediction_files(const std::string& text, std::string_view kind);

struct MapDecision {
  GateDecision decision;
  std::string evidence;                                         // "probabilities", "labels" or "moments"
  std::vector<std::pair<std::string, Predictions>> candidates;  // with their names
  MomentEvidence moments;

  bool opens() const { return decision.choice != "none"; }
};

// About one map; of the moments only what is left unexplained counts.
MapDecision decide_about(std::string_view kind, const PredictionNumbers& numbers, const MomentEvidence& moments);
// Between none, scale, scale+monge and monge; without predictions between none, scale and monge.
MapDecision decide_among(const std::optional<PredictionNumbers>& numbers, const MomentEvidence& moments);

Json gate_json(const MapDecision& decided, bool moments_known);

}  // namespace itspace::cli
