// SPDX-License-Identifier: Apache-2.0
//
// What `itspace map` is told: its options, and what they must be.
#pragma once

#include "arguments.hpp"
#include "step_arguments.hpp"

#include <itspace/shift_noise.hpp>
#include <itspace/transport_map.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace itspace::cli {

struct MapArguments {
  Request source{"source", "--source-as"}, target{"target", "--target-as"};
  std::optional<Index> rank;
  MapKind kind = MapKind::monge;
  bool automatic = false;  // the kind is to be chosen
  std::string predictions;
  bool remix = false;            // leave of the mean's move what other class shares are likely to have done
  std::optional<Shrink> shrink;  // not asked for: by noise where the counts are known
  std::optional<Index> source_samples, target_samples;
  double floor_share = default_remainder_floor;
  StepArguments step;
  AlignOptions options;
  Precision precision = Precision::automatic;
  std::filesystem::path out, trace;
  bool trust = false, json = false, quiet = false;
};

bool is_low_rank(const MapArguments& given);
std::string_view kind_asked_for(const MapArguments& given);  // or "auto"

void add_arguments(CLI::App& app, MapArguments& given);
// @throws std::invalid_argument where options contradict each other, or files are in each other's way.
void check_arguments(const MapArguments& given);

}  // namespace itspace::cli
