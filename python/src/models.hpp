// SPDX-License-Identifier: Apache-2.0
//
// Models as the package hands them over (_models.model_arrays).
#pragma once

#include <itspace/transport_map.hpp>

#include "arrays.hpp"

#include <optional>
#include <tuple>

namespace itspace::python {

inline Eigen::VectorXd given_or_empty(const std::optional<Vector>& values) {
  return values ? Eigen::VectorXd(copy_of(*values)) : Eigen::VectorXd();
}

// Factor, mean, remainder, deviations or None, standardised, samples or 0.
using ModelTuple = std::tuple<Matrix<double>, Vector, double, std::optional<Vector>, bool, double>;
inline LowRankGaussian model_from(const ModelTuple& given) {
  const auto& [factor, mean, remainder, deviations, standardised, samples] = given;
  return {view<double>(factor), copy_of(mean), remainder, given_or_empty(deviations), standardised, samples};
}

}  // namespace itspace::python
