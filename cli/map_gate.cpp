// SPDX-License-Identifier: Apache-2.0
#include "map_gate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace itspace::cli {
namespace {

constexpr std::string_view candidates[] = {"none", "scale", "scale+monge", "monge"};

std::string evidence_of(const PredictionNumbers& numbers) {
  return numbers.are_labels ? "labels" : "probabilities";
}

}  // namespace

std::vector<PredictionFile> prediction_files(const std::string& text, std::string_view kind) {
  const std::vector<std::filesystem::path> paths = paths_between_commas(text);
  const bool automatic = kind == "auto";
  const std::size_t most = automatic ? std::size(candidates) : 2;
  if (paths.size() < 2 || paths.size() > most ||
      std::any_of(paths.begin(), paths.end(), [](const auto& path) { return path.empty(); }))
    misuse(fmt::format("--predictions is '{}', which is not {} with a comma between", text,
                       automatic ? "two to four files" : "two files"),
           automatic ? "give the predictions for the samples as they are, then after --map scale, scale+monge, monge"
                     : "give the predictions for the samples as they are, then for the mapped ones");
  std::vector<PredictionFile> files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string_view name = i == 0 || automatic ? candidates[i] : kind;
    files.push_back({fmt::format("--predictions for {}", name), paths[i]});
  }
  return files;
}

MapDecision decide_about(std::string_view kind, const PredictionNumbers& numbers, const MomentEvidence& moments) {
  GateEvidence evidence{numbers.each[0], numbers.each[1]};
  evidence.unexplained = moments.unexplained;
  MapDecision out{
      decide(evidence), evidence_of(numbers), {{"none", evidence.none}, {std::string(kind), evidence.scale}}, moments};
  if (out.opens()) out.decision.choice = kind;
  return out;
}

MapDecision decide_among(const std::optional<PredictionNumbers>& numbers, const MomentEvidence& moments) {
  if (!numbers) return {decide(moments), "moments", {}, moments};
  GateEvidence evidence{numbers->each[0], numbers->each[1]};
  if (numbers->each.size() > 2) evidence.scale_monge = numbers->each[2];
  if (numbers->each.size() > 3) evidence.monge = numbers->each[3];
  MapDecision out{decide(moments, evidence), evidence_of(*numbers), {}, moments};
  for (std::size_t i = 0; i < numbers->each.size(); ++i) out.candidates.emplace_back(candidates[i], numbers->each[i]);
  return out;
}

Json gate_json(const MapDecision& decided, bool moments_known) {
  Json json{{"choice", decided.decision.choice},
            {"sentence", decided.decision.sentence},
            {"evidence", decided.evidence},
            {"candidates", Json::object()},
            {"unexplained", nullptr},
            {"moments", nullptr}};
  for (const auto& [name, numbers] : decided.candidates) json["candidates"][name] = json_of(numbers);
  const MomentEvidence& moments = decided.moments;
  if (moments.unexplained) json["unexplained"] = *moments.unexplained;
  if (moments_known)
    json["moments"] = {{"mean_share", moments.mean_share},
                       {"mean_kept", moments.mean_kept},
                       {"covariance", moments.covariance},
                       {"covariance_kept", moments.covariance_kept},
                       {"covariance_kept_scaled", moments.covariance_kept_scaled}};
  return json;
}

}  // namespace itspace::cli
