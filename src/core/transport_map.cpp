// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/transport_map.hpp>

#include "core/dense.hpp"
#include "core/lapack.hpp"
#include "core/map_models.hpp"
#include "core/require.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

void check_kept(const Kept& kept, Index d) {
  const auto check = [](double share, const std::string& what) {
    require(share >= 0 && share <= 1, what, " is ", share, "; the share of a shift that is kept is in [0, 1]");
  };
  check(kept.mean, "kept.mean");
  check(kept.covariance, "kept.covariance");
  require(kept.deviations.size() == 0 || kept.deviations.size() == d, "kept.deviations has ", kept.deviations.size(),
          " values for ", d, " features; give one for each, or none");
  for (Index j = 0; j < kept.deviations.size(); ++j) check(kept.deviations(j), text("kept.deviations[", j, "]"));
}

// The lower triangular L with LL' = A'A and a positive diagonal. `a` is overwritten.
Small lower_triangle(Small& a) {
  Small l = qr_triangle(a).transpose();
  for (Index j = 0; j < l.cols(); ++j)
    if (l(j, j) < 0) l.col(j) *= -1;
  return l;
}

// The lower triangular L with LL' = YY' + delta I and a positive diagonal, from the QR of [Y'; sqrt(delta) I]: YY' is
// never formed, so that delta is lost only where it is eps^2 of it.
Small lower_root(const Small& factor, double remainder) {
  const Index m = factor.rows(), r = factor.cols();
  Small stacked = Small::Zero(r + m, m);
  stacked.topRows(r) = factor.transpose();
  stacked.bottomRows(m).diagonal().setConstant(std::sqrt(remainder));
  return lower_triangle(stacked);
}

Svd decomposed(const Small& a) {
  Svd parts;
  require_converged(svd(a, SvdSize::full, parts), "singular values of the map's core");
  return parts;
}

// A L for the map A from X = LL' to S = MM': where the columns of L go. With the SVD L'M = U D V' it is M V U' for the
// Monge map, whose A = M V U' L^(-1) = L^(-T) U D U' L^(-1) is symmetric; and S^(1/2) U V' with L = U D V' and
// S^(1/2) from the SVD of M for whitening, whose A = S^(1/2) X^(-1/2).
Small images(const Small& l, const Small& m, MapKind kind) {
  if (kind != MapKind::whiten) {
    const Svd coupling = decomposed(product_transposed(l, m));
    return m * (coupling.v * coupling.u.transpose());
  }
  const Svd from = decomposed(l), to = decomposed(m);
  return to.u * (to.s.asDiagonal() * (to.u.transpose() * from.u)) * from.v.transpose();
}

Small core_of(const Small& l, const Small& m, MapKind kind) {
  const Small moved_transposed = images(l, m, kind).transpose();
  const Small core = l.transpose().triangularView<Eigen::Upper>().solve(moved_transposed).transpose();
  require(core.allFinite(),
          "a remainder is too small beside its factor for a map (the rounding of the factor's length, ",
          "squared, is more); use a larger one");
  if (kind == MapKind::whiten) return core;
  return 0.5 * (core + core.transpose());
}

// The root of the model at t in [0, 1] of the way from LL' to MM', by the Monge map: ((1 - t) L + t A L) turned to a
// triangle.
Small interpolated_root(const Small& l, const Small& m, double t) {
  if (t == 1) return m;
  if (t == 0) return l;
  Small point = ((1 - t) * l + t * images(l, m, MapKind::monge)).transpose();
  return lower_triangle(point);
}

// What is done `outside` the basis, where there is an outside. Where there is none any scalar serves, and the size of
// the core loses no digits to one that is far from it.
double scalar_of(const Block<double>& core, Index d, double outside) {
  return core.rows() < d ? outside : core.norm() / std::sqrt(static_cast<double>(d));
}

