// SPDX-License-Identifier: Apache-2.0
//
// A factor of a covariance that is spelled out: by Cholesky with pivoting, by eigenvalues where that does not do.
#pragma once

#include <itspace/block.hpp>

#include "core/dense.hpp"

#include <optional>

namespace itspace {

// A d x rank factor of a covariance without eigenvalues; nothing where it is indefinite by more than rounding.
std::optional<Dense> pivoted_factor_of(const Dense& sigma);

// sigma = vectors diag(values) vectors', values ascending. Throws std::runtime_error where LAPACK gives up.
void eigen_of_covariance(const Dense& sigma, Eigen::VectorXd& values, Dense& vectors);

// U diag(lambda^(1/2)) of these eigenpairs, where negative ones and those at rounding count as 0.
Dense eigen_factor(const Dense& vectors, Eigen::VectorXd values);

// The first that does of the two. Throws std::invalid_argument unless sigma is square, not empty and finite.
template <Storage Scalar>
Dense dense_factor(const ConstBlockView<Scalar>& sigma);

}  // namespace itspace
