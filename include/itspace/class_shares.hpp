// SPDX-License-Identifier: Apache-2.0
//
// Could other class shares alone be behind the move of a mean? No label is needed to ask: the source is cut into a few
// clusters, and the mix of their means nearest to the target's mean is found. What no mix reaches is none that a change
// of shares could make.
//
//     const ClusterMeans clusters = cluster_means<float>(source, model.mean, model.factor);
//     const double left = unexplained_move(clusters, model.mean, target_mean, target_trace/target_samples);
//
// And how much of the move is to be put down to them? Between none of it and all that a mix can explain, `remixed_mean`
// is the source's mean with the shares that are likely: a map to it does not undo what a change of shares did.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>
#include <cstdint>

namespace itspace {

struct ClusterMeans {
  Block<double> means;          // k x d
  Eigen::VectorXd noise;        // k: the squared error of each mean
  Eigen::VectorXd shares = {};  // k: of the rows; empty: not known
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

// The source's mean with its clusters' shares w in place of their own p, where w on the simplex has the least
// |target_mean - mix(w)|^2/|target_mean - source_mean|^2 + sum_k (w_k - p_k)^2/p_k: what is left of the move, as a
// share of it, and how far the shares had to change. A small move across clusters is put down to shares nearly whole, a
// large one, or one aside, hardly. Where the mean did not move it is the source's. @pre the shares are known, all
// positive.
ITSPACE_API Eigen::VectorXd remixed_mean(const ClusterMeans& clusters, const Eigen::VectorXd& source_mean,
                                         const Eigen::VectorXd& target_mean);

}  // namespace itspace
