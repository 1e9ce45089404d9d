// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/gradient.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/polar.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

constexpr Index rows_of_piece = 1024;

}  // namespace

template <Storage Scalar>
ObjectiveGradient<Scalar> objective_and_gradient(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                                 const TargetArgument<Scalar>& given) {
  const TargetRef<Scalar> target = given;
  check_finite<Scalar>(factor, "factor");
  const auto at = evaluate<Scalar>(target, factor);
  require(at.status != Status::not_a_covariance, "the target is not a covariance: ", at.reason);
  require(!failed(at.status),
          "the product of the target with the factor is not finite; check both "
          "for values that are not finite or too large");
  return {at.certificate.objective, Scalar(2) * (factor - at.image), at.certificate.resolution};
}

template <Storage Scalar>
FeaturesGradient<Scalar> objective_and_features_gradient(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                                         const ConstBlockView<Scalar>& features,
                                                         const Eigen::VectorXd& weights) {
  const Index n = features.rows(), d = features.cols();
  require(factor.rows() == d, "the factor has ", factor.rows(), " rows and the features have ", d,
          " columns; a factor is d x r for features of dimension d");
  require(factor.cols() >= 1, "the factor has no columns; it needs at least one");
  check_finite<Scalar>(factor, "factor");
  check_finite<Scalar>(features, "features");
  const Moments moments = gather_moments<Scalar>(features, weights);
  const Block<double> y = factor.template cast<double>(), y_transposed = y.transpose();
  const Index r = y.cols();
  Block<double> rows;  // a chunk of T
  const auto each_chunk = [&](auto visit) {
    for (Index first = 0; first < n; first += rows_of_piece) {
      const Index count = std::min(rows_of_piece, n - first);
      rows.resize(count, d);
      for (Index i = 0; i < count; ++i)
        rows.row(i) =
            moments.scale_of(first + i) * (features.row(first + i).template cast<double>() - moments.mean.transpose());
      visit(first, count);
    }
  };

  Block<double> images(n, r);  // T Y
  double target_trace = 0;
  each_chunk([&](Index first, Index count) {
    kernels::gemm<double>(kernels::Op::plain, 1, rows, y, 0, images.middleRows(first, count));
    target_trace += rows.squaredNorm();
  });
  require(images.allFinite(), "the product of the features with the factor is not finite; scale them down");
  const Block<double> polar = compact_polar(images);

  FeaturesGradient<Scalar> out;
  // dF/dZ is dF/dT pulled back through the scaling and the mean: rho_i g_i - (w_i/sum w) sum_j rho_j g_j.
  out.features_gradient.resize(n, d);
  Block<double> b = Block<double>::Zero(d, r);  // T'P
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(d);
  each_chunk([&](Index first, Index count) {
    const auto part = polar.middleRows(first, count);
    kernels::gemm<double>(kernels::Op::transposed, 1, rows, part, 1, b);
    kernels::gemm<double>(kernels::Op::plain, -1, part, y_transposed, 1, rows);
    for (Index i = 0; i < count; ++i) {
      rows.row(i) *= 2 * moments.scale_of(first + i);
      sum += rows.row(i);
      out.features_gradient.row(first + i) = rows.row(i).template cast<Scalar>();
    }
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

#define ITSPACE_INSTANTIATE(Scalar)                                                        \
  template ObjectiveGradient<Scalar> objective_and_gradient<Scalar>(                       \
      const std::type_identity_t<ConstBlockView<Scalar>>&, const TargetArgument<Scalar>&); \
  template FeaturesGradient<Scalar> objective_and_features_gradient<Scalar>(               \
      const std::type_identity_t<ConstBlockView<Scalar>>&, const ConstBlockView<Scalar>&, const Eigen::VectorXd&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
