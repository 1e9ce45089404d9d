// SPDX-License-Identifier: Apache-2.0
#include <itspace/align.hpp>
#include <itspace/gradient.hpp>

#include "core/factors.hpp"
#include "core/lapack.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

constexpr Index chunk_rows = 1024;

// U V' over the singular directions that are more than rounding: the polar factor where a has full rank.
Small compact_polar(const Small& a, double& nuclear_norm) {
  Svd parts;
  require(svd(a, SvdSize::thin, parts), "the product of the features with the factor is not finite");
  const double cut = static_cast<double>(std::max(a.rows(), a.cols())) * std::numeric_limits<double>::epsilon();
  Index rank = 0;
  while (rank < parts.s.size() && parts.s(rank) > cut * parts.s(0)) ++rank;
  nuclear_norm = parts.s.sum();
  return parts.u.leftCols(rank) * parts.v.leftCols(rank).transpose();
}

}  // namespace

template <Storage Scalar>
ObjectiveGradient<Scalar> objective_and_gradient(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                                 TargetRef<Scalar> target) {
  // A full step without completion lands on B.
  const AlignOptions to_b{
      .steps = 1, .step_size = StepSize::alpha(1), .completion = false, .evaluate_last = false, .keep_iterates = true};
  const auto at_b = align<Scalar>(target, factor, to_b);
  require(at_b.status() == Status::step_limit,
          "the product of the target with the factor is not finite; check both "
          "for values that are not finite or too large");
  return {at_b.trace.steps.front().objective, Scalar(2) * (factor - at_b.iterates.at(1))};
}

template <Storage Scalar>
FeaturesGradient<Scalar> objective_and_features_gradient(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                                         const ConstBlockView<Scalar>& features,
                                                         const Eigen::VectorXd& weights) {
  const Index n = features.rows(), d = features.cols();
  require(factor.rows() == d, "the factor has ", factor.rows(), " rows and the features have ", d,
          " columns; a factor is d x r for features of dimension d");
  require(factor.cols() >= 1, "the factor has no columns; it needs at least one");
  const Moments moments = gather_moments<Scalar>(features, weights);
  const Small y = factor.template cast<double>();
  Small rows;
  const auto each_chunk = [&](auto visit) {
    for (Index first = 0; first < n; first += chunk_rows) {
      rows.resize(std::min(chunk_rows, n - first), d);
      centred_rows<Scalar>(features, moments, first, rows);
      visit(first, rows.rows());
    }
  };

  Small images(n, y.cols());  // T Y
  double target_trace = 0;
  each_chunk([&](Index first, Index count) {
    images.middleRows(first, count).noalias() = rows * y;
    target_trace += rows.squaredNorm();
  });
  double nuclear_norm = 0;
  const Small polar = compact_polar(images, nuclear_norm);

  FeaturesGradient<Scalar> out;
  // dF/dZ = dF/dT pulled back through the scaling and the mean: rho_i g_i - (w_i/sum w) sum_j rho_j g_j.
  out.features_gradient.resize(n, d);
  Small b = Small::Zero(d, y.cols());  // T'P
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(d);
  const Small y_transposed = y.transpose();
  each_chunk([&](Index first, Index count) {
    b.noalias() += rows.transpose() * polar.middleRows(first, count);
    rows.noalias() -= polar.middleRows(first, count) * y_transposed;
    for (Index i = 0; i < count; ++i) rows.row(i) *= 2 * moments.scale_of(first + i);
    sum += rows.colwise().sum();
    out.features_gradient.middleRows(first, count) = rows.template cast<Scalar>();
  });
  const bool weighted = moments.root_scale.size() > 1;
  const double all = weighted ? moments.root_scale.squaredNorm() : 1;
  for (Index i = 0; i < n; ++i) {
    const double share = weighted ? moments.root_scale(i) * moments.root_scale(i) / all : 1 / static_cast<double>(n);
    out.features_gradient.row(i) -= (share * sum).template cast<Scalar>();
  }
  // F = ||B - Y||^2 + (tr Sigma - ||B||^2): both terms >= 0, and no cancellation near the target.
  out.objective = (b - y).squaredNorm() + std::max(0.0, target_trace - b.squaredNorm());
  out.gradient = (2 * (y - b)).template cast<Scalar>();
  return out;
}

#define ITSPACE_INSTANTIATE(Scalar)                                            \
  template ObjectiveGradient<Scalar> objective_and_gradient<Scalar>(           \
      const std::type_identity_t<ConstBlockView<Scalar>>&, TargetRef<Scalar>); \
  template FeaturesGradient<Scalar> objective_and_features_gradient<Scalar>(   \
      const std::type_identity_t<ConstBlockView<Scalar>>&, const ConstBlockView<Scalar>&, const Eigen::VectorXd&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
