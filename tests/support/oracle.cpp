// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

namespace itspace::test {
namespace {

constexpr Index largest_for_long_double = 64;

template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

template <class T>
Dense<T> root_of(const Dense<T>& psd) {
  const Eigen::SelfAdjointEigenSolver<Dense<T>> eigen(psd);
  return eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(T(0)).cwiseSqrt().asDiagonal() *
         eigen.eigenvectors().transpose();
}

template <class T>
T bures(const Dense<T>& a, const Dense<T>& b) {
  const Dense<T> root = root_of<T>(a);
  const Dense<T> middle = root * b * root;
  const Eigen::SelfAdjointEigenSolver<Dense<T>> eigen((middle + middle.transpose()) / T(2), Eigen::EigenvaluesOnly);
  return a.trace() + b.trace() - 2 * eigen.eigenvalues().cwiseMax(T(0)).cwiseSqrt().sum();
}

// A balanced scale, so that 1e150 does not overflow when it is squared in double.
Real power_of_two_near(Real value) {
  return value > 0 ? std::exp2(std::floor(std::log2(value))) : Real(1);
}

}  // namespace

RealMatrix principal_root(const RealMatrix& psd) {
  return root_of<Real>(psd);
}

RealVector eigenvalues(const RealMatrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<RealMatrix> eigen(symmetric, Eigen::EigenvaluesOnly);
  return eigen.eigenvalues().reverse();
}

RealVector singular_values(const RealMatrix& matrix) {
  return Eigen::JacobiSVD<RealMatrix>(matrix).singularValues();
}

Real nuclear_norm(const RealMatrix& matrix) {
  return matrix.size() == 0 ? Real(0) : singular_values(matrix).sum();
}

Real spectral_norm(const RealMatrix& matrix) {
  return matrix.size() == 0 ? Real(0) : singular_values(matrix)(0);
}

Matrix symmetric_power(const Matrix& psd, double exponent) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(psd);
  return eigen.eigenvectors() * eigen.eigenvalues().array().pow(exponent).matrix().asDiagonal() *
         eigen.eigenvectors().transpose();
}

double condition_number(const Matrix& matrix) {
  const Vector s = Eigen::JacobiSVD<Matrix>(matrix).singularValues();
  return s(0) / s(s.size() - 1);
}

Matrix monge_map(const Matrix& x, const Matrix& s) {
  const Matrix root = symmetric_power(x, 0.5), inverse_root = symmetric_power(x, -0.5);
  return inverse_root * symmetric_power(root * s * root, 0.5) * inverse_root;
}

RealMatrix polar(const RealMatrix& matrix) {
  const Eigen::JacobiSVD<RealMatrix> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const RealVector& s = svd.singularValues();
  const Real drop =
      s.size() > 0 ? s(0) * Eigen::NumTraits<Real>::epsilon() * Real(std::max(matrix.rows(), matrix.cols())) : Real(0);
  const Index rank = (s.array() > drop).count();
  return svd.matrixU().leftCols(rank) * svd.matrixV().leftCols(rank).transpose();
}

Real w2_squared(const Matrix& a, const Matrix& b) {
  if (a.rows() <= largest_for_long_double) return bures<Real>(real(a), real(b));
  const Real scale = power_of_two_near(a.trace() + b.trace());
  return scale * Real(bures<double>(a / double(scale), b / double(scale)));
}

Real factor_w2_squared(const RealMatrix& factor_a, const RealMatrix& factor_b) {
  return factor_a.squaredNorm() + factor_b.squaredNorm() - 2 * nuclear_norm(factor_b.transpose() * factor_a);
}

