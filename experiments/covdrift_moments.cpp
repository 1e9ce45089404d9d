// SPDX-License-Identifier: Apache-2.0
#include "covdrift_moments.hpp"

#include <itspace/covariance.hpp>

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <stdexcept>

namespace itspace::experiments {

Standardiser::Standardiser(const Block<double>& samples) {
  const auto n = static_cast<double>(samples.rows());
  mean_ = samples.colwise().mean();
  scale_.setZero(samples.cols());
  for (Index i = 0; i < samples.rows(); ++i) scale_ += (samples.row(i) - mean_).cwiseAbs2();
  for (Index j = 0; j < samples.cols(); ++j) {
    const double deviation = std::sqrt(scale_[j] / n);
    // What rounding of the mean leaves of a constant is no variance.
    const double rounding = 10 * Eigen::NumTraits<double>::epsilon() * std::abs(mean_[j]);
    scale_[j] = deviation > rounding ? 1 / deviation : 1;
  }
}

void Standardiser::apply(Block<double>& samples) const {
  samples.rowwise() -= mean_;
  samples *= scale_.asDiagonal();
}

Moments moments_of(const Block<double>& samples, const Stabilisation& stabilisation) {
  const double gamma = stabilisation.shrinkage, floor = stabilisation.eigenvalue_floor;
  if (!(gamma >= 0 && gamma <= 1)) throw std::invalid_argument(fmt::format("shrinkage {}; it must be 0 to 1", gamma));
  if (!(floor >= 0 && floor <= 1))
    throw std::invalid_argument(fmt::format("eigenvalue floor {} of tr/d; it must be 0 to 1", floor));
  if (samples.rows() < 2)
    throw std::invalid_argument(
        fmt::format("a covariance of {} samples; it needs at least 2: supply more", samples.rows()));

  Moments moments{mean<double>(samples), covariance<double>(samples)};
  Block<double>& sigma = moments.covariance;
  const double mean_variance = sigma.trace() / static_cast<double>(sigma.rows());
  if (!(mean_variance > 0))
    throw std::invalid_argument(
        fmt::format("{} samples that do not vary; a covariance needs some variance", samples.rows()));
  sigma *= 1 - gamma;
  sigma.diagonal().array() += gamma * mean_variance;
  // Shrinkage lifts every eigenvalue to gamma tr/d, so the floor has work to do only where it is the larger of the two.
  if (floor > gamma) {
    const Eigen::SelfAdjointEigenSolver<Small> eigen(sigma);
    const SmallVector floored = eigen.eigenvalues().cwiseMax(floor * mean_variance);
    sigma = eigen.eigenvectors() * floored.asDiagonal() * eigen.eigenvectors().transpose();
    symmetrise<double>(sigma);
  }
  return moments;
}

Block<double> rows_of(const Block<float>& features, const std::vector<Index>& rows) {
  return features(rows, Eigen::indexing::all).cast<double>();
}

}  // namespace itspace::experiments
