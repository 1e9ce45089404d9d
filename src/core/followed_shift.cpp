// SPDX-License-Identifier: Apache-2.0
#include <itspace/followed_shift.hpp>

#include "core/lapack.hpp"
#include "core/map_models.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

double count_of(const LowRankGaussian& model) {
  return model.samples > 0 ? std::max(model.samples, 1.0) : std::numeric_limits<double>::infinity();
}

double share_beyond(double noise, double observed) {
  return observed > 0 ? std::max(0.0, 1 - noise / observed) : 0.0;
}

// W2^2 between the two covariances; nothing where one side does not vary.
double between_covariances(LowRankGaussian from, LowRankGaussian to) {
  if (!(std::min(from.remainder, to.remainder) > 0)) return 0;
  from.mean = to.mean;
  return std::max(0.0, TransportMap(from, to).displacement());
}

// The average of W2^2 between covariances of two samples of the model, covariance_noise (shift_noise.hpp) of its
// eigenvalues. Those outside the factor are all the remainder, so that of the double sum r x r terms are left.
double expected_displacement(const LowRankGaussian& model, double c) {
  const Small factor = model.factor;
  const Small gram =
      factor.cols() <= factor.rows() ? Small(factor.transpose() * factor) : Small(factor * factor.transpose());
  SmallVector values;
  require(symmetric_eigenvalues(gram, values), "the factor of the source has values that are not finite");
  const double delta = model.remainder;
  const auto outside = static_cast<double>(factor.rows() - values.size());
  const Eigen::ArrayXd inside = values.array().max(0.0) + delta;
  double pairs = outside * outside * delta / 2;
  for (const double l : inside) pairs += (l * inside / (l + inside)).sum() + 2 * outside * l * delta / (l + delta);
  return c / 2 * (pairs + (inside.sum() + outside * delta) / 2);
}

// Var log s = 1/(2n) for normal samples. A feature that is constant on one side is not scaled.
Eigen::VectorXd kept_of_deviations(const LowRankGaussian& source, const LowRankGaussian& stream) {
  const double noise = 0.5 / count_of(source) + 0.5 / count_of(stream);
  Eigen::VectorXd kept = Eigen::VectorXd::Zero(source.deviations.size());
  for (Index j = 0; j < kept.size(); ++j)
    if (source.deviations(j) > 0 && stream.deviations(j) > 0) {
      const double change = std::log(source.deviations(j) / stream.deviations(j));
      kept(j) = share_beyond(noise, change * change);
    }
  return kept;
}

}  // namespace

Kept FollowedShift::kept(MapKind kind) const {
  if (kind == MapKind::whiten) return {};
  return {moments.mean_kept, moments.covariance_kept, kind == MapKind::scale ? deviations_kept : Vector()};
}

FollowedShift followed_shift(const LowRankGaussian& source, const LowRankGaussian& stream,
                             const ClusterMeans* clusters) {
  require(source.mean.size() == stream.mean.size(), "the source has dimension ", source.mean.size(), " and the stream ",
          stream.mean.size(), "; they must agree");
  const double source_count = count_of(source), stream_count = count_of(stream);
  const double source_trace = trace_of(source), mean_error = trace_of(stream) / stream_count;
  const double move = (source.mean - stream.mean).squaredNorm();
  const double covariance = between_covariances(stream, source);
  FollowedShift out;
  MomentEvidence& moments = out.moments;
  moments.mean_kept = share_beyond(source_trace / source_count + mean_error, move);
  moments.covariance_kept =
      share_beyond(expected_displacement(source, 1 / source_count + 1 / stream_count), covariance);
  moments.covariance_kept_scaled = moments.covariance_kept;
  moments.mean_share = move + covariance > 0 ? move / (move + covariance) : 0.0;
  moments.covariance = source_trace > 0 ? covariance / source_trace : std::numeric_limits<double>::infinity();
  if (clusters)
    moments.unexplained =
        moments.mean_kept > 0 ? unexplained_move(*clusters, source.mean, stream.mean, mean_error) : 0.0;
  if (source.deviations.size() > 0 && source.deviations.size() == stream.deviations.size())
    out.deviations_kept = kept_of_deviations(source, stream);
  return out;
}

}  // namespace itspace
