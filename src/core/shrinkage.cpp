// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/shrinkage.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/oas.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

// ||S||_F^2 of the covariance with divisor n - 1, through the smaller side.
template <Storage Scalar>
double squared_size(const ConstBlockView<Scalar>& features, const Moments& moments) {
  if (features.rows() > features.cols()) return features_covariance<Scalar>(features, moments).squaredNorm();
  const Dense samples = centred_samples<Scalar>(features, moments);
  return product_transposed(samples, samples).squaredNorm();
}

constexpr Index block_columns = 64;

// ||Sigma||_F^2 = ||T'T||_F^2, from the columns of Sigma, or of T'T where it has fewer.
template <Storage Scalar>
double squared_size(const TargetRef<Scalar>& target) {
  const Index d = target.dim(), n = target.factor_cols();
  const bool by_factor = target.has_factor() && n < d;
  const Index columns = by_factor ? n : d;
  Block<Scalar> tall(d, 0);
  double sum = 0;
  for (Index first = 0; first < columns; first += block_columns) {
    const Index count = std::min(block_columns, columns - first);
    Block<Scalar> unit = Block<Scalar>::Zero(columns, count), image(columns, count);
    unit.middleRows(first, count).setIdentity();
    if (by_factor) {
      tall.resize(d, count);
      target.apply_factor(unit, tall);
      target.apply_factor_transposed(tall, image);
    } else {
      target.apply(unit, image);
    }
    sum += image.template cast<double>().squaredNorm();
  }
  return sum;
}

}  // namespace

// With S = (1/n) sum z z', mu = tr S/d:
//     b = (sum_i ||z_i||^4/n - ||S||^2)/(d n), e = (||S||^2 - d mu^2)/d, rho = min(b, e)/e.
template <Storage Scalar>
double ledoit_wolf_shrinkage(const ConstBlockView<Scalar>& features) {
  check_finite<Scalar>(features, "features");
  const Moments moments = gather_moments<Scalar>(features, {});
  const double n = static_cast<double>(features.rows()), d = static_cast<double>(features.cols());
  double second = 0, fourth = 0;
  for (Index i = 0; i < features.rows(); ++i) {
    const double square = (features.row(i).template cast<double>() - moments.mean.transpose()).squaredNorm();
    second += square;
    fourth += square * square;
  }
  const double unscaled = (n - 1) / n, size = squared_size<Scalar>(features, moments) * unscaled * unscaled;
  const double mean_variance = second / n / d;
  const double spread = (size - d * mean_variance * mean_variance) / d;
  const double noise = std::min((fourth / n - size) / (d * n), spread);
  return noise > 0 && spread > 0 ? noise / spread : 0.0;
}

template <Storage Scalar>
double oas_shrinkage(const TargetArgument<Scalar>& given, double samples) {
  const TargetRef<Scalar> target = given;
  require(samples >= 1 && std::isfinite(samples), "samples is ", samples,
          "; it must be the count behind the covariance, at least 1");
  const double size = squared_size<Scalar>(target), trace = target.trace();
  require(std::isfinite(size) && std::isfinite(trace), "the product of the target with a block is not finite");
  return oas_share(size, trace, static_cast<double>(target.dim()), samples);
}

#define ITSPACE_INSTANTIATE(Scalar)                                             \
  template double ledoit_wolf_shrinkage<Scalar>(const ConstBlockView<Scalar>&); \
  template double oas_shrinkage<Scalar>(const TargetArgument<Scalar>&, double);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
