// SPDX-License-Identifier: Apache-2.0
//
// What the kinds of maps ask of their models.
#pragma once

#include <itspace/transport_map.hpp>

#include <string>

namespace itspace {

inline bool has_low_rank_part(MapKind kind) {
  return kind != MapKind::mean && kind != MapKind::scale;
}

inline bool has_scales(MapKind kind) {
  return kind == MapKind::scale || kind == MapKind::scale_monge;
}

// Refuse what is no model, by name: `what` and `which` say whose it is.
void check_deviations(const Eigen::VectorXd& deviations, Index d, const std::string& what);
void check_samples(double samples, const std::string& what);
void check_model(const LowRankGaussian& model, const char* which, MapKind kind);

// The trace of the covariance that a model stands for; of all features constant, its own.
inline double trace_of(const LowRankGaussian& model) {
  if (model.deviations.size() > 0 && !model.deviations.isZero(0)) return model.deviations.squaredNorm();
  return model.factor.squaredNorm() + static_cast<double>(model.factor.rows()) * model.remainder;
}

}  // namespace itspace
