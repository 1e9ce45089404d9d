// SPDX-License-Identifier: Apache-2.0
#include <itspace/random.hpp>
#include <itspace/transport_map.hpp>

#include "core/dense.hpp"
#include "core/require.hpp"

#include <cmath>

namespace itspace {

// ||A||, by the power method on A'A: A x = (I + (B U)')F x with the scaled basis B and the update U.
double TransportMap::largest_stretch() const {
  constexpr int most_steps = 300;
  constexpr double enough = 1e-9;
  Block<double> start(dim(), 1);
  Random(0).fill_normal<double>(start);
  Eigen::VectorXd x = start.col(0).normalized();
  double stretch = 0;
  for (int step = 0; step < most_steps; ++step) {
    const Eigen::VectorXd scaled = factors_.cwiseProduct(x);
    const Eigen::VectorXd image = scaled + update_.transpose() * (scaled_basis_.transpose() * scaled);
    const double found = image.norm();
    x = factors_.cwiseProduct(image + scaled_basis_ * (update_ * image)).normalized();
    if (std::abs(found - stretch) <= enough * found) return found;
    stretch = found;
  }
  return stretch;
}

MapDiagnosis TransportMap::diagnose(std::optional<Index> samples_from, std::optional<Index> samples_to,
                                    const SideNames& names) const {
  const Index d = dim(), m = parts_.core.rows();
  MapDiagnosis diagnosis;
  diagnosis.displacement = displacement();
  double inside = parts_.from_root.squaredNorm(), rest = static_cast<double>(d - m);
  if (is_scaled()) {
    inside = Dense(parts_.scale_from.asDiagonal() * Dense(parts_.basis * parts_.from_root)).squaredNorm();
    rest = parts_.scale_from.cwiseAbs2().dot(outside_shares());
  }
  const double total = inside + rest * parts_.from_remainder;
  diagnosis.relative_displacement = std::sqrt(diagnosis.displacement / total);
  if (diagnosis.displacement > 0)
    diagnosis.mean_share = (parts_.mean_to - parts_.mean_from).squaredNorm() / diagnosis.displacement;
  diagnosis.touched_variance = inside / total;
  diagnosis.condition = condition();

  const auto few = [&](std::optional<Index> given, double known, std::string_view side) {
    std::optional<Index> n = given;
    if (!n && known > 0) n = static_cast<Index>(known);
    if (!n || m == 0) return;
    if (*n < 2 * m)
      diagnosis.warnings.push_back(text(side, " has ", *n, " samples for a map of rank ", m, "; with fewer than ",
                                        2 * m, " its directions are mostly noise: lower the rank"));
    else if (*n < d)
      diagnosis.warnings.push_back(text(side, " has ", *n, " samples in dimension ", d,
                                        "; its mean and remainder are uncertain, and adaptation can hurt: compare with "
                                        "no adaptation and with the means alone"));
  };
  few(samples_from, parts_.samples_from, names.from);
  few(samples_to, parts_.samples_to, names.to);
  constexpr double most_condition = 1e3;
  if (diagnosis.condition > most_condition)
    diagnosis.warnings.push_back(text("the map has condition number ", diagnosis.condition, " (over ", most_condition,
                                      "): it blows up directions that one side lacks; lower the rank or raise the "
                                      "floor of the remainder"));
  if (diagnosis.relative_displacement > 1)
    diagnosis.warnings.push_back(text("the map moves samples by ", diagnosis.relative_displacement,
                                      " times their own spread; the shift may not be one of second order"));
  return diagnosis;
}

}  // namespace itspace
