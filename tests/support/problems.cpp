// SPDX-License-Identifier: Apache-2.0
#include "problems.hpp"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <ostream>

namespace itspace::test {

double Draw::uniform() {
  return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53;
}

double Draw::normal() {
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

Matrix Draw::gaussian(Index rows, Index cols) {
  Matrix m(rows, cols);
  for (Index j = 0; j < cols; ++j) {
    for (Index i = 0; i < rows; ++i) m(i, j) = normal();
  }
  return m;
}

Matrix Draw::orthonormal(Index rows, Index cols) {
  const Eigen::HouseholderQR<Matrix> qr(gaussian(rows, cols));
  return qr.householderQ() * Matrix::Identity(rows, cols);
}

Vector eigenvalues_of(Spectrum spectrum, Index dim) {
  Vector lambda(dim);
  for (Index i = 0; i < dim; ++i) {
    const double position = dim > 1 ? static_cast<double>(i) / static_cast<double>(dim - 1) : 0;
    switch (spectrum) {
      case Spectrum::power_law:
        lambda(i) = 1 / static_cast<double>(i + 1);
        break;
      case Spectrum::clustered:
        lambda(i) = std::pow(10, -std::floor(2.99 * position)) * (1 - 1e-6 * static_cast<double>(i));
        break;
      case Spectrum::graded:
        lambda(i) = std::pow(10, -2 * position);
        break;
      case Spectrum::rank_deficient:
        lambda(i) = 2 * i < dim ? 1 / static_cast<double>(i + 1) : 0;
        break;
    }
  }
  return lambda;
}

std::ostream& operator<<(std::ostream& out, Spectrum spectrum) {
  constexpr const char* names[] = {"power_law", "clustered", "graded", "rank_deficient"};
  return out << names[static_cast<int>(spectrum)];
}

Matrix factor_with_spectrum(const Vector& lambda, Draw& draw) {
  const Matrix u = draw.orthonormal(lambda.size(), lambda.size());
  Matrix factor(lambda.size(), (lambda.array() > 0).count());
  for (Index i = 0, col = 0; i < lambda.size(); ++i) {
    if (lambda(i) > 0) factor.col(col++) = u.col(i) * std::sqrt(lambda(i));
  }
  return factor;
}

Matrix covariance_from(const Matrix& factor) {
  if (factor.rows() <= 64) {
    const RealMatrix sigma = real(factor) * real(factor).transpose();
    return ((sigma + sigma.transpose()) / 2).cast<double>();
  }
  const Matrix sigma = factor * factor.transpose();
  return (sigma + sigma.transpose()) / 2;
}

namespace {

// Singular values from 1 to 1/kappa, evenly in the logarithm, with the given sum of squares.
Vector singular_values_with(Index rank, double kappa, double size_squared) {
  Vector s(rank);
  for (Index i = 0; i < rank; ++i) {
    s(i) = rank > 1 ? std::pow(kappa, -static_cast<double>(i) / static_cast<double>(rank - 1)) : 1;
  }
  return s * (std::sqrt(size_squared) / s.norm());
}

}  // namespace

Matrix factor_with_condition(Index dim, Index rank, double kappa, double size_squared, Draw& draw) {
  return draw.orthonormal(dim, rank) * singular_values_with(rank, kappa, size_squared).asDiagonal() *
         draw.orthonormal(rank, rank).transpose();
}

Matrix factor_near_range(const Matrix& target_factor, Index rank, double kappa, double size_squared, Draw& draw) {
  const Index dim = target_factor.rows(), common = std::min(rank, target_factor.cols());
  const Matrix range =
      Eigen::HouseholderQR<Matrix>(target_factor).householderQ() * Matrix::Identity(dim, target_factor.cols());
  Matrix directions = 0.5 * draw.orthonormal(dim, rank);
  directions.leftCols(common) += range * draw.orthonormal(target_factor.cols(), common);
  directions = (directions * draw.orthonormal(rank, rank)).eval();
  return directions * singular_values_with(rank, kappa, size_squared).asDiagonal() *
         draw.orthonormal(rank, rank).transpose();
}

Matrix visible_factor(const Matrix& target_factor, Index rank, double kappa, double size_squared, Draw& draw) {
  constexpr Index largest_dim = 64;  // far above the ranks used there, random starts are seen anyway
  const Index dim = target_factor.rows();
  for (;;) {
    const Matrix y = factor_with_condition(dim, rank, kappa, size_squared, draw);
    if (dim > largest_dim) return y;
    const Matrix q = Eigen::HouseholderQR<Matrix>(y).householderQ() * Matrix::Identity(dim, rank);
    const Vector seen = Eigen::JacobiSVD<Matrix>(target_factor.transpose() * q).singularValues();
    const Vector all = Eigen::JacobiSVD<Matrix>(target_factor).singularValues();
    if (all(0) <= 15 * seen(seen.size() - 1)) return y;
  }
}

Matrix features_with(Index samples, const Vector& lambda, double mean_size, Draw& draw) {
  const Matrix factor = factor_with_spectrum(lambda, draw);
  Vector mean(lambda.size());
  for (Index j = 0; j < mean.size(); ++j) mean(j) = mean_size * (1 + 0.1 * draw.normal());
  Matrix features = draw.gaussian(samples, factor.cols()) * factor.transpose();
  features.rowwise() += mean.transpose();
  return features;
}

std::vector<Size> small_sizes() {
  std::vector<Size> sizes;
  for (const Index dim : {1, 2, 3, 17}) {
    for (Index rank = 1; rank <= dim; ++rank) sizes.push_back({dim, rank});
  }
  return sizes;
}

std::vector<Size> all_sizes() {
  std::vector<Size> sizes = small_sizes();
  sizes.push_back({300, 1});
  sizes.push_back({300, 16});
  return sizes;
}

}  // namespace itspace::test
