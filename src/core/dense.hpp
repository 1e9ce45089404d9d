// SPDX-License-Identifier: Apache-2.0
//
// Dense: a matrix with a side as long as the feature space (a covariance spelled out, a factor, a set of samples), in
// double and in LAPACK's order. Small, its r x r sibling, is the same type to Eigen, so that the calls of lapack.hpp
// take both; which of the two a matrix is decides what it costs, and so the code says it.
#pragma once

#include <Eigen/Core>

namespace itspace {

using Dense = Eigen::MatrixXd;

}  // namespace itspace
