// SPDX-License-Identifier: Apache-2.0
#include "map_report.hpp"

#include "align_report.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace itspace::cli {
namespace {

Json seen_json(const Seen& seen) {
  return {{"observed", seen.observed}, {"noise", seen.noise}, {"kept", seen.kept()}};
}

// Of the whole, as the scales of all features are one line.
Seen scales_seen(const SeenShift& seen) {
  return {seen.deviations_observed.sum(), seen.deviations_noise.sum()};
}

std::string_view title(MapKind kind) {
  switch (kind) {
    case MapKind::monge:
      return "Monge map";
    case MapKind::whiten:
      return "Whitening map";
    case MapKind::mean:
      return "Shift of the means";
    case MapKind::scale:
      return "Scaling of each feature";
    case MapKind::scale_monge:
      break;
  }
  return "Scaling and Monge map";
}

}  // namespace

Json diagnosis_json(const TransportMap& map, const MapDiagnosis& diagnosis) {
  const auto& parts = map.parts();
  return {{"kind", name(map.kind())},
          {"dim", map.dim()},
          {"map_rank", parts.core.rows()},
          {"scalar", parts.scalar},
          {"remainder_target", parts.from_remainder},
          {"remainder_source", parts.to_remainder},
          {"displacement", diagnosis.displacement},
          {"relative_displacement", diagnosis.relative_displacement},
          {"mean_share", diagnosis.mean_share},
          {"touched_variance", diagnosis.touched_variance},
          {"condition", diagnosis.condition},
          {"warnings", diagnosis.warnings}};
}

Json shrink_json(Shrink shrink, const SeenShift& seen, MapKind kind) {
  Json json{{"method", name(shrink)}};
  if (shrink == Shrink::none) return json;
  json["mean"] = seen_json(seen.mean);
  if (kind != MapKind::mean && kind != MapKind::scale) json["covariance"] = seen_json(seen.covariance);
  if (seen.deviations_observed.size() > 0) {
    const Eigen::VectorXd kept = seen.kept().deviations;
    Json scales = seen_json(scales_seen(seen));
    scales["kept"] = std::vector<double>(kept.data(), kept.data() + kept.size());
    json["scales"] = std::move(scales);
  }
  return json;
}

void print_diagnosis(const MapFiles& files, Shrink shrink, const MapMade& made, const MapDiagnosis& diagnosis) {
  const auto line = [](std::string_view label, const std::string& value, std::string_view meaning) {
    print_line(fmt::format("{:<22} {:>12}  {}", label, value, meaning));
  };
  const TransportMap& map = made.map;
  print_line(fmt::format("{} from target {} into the frame of source {}: dimension {}{}.", title(map.kind()),
                         quoted(files.target), quoted(files.source), map.dim(),
                         made.trace ? fmt::format(", acting on {} directions", map.parts().core.rows()) : ""));
  line("displacement", fmt::format("{:.6g}", diagnosis.displacement),
       made.trace ? "mean squared distance a sample of the target's model is moved"
                  : "mean squared distance a sample is moved");
  line("relative displacement", fmt::format("{:.4g}", diagnosis.relative_displacement),
       "its root, in units of the target's spread");
  line("mean share", percent(diagnosis.mean_share), "of the displacement is the shift of the means");
  if (made.trace)
    line("touched variance", percent(diagnosis.touched_variance),
         "of the target's model lies in the directions acted on");
  line("condition", fmt::format("{:.4g}", diagnosis.condition), "largest over smallest stretch");
  if (made.remixed)
    line("class shares", percent(*made.remixed), "of the mean's squared move is put down to them, and left (--remix)");
  if (shrink != Shrink::none) {
    const auto kept = [&](std::string_view label, const Seen& seen, double share, std::string_view what) {
      line(label, percent(share),
           fmt::format("{}; noise alone gives {:.3g} of the {:.3g} observed", what, seen.noise, seen.observed));
    };
    const SeenShift& seen = made.seen;
    const Kept shares = seen.kept();
    kept("mean kept", seen.mean, shares.mean,
         made.remixed ? "of the shift to the remixed mean" : "of the shift of the means");
    if (shares.deviations.size() > 0)
      kept("scales kept", scales_seen(seen), shares.deviations.mean(), "of the features' scales, on average");
    if (made.trace) kept("covariance kept", seen.covariance, shares.covariance, "of what the low-rank part does");
  }
  if (made.trace)
    print_line("\nThe target's factor, aligned from the source's:\n" + AlignReport(std::nullopt).summary(*made.trace));
  print_line(fmt::format("The map is in {}; apply it with\n  itspace transform --map {} --in X.npy --out mapped.npy",
                         quoted(files.out), quoted(files.out)));
}

}  // namespace itspace::cli