void check_root(const Block<double>& root, const char* which) {
  check_finite<double>(root, text("the map's ", which, "_root"));
  for (Index i = 0; i < root.rows(); ++i)
    require(root(i, i) > 0 && root.row(i).tail(root.cols() - i - 1).isZero(0), "row ", i, " of the map's ", which,
            "_root is not one of a lower triangle with a positive diagonal; it must be one");
}

}  // namespace

std::string_view name(MapKind kind) {
  switch (kind) {
    case MapKind::monge:
      return "monge";
    case MapKind::whiten:
      return "whiten";
    case MapKind::mean:
      return "mean";
    case MapKind::scale:
      return "scale";
    case MapKind::scale_monge:
      break;
  }
  return "scale+monge";
}

std::optional<MapKind> map_kind_named(std::string_view text) {
  for (const MapKind kind : map_kinds)
    if (text == name(kind)) return kind;
  return std::nullopt;
}

std::string_view map_kind_names() {
  return "monge, whiten, mean, scale or scale+monge";
}

TransportMap::TransportMap(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind, const Kept& kept) {
  check_model(from, "from", kind);
  check_model(to, "to", kind);
  const Index d = from.factor.rows();
  require(d == to.factor.rows(), "the two models have dimensions ", d, " and ", to.factor.rows(),
          "; a map needs them equal");
  check_kept(kept, d);
  parts_.kind = kind;
  parts_.kept = kept;
  parts_.mean_from = from.mean;
  parts_.mean_to = to.mean;
  if (kept.mean < 1) parts_.mean_to = from.mean + kept.mean * (to.mean - from.mean);
  parts_.samples_from = from.samples;
  parts_.samples_to = to.samples;
  if (kind == MapKind::scale_monge) {
    // Without the constant features, whose part is the remainder's on both sides.
    LowRankGaussian moving_from = from, moving_to = to;
    for (Index j = 0; j < d; ++j)
      if (from.deviations(j) == 0 || to.deviations(j) == 0)
        moving_from.factor.row(j).setZero(), moving_to.factor.row(j).setZero();
    make_low_rank_part(moving_from, moving_to);
  } else if (has_low_rank_part(kind)) {
    make_low_rank_part(from, to);
  } else {
    parts_.basis.resize(d, 0);
    parts_.from_remainder = parts_.to_remainder = kind == MapKind::mean ? trace_of(from) / static_cast<double>(d) : 1.0;
  }
  if (has_scales(kind)) make_scales(from.deviations, to.deviations);
  prepare();
}

void TransportMap::make_low_rank_part(const LowRankGaussian& from, const LowRankGaussian& to) {
  const Index d = from.factor.rows(), r = from.factor.cols(), s = to.factor.cols();
  // Householder: orthonormal to rounding whatever the rank of [Y, Y_s].
  Dense both(d, r + s);
  both << from.factor, to.factor;
  const Index m = std::min(d, r + s);
  const Eigen::HouseholderQR<Dense> qr(both);
  const Small triangle = qr.matrixQR().topRows(m).triangularView<Eigen::Upper>();
  const double t = parts_.kept.covariance;
  const Small from_root = lower_root(triangle.leftCols(r), from.remainder);
  const Small to_root = interpolated_root(from_root, lower_root(triangle.rightCols(s), to.remainder), t);
  const double ratio = std::sqrt(to.remainder) / std::sqrt(from.remainder);
  const double outside = t == 1 ? ratio : 1 - t + t * ratio;

  parts_.basis = qr.householderQ() * Dense::Identity(d, m);
  if (t == 0) {
    parts_.core.setIdentity(m, m);
    parts_.scalar = 1;
  } else {
    parts_.core = core_of(from_root, to_root, parts_.kind);
    parts_.scalar = scalar_of(parts_.core, d, outside);
  }
  parts_.from_root = from_root;
  parts_.to_root = to_root;
  parts_.from_remainder = from.remainder;
  parts_.to_remainder = t == 1 ? to.remainder : outside * outside * from.remainder;
}

