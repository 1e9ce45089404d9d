// SPDX-License-Identifier: Apache-2.0
#include "drift.hpp"

#include "covdrift_split.hpp"

#include <itspace/random.hpp>

#include <fmt/format.h>

#include <Eigen/QR>
#include <cmath>
#include <stdexcept>

namespace itspace::experiments {
namespace {

Block<double> seeded_orthonormal(Index dim, Index cols, std::uint64_t seed) {
  Small gaussian(dim, cols);
  const Random random(seed, stream::mixed_directions);
  for (Index i = 0; i < dim; ++i)
    for (Index j = 0; j < cols; ++j) gaussian(i, j) = random.normal(static_cast<std::uint64_t>(i * cols + j));
  return Eigen::HouseholderQR<Small>(gaussian).householderQ() * Small::Identity(dim, cols);
}

}  // namespace

DriftKind drift_kind_named(const std::string& name) {
  if (name == "none") return DriftKind::none;
  if (name == "scale") return DriftKind::scale;
  if (name == "mix") return DriftKind::mix;
  throw std::invalid_argument(fmt::format("there is no drift '{}'; the drifts are none, scale, mix", name));
}

Drift::Drift(DriftKind kind, const Block<double>& leading_directions, double severity, std::uint64_t seed) {
  if (!(severity >= 1) || !std::isfinite(severity))
    throw std::invalid_argument(fmt::format("severity {} of the drift; it must be finite and at least 1", severity));
  if (kind == DriftKind::none || severity == 1) return;
  v_ = leading_directions;
  u_ = kind == DriftKind::scale ? v_ : seeded_orthonormal(v_.rows(), v_.cols(), seed);
  u_ *= SmallVector::LinSpaced(v_.cols(), 0, severity - 1).asDiagonal();
}

void Drift::apply(Block<double>& samples) const {
  if (v_.size() == 0) return;
  const Block<double> along = samples * v_;
  samples.noalias() += along * u_.transpose();
}

}  // namespace itspace::experiments