Real procrustes_distance(const RealMatrix& factor_a, const RealMatrix& factor_b) {
  const Index cols = std::max(factor_a.cols(), factor_b.cols());
  RealMatrix a = RealMatrix::Zero(factor_a.rows(), cols), b = RealMatrix::Zero(factor_b.rows(), cols);
  a.leftCols(factor_a.cols()) = factor_a;
  b.leftCols(factor_b.cols()) = factor_b;
  const Eigen::JacobiSVD<RealMatrix> svd(RealMatrix(b.transpose() * a), Eigen::ComputeFullU | Eigen::ComputeFullV);
  return (a - b * (svd.matrixU() * svd.matrixV().transpose())).norm();
}

RealVector weighted_mean(const Matrix& features, const Vector& weights) {
  const RealVector w = weights.size() ? RealVector(weights.cast<Real>()) : RealVector::Ones(features.rows());
  // About the first row: differences of doubles are exact or nearly so, whatever the size of the mean.
  const RealVector about = real(features.row(0)).transpose();
  return about + (real(features).rowwise() - about.transpose()).transpose() * w / w.sum();
}

RealMatrix centred_factor_of(const Matrix& features, const Vector& weights) {
  const RealVector w = weights.size() ? RealVector(weights.cast<Real>()) : RealVector::Ones(features.rows());
  const Real normaliser = w.sum() - w.squaredNorm() / w.sum();
  RealMatrix centred = real(features).transpose();
  const RealVector about = centred.col(0);
  centred.colwise() -= about;
  const RealVector rest = centred * w / w.sum();
  centred.colwise() -= rest;
  return centred * (w / normaliser).cwiseSqrt().asDiagonal();
}

Oracle Oracle::of_covariance(const Matrix& sigma) {
  Oracle oracle;
  oracle.dim_ = sigma.rows();
  oracle.trace_ = real(sigma).trace();
  if (sigma.rows() <= largest_for_long_double) {
    oracle.factor_ = principal_root(real(sigma));
  } else {
    oracle.sigma_ = real(sigma);
  }
  return oracle;
}

Oracle Oracle::of_factor(const RealMatrix& factor) {
  Oracle oracle;
  oracle.dim_ = factor.rows();
  oracle.factor_ = factor;
  oracle.trace_ = oracle.factor_.squaredNorm();
  return oracle;
}

RealMatrix Oracle::covariance() const {
  return sigma_.size() ? sigma_ : RealMatrix(factor_ * factor_.transpose());
}

Real Oracle::nuclear(const Matrix& y) const {
  if (sigma_.size() == 0) return nuclear_norm(factor_.transpose() * real(y));
  return eigenvalues(real(y).transpose() * (sigma_ * real(y))).cwiseMax(Real(0)).cwiseSqrt().sum();
}

Real Oracle::objective(const Matrix& y) const {
  return real(y).squaredNorm() + trace_ - 2 * nuclear(y);
}

RealMatrix Oracle::certificate_factor(const Matrix& y) const {
  if (sigma_.size() == 0) return factor_ * polar(factor_.transpose() * real(y));
  const RealMatrix w = sigma_ * real(y);
  const Eigen::SelfAdjointEigenSolver<RealMatrix> eigen(RealMatrix(real(y).transpose() * w));
  return w * (eigen.eigenvectors() * eigen.eigenvalues().cwiseSqrt().cwiseInverse().asDiagonal() *
              eigen.eigenvectors().transpose());
}

Real Oracle::majorizer(const Matrix& y, const Matrix& b) const {
  return (real(y) - real(b)).squaredNorm() + trace_ - real(b).squaredNorm();
}

Real Oracle::floor(Index rank) const {
  if (sigma_.size() == 0) {
    const RealVector s = singular_values(factor_);
    return rank < s.size() ? s.tail(s.size() - rank).squaredNorm() : Real(0);
  }
  const Real scale = power_of_two_near(trace_);
  const Matrix scaled = (sigma_ / scale).cast<double>();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(scaled, Eigen::EigenvaluesOnly);
  return scale * Real(eigen.eigenvalues().head(dim_ - rank).cwiseMax(0.0).sum());
}

}  // namespace itspace::test
