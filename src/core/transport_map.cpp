// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/transport_map.hpp>

#include "core/dense.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

// Values of a chunk of samples that stays in cache between the two products.
constexpr Index chunk_values = Index(1) << 21;

void check_model(const LowRankGaussian& model, const char* which) {
  require(model.factor.rows() > 0 && model.factor.cols() > 0, "the ", which, " model has a factor of ",
          model.factor.rows(), " x ", model.factor.cols(), "; it needs at least one row and one column");
  require(model.mean.size() == model.factor.rows(), "the ", which, " model has a mean of ", model.mean.size(),
          " values and a factor of ", model.factor.rows(), " rows; they must agree");
  require(model.remainder > 0 && std::isfinite(model.remainder), "the ", which, " model has remainder ",
          model.remainder, "; it must be positive, since the map divides by it");
  check_finite<double>(model.factor, text("the ", which, " model's factor"));
  require(model.mean.allFinite(), "the ", which, " model's mean has a value that is not finite");
}

// The lower triangular L with LL' = YY' + delta I and a positive diagonal, from the QR of [Y'; sqrt(delta) I]: YY' is
// never formed, so that delta is lost only where it is eps^2 of it.
Small lower_root(const Small& factor, double remainder) {
  const Index m = factor.rows(), r = factor.cols();
  Small stacked = Small::Zero(r + m, m);
  stacked.topRows(r) = factor.transpose();
  stacked.bottomRows(m).diagonal().setConstant(std::sqrt(remainder));
  Small l = qr_triangle(stacked).transpose();
  for (Index j = 0; j < m; ++j)
    if (l(j, j) < 0) l.col(j) *= -1;
  return l;
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
  if (kind == MapKind::monge) {
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

template <Storage Scalar>
LowRankGaussian model_of(const TargetArgument<Scalar>& given,
                         const std::type_identity_t<ConstBlockView<Scalar>>& factor, const Eigen::VectorXd& mean,
                         double floor) {
  const TargetRef<Scalar> target = given;
  require(floor > 0 && std::isfinite(floor), "the floor of the remainder is ", floor, "; it must be positive");
  check_finite<Scalar>(factor, "factor");
  require(mean.allFinite(), "the mean has a value that is not finite; remove or replace such samples first");
  const auto at = evaluate<Scalar>(target, factor);
  require(at.status != Status::not_a_covariance, "the target is not a covariance: ", at.reason);
  require(!failed(at.status), "the product of the target with the factor is not finite");
  const double trace = at.target_trace, d = static_cast<double>(target.dim());
  const double rest = d - static_cast<double>(factor.cols());
  const double captured = at.image.template cast<double>().squaredNorm();
  const double remainder = rest > 0 ? std::max(0.0, trace - captured) / rest : 0.0;
  return {factor.template cast<double>(), mean, std::max(remainder, floor * trace / d)};
}

std::string_view name(MapKind kind) {
  return kind == MapKind::monge ? "monge" : "whiten";
}

std::optional<MapKind> map_kind_named(std::string_view text) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten})
    if (text == name(kind)) return kind;
  return std::nullopt;
}

TransportMap::TransportMap(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind) {
  check_model(from, "from");
  check_model(to, "to");
  const Index d = from.factor.rows(), r = from.factor.cols(), s = to.factor.cols();
  require(d == to.factor.rows(), "the two models have dimensions ", d, " and ", to.factor.rows(),
          "; a map needs them equal");
  // Householder: orthonormal to rounding whatever the rank of [Y, Y_s].
  Dense both(d, r + s);
  both << from.factor, to.factor;
  const Index m = std::min(d, r + s);
  const Eigen::HouseholderQR<Dense> qr(both);
  const Small triangle = qr.matrixQR().topRows(m).triangularView<Eigen::Upper>();
  const Small from_root = lower_root(triangle.leftCols(r), from.remainder);
  const Small to_root = lower_root(triangle.rightCols(s), to.remainder);

  parts_.kind = kind;
  parts_.basis = qr.householderQ() * Dense::Identity(d, m);
  parts_.core = core_of(from_root, to_root, kind);
  parts_.scalar = scalar_of(parts_.core, d, std::sqrt(to.remainder) / std::sqrt(from.remainder));
  parts_.mean_from = from.mean;
  parts_.mean_to = to.mean;
  parts_.from_root = from_root;
  parts_.to_root = to_root;
  parts_.from_remainder = from.remainder;
  parts_.to_remainder = to.remainder;
  prepare();
}

TransportMap::TransportMap(Parts parts) : parts_(std::move(parts)) {
  const Index d = parts_.basis.rows(), m = parts_.basis.cols();
  const auto square = [m](const Block<double>& a) { return a.rows() == m && a.cols() == m; };
  require(d > 0 && m > 0 && m <= d, "the map's basis is ", d, " x ", m, "; it must be d x m with 1 <= m <= d");
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
  const Index m = parts_.core.rows();
  update_ = (parts_.core / parts_.scalar - Block<double>::Identity(m, m)).transpose() * parts_.basis.transpose();
  basis32_ = parts_.basis.cast<float>();
  update32_ = update_.cast<float>();
}

