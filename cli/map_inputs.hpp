// SPDX-License-Identifier: Apache-2.0
//
// What a map needs to know of its two inputs beside a low-rank factor: means, deviations, sample counts.
#pragma once

#include "input.hpp"

#include <itspace/transport_map.hpp>

#include <Eigen/Core>
#include <optional>

namespace itspace::cli {

struct Means {
  Eigen::VectorXd source, target;
  bool known = true;
  std::optional<Eigen::VectorXd> remixed = {};  // the source's, with the class shares that are likely; where asked for
};

// One mean without the other would move samples by a whole mean, so both are known or both are zero.
template <Storage Scalar>
Means means_of(const Input<Scalar>& source, const Input<Scalar>& target, bool quiet);

// How many samples are behind an input; 0 where that is not known. `told` is for a covariance, which does not tell.
template <Storage Scalar>
double samples_of(const Input<Scalar>& input, std::optional<Index> told);

// Mean, deviations and count of an input: all that the kinds without a low-rank part need.
template <Storage Scalar>
LowRankGaussian moments_of(const Input<Scalar>& input, const Eigen::VectorXd& mean, double samples);

// The same input with standardised features, or their correlation matrix.
template <Storage Scalar>
Input<Scalar> standardised(const Input<Scalar>& input, const LowRankGaussian& moments);

}  // namespace itspace::cli
