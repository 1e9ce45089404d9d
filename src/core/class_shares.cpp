// SPDX-License-Identifier: Apache-2.0
#include <itspace/class_shares.hpp>
#include <itspace/random.hpp>

#include "core/lapack.hpp"
#include "core/require.hpp"
#include "core/shuffle.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace {
namespace {

constexpr Index most_clusters = 20, rows_per_cluster = 5, clustered_rows = 500;
constexpr int lloyd_runs = 2, lloyd_steps = 10;
constexpr double lloyd_tolerance = 1e-3;
constexpr int most_mixes = 100;
constexpr double mix_tolerance = 1e-10;

struct Assignment {
  std::vector<Index> cluster;  // of each row
  double total = 0;            // sum of the squared distances to the centres
};

Assignment nearest(const Block<double>& rows, const Block<double>& centres) {
  const Eigen::RowVectorXd lengths = centres.rowwise().squaredNorm().transpose();
  const Block<double> inner = rows * centres.transpose();
  Assignment out{std::vector<Index>(static_cast<std::size_t>(rows.rows())), rows.squaredNorm()};
  for (Index i = 0; i < rows.rows(); ++i)
    out.total += (lengths - 2 * inner.row(i)).minCoeff(&out.cluster[static_cast<std::size_t>(i)]);
  return out;
}

// The means of the rows of each cluster; one without rows stays where it is.
void move_centres(const Block<double>& rows, const Assignment& assigned, Block<double>& centres) {
  Block<double> sums = Block<double>::Zero(centres.rows(), centres.cols());
  Eigen::VectorXd counts = Eigen::VectorXd::Zero(centres.rows());
  for (Index i = 0; i < rows.rows(); ++i) {
    const Index k = assigned.cluster[static_cast<std::size_t>(i)];
    sums.row(k) += rows.row(i);
    counts(k) += 1;
  }
  for (Index k = 0; k < centres.rows(); ++k)
    if (counts(k) > 0) centres.row(k) = sums.row(k) / counts(k);
}

// Rows drawn far apart from each other (k-means++).
Block<double> spread_rows(const Block<double>& rows, Index count, const Random& random) {
  const auto first = static_cast<Index>(random.bits(0) % static_cast<std::uint64_t>(rows.rows()));
  std::vector<Index> chosen{first};
  Eigen::VectorXd distances = (rows.rowwise() - rows.row(first)).rowwise().squaredNorm();
  while (static_cast<Index>(chosen.size()) < count && distances.maxCoeff() > 0) {
    double left = random.uniform(chosen.size()) * distances.sum();
    Index next = 0;
    distances.maxCoeff(&next);  // where rounding leaves something of the sum
    for (Index i = 0; i < rows.rows(); ++i)
      if ((left -= distances(i)) < 0) {
        next = i;
        break;
      }
    chosen.push_back(next);
    distances = distances.cwiseMin((rows.rowwise() - rows.row(next)).rowwise().squaredNorm());
  }
  Block<double> centres(static_cast<Index>(chosen.size()), rows.cols());
  for (std::size_t k = 0; k < chosen.size(); ++k) centres.row(static_cast<Index>(k)) = rows.row(chosen[k]);
  return centres;
}

std::pair<Block<double>, double> lloyd(const Block<double>& rows, Index count, const Random& random) {
  Block<double> centres = spread_rows(rows, count, random);
  Assignment assigned = nearest(rows, centres);
  for (int step = 0; step < lloyd_steps; ++step) {
    const double before = assigned.total;
    move_centres(rows, assigned, centres);
    assigned = nearest(rows, centres);
    if (assigned.total >= before * (1 - lloyd_tolerance)) break;
  }
  return {std::move(centres), assigned.total};
}

Block<double> some_rows(const Block<double>& rows, std::uint64_t seed) {
  if (rows.rows() <= clustered_rows) return rows;
  std::vector<Index> order = shuffled(rows.rows(), seed, 0);
  Block<double> out(clustered_rows, rows.cols());
  for (Index i = 0; i < clustered_rows; ++i) out.row(i) = rows.row(order[static_cast<std::size_t>(i)]);
  return out;
}

// The best weights with sum 1 on the active points, of any sign; 0 elsewhere.
Eigen::VectorXd mix_of(const Eigen::MatrixXd& gram, const Eigen::VectorXd& inner, const std::vector<bool>& active) {
  std::vector<Index> chosen;
  for (Index i = 0; i < inner.size(); ++i)
    if (active[static_cast<std::size_t>(i)]) chosen.push_back(i);
  const auto size = static_cast<Index>(chosen.size());
  Eigen::MatrixXd system = Eigen::MatrixXd::Ones(size + 1, size + 1);
  Eigen::VectorXd right = Eigen::VectorXd::Ones(size + 1);
  for (Index i = 0; i < size; ++i) {
    for (Index j = 0; j < size; ++j)
      system(i, j) = gram(chosen[static_cast<std::size_t>(i)], chosen[static_cast<std::size_t>(j)]);
    right(i) = inner(chosen[static_cast<std::size_t>(i)]);
  }
  system(size, size) = 0;
  // Points that coincide make it singular: of all solutions the least.
  const Eigen::VectorXd solved = system.completeOrthogonalDecomposition().solve(right);
  Eigen::VectorXd weights = Eigen::VectorXd::Zero(inner.size());
  for (Index i = 0; i < size; ++i) weights(chosen[static_cast<std::size_t>(i)]) = solved(i);
  return weights;
}

}  // namespace

