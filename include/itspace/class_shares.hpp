// SPDX-License-Identifier: Apache-2.0
//
// Could other class shares alone be behind the move of a mean? No label is needed to ask: the source is cut into a few
// clusters, and the mix of their means nearest to the target's mean is found. What no mix reaches is none that a change
// of shares could make.
//
//     const ClusterMeans clusters = cluster_means<float>(source, model.mean, model.factor);
//     const double left = unexplained_move(clusters, model.mean, target_mean, target_trace/target_samples);
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>
#include <cstdint>

namespace itspace {

struct ClusterMeans {
  Block<double> means;    // k x d
  Eigen::VectorXd noise;  // k: the squared error of each mean
};

// k-means in the span of the factor (20 clusters, fewer where there are fewer than 5 rows for each): the best of two
// seeded runs on 500 rows at most, then the means of all rows in all features. O(n d (r + k)).
// @pre at least one row; mean and factor have as many entries and rows as the features have columns.
template <Storage Scalar>
ITSPACE_API ClusterMeans cluster_means(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& mean,
                                       const ConstBlockView<double>& factor, std::uint64_t seed = 0);

// Weights on the simplex whose mix of the points (rows) is nearest to the goal, by active sets. @pre at least one
// point.
ITSPACE_API Eigen::VectorXd nearest_mix(const ConstBlockView<double>& points, const Eigen::VectorXd& goal);

// The share of the mean's squared move that is left when the clusters may be mixed anew, beyond noise; 0 where the mean
// did not move. `target_noise` is the squared error of the target's mean, tr Sigma/n.
ITSPACE_API double unexplained_move(const ClusterMeans& clusters, const Eigen::VectorXd& source_mean,
                                    const Eigen::VectorXd& target_mean, double target_noise);

}  // namespace itspace
