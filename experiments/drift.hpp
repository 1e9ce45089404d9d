// SPDX-License-Identifier: Apache-2.0
//
// A covariance drift of rank r on standardised features: x -> x + U diag(s_i - 1) V'x, s_i linear from s_1 = 1 to
// s_r = s_max, V the leading directions of the source, leading first.
#pragma once

#include <itspace/block.hpp>

#include <cstdint>
#include <string>

namespace itspace::experiments {

enum class DriftKind {
  none,   // x stays: the natural shift between the domains
  scale,  // U = V: the leading directions are stretched
  mix,    // U seeded orthonormal: they leak into others
};
// @throws std::invalid_argument that lists the names.
DriftKind drift_kind_named(const std::string& name);

class Drift {
 public:
  // @pre leading_directions d x r, orthonormal; severity >= 1 and finite. `none` keeps neither.
  Drift(DriftKind kind, const Block<double>& leading_directions, double severity, std::uint64_t seed);

  // Every row x of samples, in place.
  void apply(Block<double>& samples) const;

 private:
  Block<double> u_, v_;  // u_ = U diag(s_i - 1); empty where nothing moves
};

}  // namespace itspace::experiments