template <Storage Scalar>
ClusterMeans cluster_means(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& mean,
                           const ConstBlockView<double>& factor, std::uint64_t seed) {
  const Index n = features.rows(), d = features.cols();
  require(n >= 1 && mean.size() == d && factor.rows() == d, "the features are ", n, " x ", d, ", the mean has ",
          mean.size(), " entries and the factor ", factor.rows(), " rows; all must have the same features");
  Svd parts;
  require(svd(Eigen::MatrixXd(factor), SvdSize::thin, parts), "the factor is not finite");
  const Block<Scalar> basis = parts.u.template cast<Scalar>();
  Block<double> low = (features * basis).template cast<double>();
  low.rowwise() -= mean.transpose() * parts.u;

  const Index count = std::max<Index>(1, std::min(most_clusters, n / rows_per_cluster));
  const Block<double> rows = some_rows(low, seed);
  auto best = lloyd(rows, count, Random(seed, 1));
  for (int run = 1; run < lloyd_runs; ++run) {
    auto other = lloyd(rows, count, Random(seed, 1 + static_cast<std::uint64_t>(run)));
    if (other.second < best.second) best = std::move(other);
  }

  const Assignment assigned = nearest(low, best.first);
  const Index k = best.first.rows();
  Block<double> sums = Block<double>::Zero(k, d);
  Eigen::VectorXd counts = Eigen::VectorXd::Zero(k), squares = counts;
  for (Index i = 0; i < n; ++i) {
    const Index own = assigned.cluster[static_cast<std::size_t>(i)];
    const Eigen::RowVectorXd centred = features.row(i).template cast<double>() - mean.transpose();
    sums.row(own) += centred;
    squares(own) += centred.squaredNorm();
    counts(own) += 1;
  }
  ClusterMeans out;
  const Index filled = (counts.array() > 0).count();
  out.means.resize(filled, d);
  out.noise.resize(filled);
  out.shares.resize(filled);
  Index next = 0;
  for (Index i = 0; i < k; ++i) {
    if (!(counts(i) > 0)) continue;
    const Eigen::RowVectorXd centre = sums.row(i) / counts(i);
    out.noise(next) = std::max(0.0, squares(i) / counts(i) - centre.squaredNorm()) / counts(i);
    out.shares(next) = counts(i) / static_cast<double>(n);
    out.means.row(next++) = centre + mean.transpose();
  }
  return out;
}