// Rows, with u = c (x - mu): T(x)' = (u + mu_to)' + u'Q (core/c - I)'Q'. One sweep makes u + mu_to in place, u'Q is
// taken from it, and the second product is added to what is there, so that BLAS need not sweep over the samples to
// scale them.
template <Storage Scalar>
void TransportMap::apply(BlockView<Scalar> samples) const {
  require(samples.cols() == dim(), "the samples have ", samples.cols(), " columns and the map has dimension ", dim(),
          "; rows are samples of the map's dimension");
  check_finite<Scalar>(samples, "samples");  // all of them before any is moved
  const Block<Scalar>* basis;
  const Block<Scalar>* update;
  if constexpr (std::same_as<Scalar, float>) {
    basis = &basis32_;
    update = &update32_;
  } else {
    basis = &parts_.basis;
    update = &update_;
  }
  using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
  const Row from = parts_.mean_from.transpose().template cast<Scalar>();
  const Row to = parts_.mean_to.transpose().template cast<Scalar>();
  const Scalar scalar = static_cast<Scalar>(parts_.scalar);
  if (basis->cols() <= kernels::most_strip_columns) {
    kernels::map_rows<Scalar>(scalar, from.data(), to.data(), *basis, *update, samples);
    return;
  }
  const Index m = basis->cols(), step = std::clamp<Index>(chunk_values / dim(), 16, 4096);
  const Row to_inside = (parts_.mean_to.transpose() * parts_.basis).template cast<Scalar>();
  Block<Scalar> inner(std::min(step, samples.rows()), m);
  for (Index first = 0; first < samples.rows(); first += step) {
    const Index count = std::min(step, samples.rows() - first);
    BlockView<Scalar> rows = samples.middleRows(first, count), part = inner.topRows(count);
    for (Index i = 0; i < count; ++i) rows.row(i) = scalar * (rows.row(i) - from) + to;
    kernels::gemm<Scalar>(kernels::Op::plain, Scalar(1), rows, *basis, Scalar(0), part);
    part.rowwise() -= to_inside;
    kernels::gemm<Scalar>(kernels::Op::plain, Scalar(1), part, *update, Scalar(1), rows);
  }
}

TransportMap TransportMap::inverse() const {
  Parts back = parts_;
  // The same formula with the two sides exchanged: as accurate as forward, where inverting the core would not be.
  back.core = core_of(parts_.to_root, parts_.from_root, parts_.kind);
  back.scalar = scalar_of(back.core, dim(), 1 / parts_.scalar);
  std::swap(back.mean_from, back.mean_to);
  std::swap(back.from_root, back.to_root);
  std::swap(back.from_remainder, back.to_remainder);
  return TransportMap(std::move(back));
}

Block<double> TransportMap::matrix() const {
  const Block<double> update = parts_.basis * update_;
  return parts_.scalar * (Block<double>::Identity(dim(), dim()) + update.transpose());
}

double TransportMap::displacement() const {
  // ||mu_to - mu||^2 + tr((A - I) X (A - I)'), and ||A L - L||^2 for the latter: the core with its 1/delta is not in
  // it.
  const Index m = parts_.core.rows();
  const Small l = parts_.from_root, moved = images(l, parts_.to_root, parts_.kind) - l;
  const double c = parts_.scalar - 1;
  return (parts_.mean_to - parts_.mean_from).squaredNorm() + moved.squaredNorm() +
         static_cast<double>(dim() - m) * c * c * parts_.from_remainder;
}

MapDiagnosis TransportMap::diagnose(std::optional<Index> samples_from, std::optional<Index> samples_to,
                                    const SideNames& names) const {
  const Index d = dim(), m = parts_.core.rows();
  MapDiagnosis diagnosis;
  diagnosis.displacement = displacement();
  const double inside = parts_.from_root.squaredNorm();
  const double total = inside + static_cast<double>(d - m) * parts_.from_remainder;
  diagnosis.relative_displacement = std::sqrt(diagnosis.displacement / total);
  if (diagnosis.displacement > 0)
    diagnosis.mean_share = (parts_.mean_to - parts_.mean_from).squaredNorm() / diagnosis.displacement;
  diagnosis.touched_variance = inside / total;
  // ||A|| ||A^(-1)||: the least singular value of the core alone would drown in the rounding of the largest.
  SmallVector there, back;
  require_converged(singular_values(parts_.core, there) &&
                        singular_values(core_of(parts_.to_root, parts_.from_root, parts_.kind), back),
                    "singular values of the map's core");
  const double outside = d > m ? parts_.scalar : 0, outside_back = d > m ? 1 / parts_.scalar : 0;
  diagnosis.condition = std::max(there(0), outside) * std::max(back(0), outside_back);

  const auto few = [&](std::optional<Index> n, std::string_view side) {
    if (!n) return;
    if (*n < 2 * m)
      diagnosis.warnings.push_back(text(side, " has ", *n, " samples for a map of rank ", m, "; with fewer than ",
                                        2 * m, " its directions are mostly noise: lower the rank"));
    else if (*n < d)
      diagnosis.warnings.push_back(text(side, " has ", *n, " samples in dimension ", d,
                                        "; its mean and remainder are uncertain, and adaptation can hurt: compare with "
                                        "no adaptation and with the means alone"));
  };
  few(samples_from, names.from);
  few(samples_to, names.to);
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

template LowRankGaussian model_of<float>(const TargetArgument<float>&,
                                         const std::type_identity_t<ConstBlockView<float>>&, const Eigen::VectorXd&,
                                         double);
template LowRankGaussian model_of<double>(const TargetArgument<double>&,
                                          const std::type_identity_t<ConstBlockView<double>>&, const Eigen::VectorXd&,
                                          double);
template void TransportMap::apply<float>(BlockView<float>) const;
template void TransportMap::apply<double>(BlockView<double>) const;

}  // namespace itspace
