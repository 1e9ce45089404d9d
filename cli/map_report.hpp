// SPDX-License-Identifier: Apache-2.0
//
// What `itspace map` says of the map it made: as JSON, and in words.
#pragma once

#include "text.hpp"

#include <itspace/align.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/transport_map.hpp>

#include <filesystem>
#include <optional>

namespace itspace::cli {

struct MapMade {
  TransportMap map;
  std::optional<Trace> trace;  // of the target's alignment, where there is one
  SeenShift seen;
  std::optional<double> remixed = {};  // the share of the mean's squared move that was put down to other class shares
};

struct MapFiles {
  std::filesystem::path source, target, out;
};

Json diagnosis_json(const TransportMap& map, const MapDiagnosis& diagnosis);
Json shrink_json(Shrink shrink, const SeenShift& seen, MapKind kind);
void print_diagnosis(const MapFiles& files, Shrink shrink, const MapMade& made, const MapDiagnosis& diagnosis);

}  // namespace itspace::cli