// A constant feature is scaled by what undoes the low-rank part's action outside its basis, so that it keeps its own
// scale; where both sides are constant it counts with the least deviation there is.
void TransportMap::make_scales(const Eigen::VectorXd& from, const Eigen::VectorXd& to) {
  const Index d = from.size();
  double least = std::numeric_limits<double>::infinity();
  for (Index j = 0; j < d; ++j)
    for (const double deviation : {from(j), to(j)})
      if (deviation > 0) least = std::min(least, deviation);
  const double unit = std::isfinite(least) ? least : 1.0;
  const auto& kept = parts_.kept.deviations;
  parts_.scale_from.resize(d);
  parts_.scale_to.resize(d);
  for (Index j = 0; j < d; ++j) {
    const bool constant = from(j) == 0 || to(j) == 0;
    const double a = from(j) > 0 ? from(j) : unit, t = kept.size() > 0 ? kept(j) : 1.0;
    parts_.scale_from(j) = a;
    parts_.scale_to(j) = constant ? a / outside() : (t == 1 ? to(j) : a + t * (to(j) - a));
    const double ratio = parts_.scale_to(j) / parts_.scale_from(j);
    require(ratio > 0 && std::isfinite(ratio), "feature ", j, " has deviations ", from(j), " and ", to(j),
            ", too far apart for their ratio; rescale the features, or leave this one out");
  }
}

double TransportMap::outside() const {
  return std::sqrt(parts_.to_remainder) / std::sqrt(parts_.from_remainder);
}

TransportMap::TransportMap(Parts parts) : parts_(std::move(parts)) {
  const Index d = parts_.basis.rows(), m = parts_.basis.cols();
  const auto square = [m](const Block<double>& a) { return a.rows() == m && a.cols() == m; };
  if (has_low_rank_part(parts_.kind))
    require(d > 0 && m > 0 && m <= d, "the map's basis is ", d, " x ", m, "; it must be d x m with 1 <= m <= d");
  else
    require(d > 0 && m == 0, "the map's basis is ", d, " x ", m, "; a map of kind ", name(parts_.kind),
            " has one of d x 0");
  require(square(parts_.core) && square(parts_.from_root) && square(parts_.to_root), "the map's core is ",
          parts_.core.rows(), " x ", parts_.core.cols(), " for a basis of ", m, " columns; core and roots must be ", m,
          " x ", m);
  require(parts_.mean_from.size() == d && parts_.mean_to.size() == d, "the map's means have ", parts_.mean_from.size(),
          " and ", parts_.mean_to.size(), " values; both must have ", d);
  require(parts_.scalar > 0 && std::isfinite(parts_.scalar), "the map's scalar is ", parts_.scalar,
          "; it must be positive");
  require(parts_.from_remainder > 0 && parts_.to_remainder > 0 && std::isfinite(parts_.from_remainder) &&
              std::isfinite(parts_.to_remainder),
          "the map's remainders are ", parts_.from_remainder, " and ", parts_.to_remainder,
          "; they must be positive and finite");
  const Index scales = has_scales(parts_.kind) ? d : 0;
  require(parts_.scale_from.size() == scales && parts_.scale_to.size() == scales, "the map's scale_from and scale_to ",
          "have ", parts_.scale_from.size(), " and ", parts_.scale_to.size(), " values; a map of kind ",
          name(parts_.kind), " in dimension ", d, " has ", scales);
  for (const Vector* scale : {&parts_.scale_from, &parts_.scale_to})
    for (Index j = 0; j < scales; ++j)
      require((*scale)(j) > 0 && std::isfinite((*scale)(j)), "the map's scale_",
              scale == &parts_.scale_to ? "to" : "from", "[", j, "] is ", (*scale)(j),
              "; scales must be positive and finite");
  check_samples(parts_.samples_from, "the map's from side");
  check_samples(parts_.samples_to, "the map's to side");
  check_kept(parts_.kept, d);
  check_finite<double>(parts_.basis, "the map's basis");
  check_finite<double>(parts_.core, "the map's core");
  check_root(parts_.from_root, "from");
  check_root(parts_.to_root, "to");
  require(parts_.mean_from.allFinite() && parts_.mean_to.allFinite(),
          "the map's means have a value that is not finite");
  const double error = (parts_.basis.transpose() * parts_.basis - Block<double>::Identity(m, m)).norm();
  require(error <= 1e-8, "the map's basis is not orthonormal (error ", error, ", limit 1e-8)");
  prepare();
}

