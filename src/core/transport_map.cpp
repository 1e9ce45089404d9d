// SPDX-License-Identifier: Apache-2.0
#include <itspace/evaluate.hpp>
#include <itspace/transport_map.hpp>

#include "core/lapack.hpp"
#include "core/text.hpp"
#include "kernels/block_ops.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

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
  require(model.factor.allFinite() && model.mean.allFinite(), "the ", which, " model has a value that is not finite");
}

// a^(power) for symmetric positive definite a.
Small power(const Small& a, double exponent) {
  SmallVector values;
  Small vectors;
  require(symmetric_eigen(0.5 * (a + a.transpose()), values, vectors), "the map's core has a value that is not finite");
  const SmallVector powered = values.cwiseMax(std::numeric_limits<double>::min()).array().pow(exponent).matrix();
  return vectors * powered.asDiagonal() * vectors.transpose();
}

Small lower_root(const Small& a) {
  const Eigen::LLT<Small> llt(a);
  require(llt.info() == Eigen::Success, "the map's core is not positive definite; use a larger remainder");
  return llt.matrixL();
}

// The symmetric A with A X A = S: L^(-T) (L'SL)^(1/2) L^(-1), X = LL'.
Small monge_core(const Small& from, const Small& to) {
  const Small l = lower_root(from);
  const Small root = power(l.transpose() * to * l, 0.5);
  const auto upper = l.transpose().triangularView<Eigen::Upper>();
  const Small half = upper.solve(root);                     // L^(-T) root
  const Small core = upper.solve(Small(half.transpose()));  // (half L^(-1))', root being symmetric
  return 0.5 * (core + core.transpose());
}

}  // namespace

template <Storage Scalar>
LowRankGaussian model_of(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                         const Eigen::VectorXd& mean, double floor) {
  require(floor > 0 && std::isfinite(floor), "the floor of the remainder is ", floor, "; it must be positive");
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
  Small both(d, r + s);
  both << from.factor, to.factor;
  const Index m = std::min(d, r + s);
  const Eigen::HouseholderQR<Small> qr(both);
  const Small triangle = qr.matrixQR().topRows(m).triangularView<Eigen::Upper>();
  const Small identity = Small::Identity(m, m);
  const Small from_core = triangle.leftCols(r) * triangle.leftCols(r).transpose() + from.remainder * identity;
  const Small to_core = triangle.rightCols(s) * triangle.rightCols(s).transpose() + to.remainder * identity;

  parts_.kind = kind;
  parts_.scalar = std::sqrt(to.remainder / from.remainder);
  parts_.basis = qr.householderQ() * Small::Identity(d, m);
  parts_.core = kind == MapKind::monge ? monge_core(from_core, to_core) : power(to_core, 0.5) * power(from_core, -0.5);
  parts_.mean_from = from.mean;
  parts_.mean_to = to.mean;
  parts_.from_core = from_core;
  parts_.to_core = to_core;
  parts_.from_remainder = from.remainder;
  parts_.to_remainder = to.remainder;
  prepare();
}

