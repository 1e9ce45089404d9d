// SPDX-License-Identifier: Apache-2.0
#include "core/covariance_factor.hpp"

#include <itspace/covariance.hpp>

#include "core/lapack.hpp"
#include "core/require.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace itspace {
namespace {

// D L, L of Cholesky with complete pivoting of C = D^(-1) Sigma D^(-1) down to pivots of d eps; nothing where what is
// left is more than rounding of C, so that Sigma is indefinite by more than that.
std::optional<Dense> pivoted_factor_scaled(const Dense& sigma, const Eigen::VectorXd& scale) {
  const Index d = sigma.rows();
  const Eigen::VectorXd inverse = scale.cwiseInverse();
  const Dense c = inverse.asDiagonal() * sigma * inverse.asDiagonal();
  const double rounding = static_cast<double>(d) * eps64 * c.diagonal().maxCoeff();
  if (!c.allFinite() || !(rounding >= 0)) return std::nullopt;
  Dense l = pivoted_cholesky(c, rounding);
  if (l.cols() < d) {
    Dense rest = -c;
    add_gram(l.transpose(), rest);  // its lower triangle: LL' - C
    for (Index j = 0; j < d; ++j)
      if (!(rest.col(j).tail(d - j).cwiseAbs().maxCoeff() <= 10 * rounding)) return std::nullopt;
  }
  return Dense(scale.asDiagonal() * l);
}

}  // namespace

// Scaled by powers of two to a diagonal of order one first: then
// what Cholesky rounds, and what is cut, is d eps (Sigma_ii Sigma_jj)^(1/2) in entry [i, j], the size of the entry's
// own rounding, and small variances beside large ones are kept. Where a row's entries have the rounding of a larger one
// in them, that scaling finds Sigma indefinite, and d eps max Sigma_ii is what can be had.
std::optional<Dense> pivoted_factor_of(const Dense& sigma) {
  Eigen::VectorXd scale = Eigen::VectorXd::Ones(sigma.rows());
  for (Index i = 0; i < sigma.rows(); ++i)
    if (sigma(i, i) > 0) scale(i) = std::ldexp(1.0, std::ilogb(sigma(i, i)) / 2);
  if (auto found = pivoted_factor_scaled(sigma, scale)) return found;
  return pivoted_factor_scaled(sigma, Eigen::VectorXd::Ones(sigma.rows()));
}

void eigen_of_covariance(const Dense& sigma, Eigen::VectorXd& values, Dense& vectors) {
  require_converged(symmetric_eigen(sigma, values, vectors), "eigenvalues of the covariance");
}

// U diag(lambda^(1/2)). Eigenvalues at rounding of the largest are rounding: their roots would not be. Double's
// rounding, also for float entries: d float's eps would take real variance away with the noise (1e-4 of the largest at
// d = 1024).
Dense eigen_factor(const Dense& vectors, Eigen::VectorXd values) {
  const double cut = static_cast<double>(values.size()) * eps64 * std::max(0.0, values.maxCoeff());
  for (Index i = 0; i < values.size(); ++i)
    if (values(i) <= cut) values(i) = 0;
  return vectors * values.cwiseSqrt().asDiagonal();
}

template <Storage Scalar>
Dense dense_factor(const ConstBlockView<Scalar>& sigma) {
  require(sigma.rows() == sigma.cols() && sigma.rows() > 0, "the covariance is ", sigma.rows(), " x ", sigma.cols(),
          "; it must be square and not empty");
  check_finite<Scalar>(sigma, "covariance");
  const Dense wide = sigma.template cast<double>();
  if (auto found = pivoted_factor_of(wide)) return std::move(*found);
  Eigen::VectorXd values;
  Dense vectors;
  eigen_of_covariance(wide, values, vectors);
  return eigen_factor(vectors, values);
}

template Dense dense_factor<float>(const ConstBlockView<float>&);
template Dense dense_factor<double>(const ConstBlockView<double>&);

}  // namespace itspace
