// SPDX-License-Identifier: Apache-2.0
//
// The optimal coupling of two Gaussians that are given by factors, from which their distance and the geodesic follow.
#pragma once

#include "core/dense.hpp"

namespace itspace {

// Throws std::invalid_argument unless the two sides of a distance have one dimension.
void check_same_dimension(Eigen::Index a, Eigen::Index b);

// `wide` and `narrow` turned to it, so that W2^2 = ||wide - turned||^2.
struct Coupling {
  Dense wide, turned;
  bool first_is_wide;

  double cost() const { return (wide - turned).squaredNorm(); }
};

// Of the Gaussians A A' and B B'. @pre both finite.
Coupling couple(const Dense& a, const Dense& b);

}  // namespace itspace