TransportMap::TransportMap(Parts parts) : parts_(std::move(parts)) {
  const Index d = parts_.basis.rows(), m = parts_.basis.cols();
  const auto square = [m](const Block<double>& a) { return a.rows() == m && a.cols() == m; };
  require(d > 0 && m > 0 && m <= d, "the map's basis is ", d, " x ", m, "; it must be d x m with 1 <= m <= d");
  require(square(parts_.core) && square(parts_.from_core) && square(parts_.to_core), "the map's core is ",
          parts_.core.rows(), " x ", parts_.core.cols(), " for a basis of ", m, " columns; the cores must be ", m,
          " x ", m);
  require(parts_.mean_from.size() == d && parts_.mean_to.size() == d, "the map's means have ", parts_.mean_from.size(),
          " and ", parts_.mean_to.size(), " values; both must have ", d);
  require(parts_.scalar > 0 && std::isfinite(parts_.scalar), "the map's scalar is ", parts_.scalar,
          "; it must be positive");
  require(parts_.from_remainder > 0 && parts_.to_remainder > 0, "the map's remainders are ", parts_.from_remainder,
          " and ", parts_.to_remainder, "; they must be positive");
  const double error = (parts_.basis.transpose() * parts_.basis - Block<double>::Identity(m, m)).norm();
  require(error <= 1e-8, "the map's basis is not orthonormal (error ", error, ", limit 1e-8)");
  require(parts_.core.allFinite() && parts_.mean_from.allFinite() && parts_.mean_to.allFinite() &&
              parts_.from_core.allFinite() && parts_.to_core.allFinite(),
          "the map has a value that is not finite");
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
  const Block<Scalar>* basis;
  const Block<Scalar>* update;
  if constexpr (std::same_as<Scalar, float>) {
    basis = &basis32_;
    update = &update32_;
  } else {
    basis = &parts_.basis;
    update = &update_;
  }
  const Index m = basis->cols(), step = std::clamp<Index>(chunk_values / dim(), 16, 4096);
  using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
  const Row from = parts_.mean_from.transpose().template cast<Scalar>();
  const Row to = parts_.mean_to.transpose().template cast<Scalar>();
  const Row to_inside = (parts_.mean_to.transpose() * parts_.basis).template cast<Scalar>();
  const Scalar scalar = static_cast<Scalar>(parts_.scalar);
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
  back.scalar = 1 / parts_.scalar;
  if (parts_.kind == MapKind::monge) {
    back.core = monge_core(parts_.to_core, parts_.from_core);  // symmetric to the last bit, and as accurate as forward
  } else {
    back.core = power(Small(parts_.from_core), 0.5) * power(Small(parts_.to_core), -0.5);
  }
  std::swap(back.mean_from, back.mean_to);
  std::swap(back.from_core, back.to_core);
  std::swap(back.from_remainder, back.to_remainder);
  return TransportMap(std::move(back));
}

Block<double> TransportMap::matrix() const {
  const Block<double> update = parts_.basis * update_;
  return parts_.scalar * (Block<double>::Identity(dim(), dim()) + update.transpose());
}

double TransportMap::displacement() const {
  // ||mu_to - mu||^2 + tr((A - I) X (A - I)')
  const Index m = parts_.core.rows();
  const Small moved = (parts_.core - Block<double>::Identity(m, m)) * lower_root(parts_.from_core);
  const double c = parts_.scalar - 1;
  return (parts_.mean_to - parts_.mean_from).squaredNorm() + moved.squaredNorm() +
         static_cast<double>(dim() - m) * c * c * parts_.from_remainder;
}

MapDiagnosis TransportMap::diagnose(std::optional<Index> samples_from, std::optional<Index> samples_to) const {
  const Index d = dim(), m = parts_.core.rows();
  MapDiagnosis diagnosis;
  diagnosis.displacement = displacement();
  const double inside = parts_.from_core.trace();
  const double total = inside + static_cast<double>(d - m) * parts_.from_remainder;
  diagnosis.relative_displacement = std::sqrt(diagnosis.displacement / total);
  if (diagnosis.displacement > 0)
    diagnosis.mean_share = (parts_.mean_to - parts_.mean_from).squaredNorm() / diagnosis.displacement;
  diagnosis.touched_variance = inside / total;
  SmallVector s;
  require(singular_values(parts_.core, s), "the map's core has a value that is not finite");
  double largest = s(0), smallest = s(s.size() - 1);
  if (d > m) {
    largest = std::max(largest, parts_.scalar);
    smallest = std::min(smallest, parts_.scalar);
  }
  diagnosis.condition = largest / smallest;

  const auto few = [&](std::optional<Index> n, const char* which) {
    if (!n) return;
    if (*n < 2 * m)
      diagnosis.warnings.push_back(text("the ", which, " side has ", *n, " samples for a map of rank ", m,
                                        "; with fewer than ", 2 * m,
                                        " its directions are mostly noise: lower the rank"));
    else if (*n < d)
      diagnosis.warnings.push_back(text("the ", which, " side has ", *n, " samples in dimension ", d,
                                        "; its mean and remainder are uncertain, and adaptation can hurt: compare with "
                                        "no adaptation and with the means alone"));
  };
  few(samples_from, "from");
  few(samples_to, "to");
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

template LowRankGaussian model_of<float>(TargetRef<float>, const std::type_identity_t<ConstBlockView<float>>&,
                                         const Eigen::VectorXd&, double);
template LowRankGaussian model_of<double>(TargetRef<double>, const std::type_identity_t<ConstBlockView<double>>&,
                                          const Eigen::VectorXd&, double);
template void TransportMap::apply<float>(BlockView<float>) const;
template void TransportMap::apply<double>(BlockView<double>) const;

}  // namespace itspace
