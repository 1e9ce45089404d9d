// SPDX-License-Identifier: Apache-2.0
//
// The paper's figure 1, computed: what moves in sample OT and what moves in Gaussian OT, on a small example in the
// plane.
#pragma once

#include "gnuplot.hpp"

#include <Eigen/Core>

#include <vector>

namespace itspace::experiments::report {

struct TransportExample {
  Eigen::Vector2d source_mean, target_mean;
  Eigen::Matrix2d source_covariance, target_covariance;
  Eigen::Matrix2d map;                            // T, the optimal linear map: T A T = B
  Eigen::MatrixX2d source_points, target_points;  // drawn from the two Gaussians
  Eigen::MatrixXd plan;                           // the entropic plan between them
};

TransportExample transport_example();

// The covariance at time t of the displacement interpolation, ((1-t) I + t T) A ((1-t) I + t T).
Eigen::Matrix2d interpolated_covariance(const TransportExample& example, double t);

Drawing transport_picture(const TransportExample& example);

}  // namespace itspace::experiments::report
