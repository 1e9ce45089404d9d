// SPDX-License-Identifier: Apache-2.0
//
// What the kinds of maps ask of their models.
#pragma once

#include <itspace/transport_map.hpp>

#include "core/require.hpp"

#include <algorithm>
#include <cmath>
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

inline void check_model_options(const ModelOptions& options) {
  require(options.floor > 0 && std::isfinite(options.floor), "the floor of the remainder is ", options.floor,
          "; it must be positive");
  require(options.shrinkage >= 0 && options.shrinkage <= 1, "the shrinkage is ", options.shrinkage,
          "; it is a share in [0, 1]");
}

// delta of a model: the mean variance beyond a factor of so many columns, of which the certificate captured so much.
inline double remainder_beyond(double trace, double captured, Index dim, Index cols, const ModelOptions& options) {
  const double d = static_cast<double>(dim), rest = d - static_cast<double>(cols), rho = options.shrinkage;
  const double beyond = rest > 0 ? std::max(0.0, trace - captured) / rest : 0.0;
  return (1 - rho) * std::max(beyond, options.floor * trace / d) + rho * trace / d;
}

inline bool moves_nothing(const TransportMap::Parts& parts) {
  return parts.scalar == 1 && parts.mean_from == parts.mean_to && parts.core.isIdentity(0) &&
         parts.scale_from == parts.scale_to;
}

// A map of rows: with u = F (x - mu), F = c D_to D_from^(-1), it is T(x)' = (u + mu_to)' + (u'D_to^(-1) Q) update,
// update = (core/c - I)'Q'D_to.
inline Vector rows_factors(const TransportMap::Parts& parts) {
  if (parts.scale_from.size() == 0) return Eigen::VectorXd::Constant(parts.basis.rows(), parts.scalar);
  return parts.scalar * parts.scale_to.cwiseQuotient(parts.scale_from);
}
inline Block<double> rows_basis(const TransportMap::Parts& parts) {
  if (parts.scale_to.size() == 0) return parts.basis;
  return parts.scale_to.cwiseInverse().asDiagonal() * parts.basis;
}
inline Block<double> rows_update(const TransportMap::Parts& parts) {
  const Index m = parts.core.rows();
  const Small change = parts.core / parts.scalar - Block<double>::Identity(m, m);
  Block<double> update = change.transpose() * parts.basis.transpose();
  if (parts.scale_to.size() > 0) update = update * parts.scale_to.asDiagonal();
  return update;
}

}  // namespace itspace