void TransportMap::prepare() {
  update_ = rows_update(parts_);
  moves_nothing_ = moves_nothing(parts_);
  if (is_scaled()) {
    factors_ = rows_factors(parts_);
    scaled_basis_ = rows_basis(parts_);
  }
  basis32_ = (is_scaled() ? scaled_basis_ : parts_.basis).cast<float>();
  update32_ = update_.cast<float>();
}

TransportMap TransportMap::inverse() const {
  Parts back = parts_;
  if (parts_.scalar != 1 || !parts_.core.isIdentity(0)) {
    // The same formula with the two sides exchanged: as accurate as forward, where inverting the core would not be.
    back.core = core_of(parts_.to_root, parts_.from_root, parts_.kind);
    back.scalar = scalar_of(back.core, dim(), 1 / parts_.scalar);
  }
  std::swap(back.mean_from, back.mean_to);
  std::swap(back.from_root, back.to_root);
  std::swap(back.from_remainder, back.to_remainder);
  std::swap(back.scale_from, back.scale_to);
  std::swap(back.samples_from, back.samples_to);
  return TransportMap(std::move(back));
}

Block<double> TransportMap::matrix() const {
  const Block<double> update = (is_scaled() ? scaled_basis_ : parts_.basis) * update_;
  const Block<double> turned = Block<double>::Identity(dim(), dim()) + update.transpose();
  if (is_scaled()) return turned * factors_.asDiagonal();
  return parts_.scalar * turned;
}

double TransportMap::displacement() const {
  if (moves_nothing_) return 0;
  // ||mu_to - mu||^2 + tr((A - I) X (A - I)'), and ||A L - L||^2 for the latter: the core with its 1/delta is not in
  // it. With scales X = D_from C D_from and A = D_to K D_from^(-1), so that it is tr((D_to K - D_from) C (...)').
  const Small l = parts_.from_root;
  const Small moved = l.size() > 0 ? images(l, parts_.to_root, parts_.kind) : l;
  const double means = (parts_.mean_to - parts_.mean_from).squaredNorm();
  if (!is_scaled()) {
    const double c = outside() - 1;
    return means + (moved - l).squaredNorm() + static_cast<double>(dim() - l.rows()) * c * c * parts_.from_remainder;
  }
  const Dense difference = parts_.scale_to.asDiagonal() * Dense(parts_.basis * moved) -
                           Dense(parts_.scale_from.asDiagonal() * Dense(parts_.basis * l));
  const Eigen::VectorXd rest = outside() * parts_.scale_to - parts_.scale_from;
  return means + difference.squaredNorm() + parts_.from_remainder * rest.cwiseAbs2().dot(outside_shares());
}

// 1 - ||q_j||^2 for the rows q_j of the basis: which share of coordinate j lies outside it.
Eigen::VectorXd TransportMap::outside_shares() const {
  return (1 - parts_.basis.rowwise().squaredNorm().array()).max(0.0);
}

// ||A|| ||A^(-1)||: the least singular value of the core alone would drown in the rounding of the largest.
double TransportMap::condition() const {
  const Index m = parts_.core.rows();
  if (m == 0) return is_scaled() ? factors_.maxCoeff() / factors_.minCoeff() : 1.0;
  if (is_scaled()) return largest_stretch() * inverse().largest_stretch();
  SmallVector there, back;
  require_converged(singular_values(parts_.core, there) &&
                        singular_values(core_of(parts_.to_root, parts_.from_root, parts_.kind), back),
                    "singular values of the map's core");
  const double outside_there = dim() > m ? outside() : 0, outside_back = dim() > m ? 1 / outside() : 0;
  return std::max(there(0), outside_there) * std::max(back(0), outside_back);
}

}  // namespace itspace