Eigen::VectorXd nearest_mix(const ConstBlockView<double>& points, const Eigen::VectorXd& goal) {
  const Index count = points.rows();
  require(count >= 1 && points.cols() == goal.size(), "the points are ", count, " x ", points.cols(),
          " and the goal has ", goal.size(), " entries; at least one point of as many is needed");
  const Eigen::MatrixXd gram = points * points.transpose();
  const Eigen::VectorXd inner = points * goal;
  Index start = 0;
  (gram.diagonal() - 2 * inner).minCoeff(&start);
  Eigen::VectorXd weights = Eigen::VectorXd::Unit(count, start);
  std::vector<bool> active(static_cast<std::size_t>(count), false);
  active[static_cast<std::size_t>(start)] = true;
  const double slack = mix_tolerance * std::max({gram.cwiseAbs().maxCoeff(), inner.cwiseAbs().maxCoeff(),
                                                 std::numeric_limits<double>::min()});
  for (int round = 0; round < most_mixes; ++round) {
    Eigen::VectorXd wanted = mix_of(gram, inner, active);
    while (wanted.minCoeff() < 0) {  // as far as the weights stay valid, and whoever reaches 0 is left out
      double step = 1;
      for (Index i = 0; i < count; ++i)
        if (wanted(i) < 0) step = std::min(step, weights(i) / (weights(i) - wanted(i)));
      weights += step * (wanted - weights);
      for (Index i = 0; i < count; ++i)
        if (!(weights(i) > mix_tolerance)) {
          weights(i) = 0;
          active[static_cast<std::size_t>(i)] = false;
        }
      wanted = mix_of(gram, inner, active);
    }
    weights = wanted;
    const Eigen::VectorXd slopes = gram * weights - inner;
    double steepest_active = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < count; ++i)
      if (active[static_cast<std::size_t>(i)]) steepest_active = std::max(steepest_active, slopes(i));
    Index entering = 0;
    const double least = slopes.minCoeff(&entering);
    if (active[static_cast<std::size_t>(entering)] || least >= steepest_active - slack) break;
    active[static_cast<std::size_t>(entering)] = true;
  }
  return weights;
}

double unexplained_move(const ClusterMeans& clusters, const Eigen::VectorXd& source_mean,
                        const Eigen::VectorXd& target_mean, double target_noise) {
  const Eigen::VectorXd move = target_mean - source_mean;
  const double squared = move.squaredNorm();
  if (!(squared > 0)) return 0;
  const Block<double> centred = clusters.means.rowwise() - source_mean.transpose();
  const Eigen::VectorXd weights = nearest_mix(centred, move);
  const double left = (centred.transpose() * weights - move).squaredNorm();
  const double noise = target_noise + weights.cwiseAbs2().dot(clusters.noise);
  return std::max(0.0, left - noise) / squared;
}

Eigen::VectorXd remixed_mean(const ClusterMeans& clusters, const Eigen::VectorXd& source_mean,
                             const Eigen::VectorXd& target_mean) {
  const Index count = clusters.means.rows(), dim = source_mean.size();
  require(clusters.shares.size() == count && count >= 1 && clusters.shares.minCoeff() > 0, "there are ", count,
          " clusters and ", clusters.shares.size(), " shares; every cluster needs one, and above 0");
  require(clusters.means.cols() == dim && target_mean.size() == dim, "the clusters have ", clusters.means.cols(),
          " features, the source's mean ", dim, " and the target's ", target_mean.size(), "; all must have the same");
  const Eigen::VectorXd move = target_mean - source_mean;
  const double length = move.norm();
  if (!(length > 0)) return source_mean;
  // A coordinate more for each cluster makes the nearest mix pay for other shares.
  Block<double> points = Block<double>::Zero(count, dim + count);
  points.leftCols(dim) = clusters.means.rowwise() - source_mean.transpose();
  Eigen::VectorXd goal(dim + count);
  goal.head(dim) = move;
  for (Index k = 0; k < count; ++k) {
    const double root = std::sqrt(clusters.shares(k));
    points(k, dim + k) = length / root;
    goal(dim + k) = length * root;
  }
  return source_mean + points.leftCols(dim).transpose() * nearest_mix(points, goal);
}

template ClusterMeans cluster_means<float>(const ConstBlockView<float>&, const Eigen::VectorXd&,
                                           const ConstBlockView<double>&, std::uint64_t);
template ClusterMeans cluster_means<double>(const ConstBlockView<double>&, const Eigen::VectorXd&,
                                            const ConstBlockView<double>&, std::uint64_t);

}  // namespace itspace
