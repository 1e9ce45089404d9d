// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/start.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/leading_pairs.hpp"
#include "core/truncation.hpp"

#include <cmath>

namespace itspace {
template <Storage Scalar, Storage Data>
Block<Scalar> start_from_covariance(const std::type_identity_t<ConstBlockView<Data>>& sigma, Index rank) {
  return truncate<Scalar, Data>(sigma, rank);
}

template <Storage Scalar, Storage Data>
Block<Scalar> start_from_features(const std::type_identity_t<ConstBlockView<Data>>& features, Index rank,
                                  const Eigen::VectorXd& weights) {
  const Index n = features.rows(), d = features.cols();
  check_rank(rank, d);
  check_finite<Data>(features, "features");
  const Moments moments = gather_moments<Data>(features, weights);
  if (const auto found = leading_part_of_features<Data>(features, moments, rank))
    return found->part.template cast<Scalar>();
  const Dense triangle = features_triangle<Data>(features, moments);
  if (n > d) return leading_part(triangle.transpose(), rank).cast<Scalar>();
  // T = Q R, R = U S V': the leading part of T is T V_r. Chunks of rows of T' are added up in double.
  Svd parts;
  require_converged(svd(triangle, SvdSize::thin, parts), "singular values of the features");
  const Index count = std::min(rank, n);
  Dense sum = Dense::Zero(d, rank), rows;
  constexpr Index step = 64;
  for (Index first = 0; first < n; first += step) {
    rows.resize(std::min(step, n - first), d);
    centred_rows<Data>(features, moments, first, rows);
    sum.leftCols(count).noalias() += rows.transpose() * parts.v.block(first, 0, rows.rows(), count);
  }
  return sum.cast<Scalar>();
}

template <Storage Scalar>
Block<Scalar> start_from_all_features(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  return centred_factor<Scalar>(features, weights).template cast<Scalar>();
}

template <Storage Scalar>
Block<Scalar> start_from_target(const TargetArgument<Scalar>& given, Index rank) {
  const TargetRef<Scalar> target = given;
  const Index d = target.dim(), n = target.factor_cols();
  check_rank(rank, d);
  if (target.has_factor() && n <= d) {
    const Block<Scalar> identity = Block<Scalar>::Identity(n, n);
    Block<Scalar> factor(d, n);
    target.apply_factor(identity, factor);
    return truncate_factor<Scalar>(factor, rank);
  }
  const Block<Scalar> identity = Block<Scalar>::Identity(d, d);
  Block<Scalar> sigma(d, d);
  target.apply(identity, sigma);
  check_finite<Scalar>(sigma, "the target applied to the identity");
  symmetrise<Scalar>(sigma);
  return truncate<Scalar>(sigma, rank);
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                            \
  template Block<Scalar> start_from_covariance<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&,      \
                                                             Index);                                                 \
  template Block<Scalar> start_from_features<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&, Index, \
                                                           const Eigen::VectorXd&);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
ITSPACE_INSTANTIATE(float, double)
#undef ITSPACE_INSTANTIATE

#define ITSPACE_INSTANTIATE(Scalar)                                                                              \
  template Block<Scalar> start_from_all_features<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&); \
  template Block<Scalar> start_from_target<Scalar>(const TargetArgument<Scalar>&, Index);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
