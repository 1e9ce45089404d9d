// SPDX-License-Identifier: Apache-2.0
//
// Another mix of the source's clusters: the optimum by its conditions, and what it says of thinned classes and of
// moves.
#include <itspace/class_shares.hpp>
#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

namespace itspace {
namespace {

Block<double> gaussian(Index rows, Index cols, std::uint64_t seed) {
  Block<double> out(rows, cols);
  Random(seed).fill_normal<double>(out);
  return out;
}

// On the simplex the slope of the squared distance is the least, and the same, wherever a weight is positive.
void expect_optimal(const Block<double>& points, const Eigen::VectorXd& goal, const Eigen::VectorXd& weights) {
  const Eigen::VectorXd slopes = points * (points.transpose() * weights - goal);
  const double scale = points.norm() * (points.norm() + goal.norm());
  EXPECT_NEAR(weights.sum(), 1, 1e-9);
  EXPECT_GE(weights.minCoeff(), 0);
  for (Index i = 0; i < weights.size(); ++i)
    if (weights(i) > 1e-8) {
      EXPECT_NEAR(slopes(i), slopes.minCoeff(), 1e-9 * scale) << i;
    }
}

TEST(ClassShares, NearestMixMeetsTheConditionsOfItsOptimum) {
  std::uint64_t seed = 0;
  for (const auto& [count, dim] : {std::pair<Index, Index>{7, 5}, {20, 60}, {20, 3}, {1, 4}, {6, 2}}) {
    const Block<double> points = gaussian(count, dim, ++seed);
    const Eigen::VectorXd outside = 2 * gaussian(dim, 1, 100 + seed).col(0);
    expect_optimal(points, outside, nearest_mix(points, outside));
    const Eigen::VectorXd shares = gaussian(count, 1, 200 + seed).col(0).cwiseAbs();
    const Eigen::VectorXd inside = points.transpose() * shares / shares.sum();
    const Eigen::VectorXd weights = nearest_mix(points, inside);
    expect_optimal(points, inside, weights);
    EXPECT_LT((points.transpose() * weights - inside).norm(), 1e-7 * points.norm());
  }
  const Block<double> same = Block<double>::Ones(4, 3);
  EXPECT_NEAR(nearest_mix(same, Eigen::VectorXd::Zero(3)).sum(), 1, 1e-9);
}

struct Classes {
  Index dim = 12, count = 5;
  Block<double> centres = 4 * gaussian(count, dim, 1);

  Block<double> sample(const Eigen::VectorXi& sizes, std::uint64_t seed) const {
    Block<double> rows = gaussian(sizes.sum(), dim, seed);
    for (Index k = 0, next = 0; k < count; ++k)
      for (Index i = 0; i < sizes(k); ++i) rows.row(next++) += centres.row(k);
    return rows;
  }
};

double left_over(const Block<double>& source, const Block<double>& target) {
  const Eigen::VectorXd mean = source.colwise().mean().transpose(), moved = target.colwise().mean().transpose();
  const Block<double> centred = source.rowwise() - mean.transpose();
  const Eigen::MatrixXd factor = centred.transpose().eval().leftCols(8);  // eight samples span most of the classes
  const double trace = (target.rowwise() - moved.transpose()).squaredNorm() / static_cast<double>(target.rows());
  const ClusterMeans clusters = cluster_means<double>(source, mean, Block<double>(factor));
  return unexplained_move(clusters, mean, moved, trace / static_cast<double>(target.rows()));
}

TEST(ClassShares, ThinnedClassesAreExplainedAndAShiftIsNot) {
  const Classes classes;
  const Block<double> source = classes.sample(Eigen::VectorXi::Constant(5, 200), 2);
  EXPECT_LT(left_over(source, classes.sample(Eigen::VectorXi{{20, 20, 200, 200, 200}}, 3)), 0.05);
  Block<double> aside = classes.sample(Eigen::VectorXi::Constant(5, 200), 4);
  // A direction in which the classes do not differ.
  const Eigen::MatrixXd all = classes.centres.transpose() * classes.centres;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> axes(all);
  aside.rowwise() += 10 * axes.eigenvectors().col(0).transpose();
  EXPECT_GT(left_over(source, aside), 0.9);
}

// By its own definition: on the simplex the slope of both parts together is the least, and the same, wherever a weight
// is positive.
TEST(ClassShares, RemixedMeanIsTheBestOfItsTwoParts) {
  std::uint64_t seed = 40;
  for (const double far : {0.1, 1.0, 10.0}) {
    const Index count = 6, dim = 9;
    ClusterMeans clusters{gaussian(count, dim, ++seed), Eigen::VectorXd::Zero(count)};
    const Eigen::VectorXd drawn = gaussian(count, 1, 100 + seed).col(0).cwiseAbs();
    clusters.shares = drawn / drawn.sum();
    const Eigen::VectorXd& shares = clusters.shares;
    const Eigen::VectorXd mean = clusters.means.transpose() * shares;
    const Eigen::VectorXd target = mean + far * gaussian(dim, 1, 200 + seed).col(0);
    const Eigen::VectorXd remixed = remixed_mean(clusters, mean, target);
    // Six means in nine dimensions: the mix has one set of weights.
    const Eigen::VectorXd weights = Eigen::MatrixXd(clusters.means.transpose()).colPivHouseholderQr().solve(remixed);
    EXPECT_LT((clusters.means.transpose() * weights - remixed).norm(), 1e-9);
    EXPECT_NEAR(weights.sum(), 1, 1e-7);
    const double squared = (target - mean).squaredNorm();
    const Eigen::VectorXd slopes =
        clusters.means * (remixed - target) / squared + ((weights - shares).array() / shares.array()).matrix();
    for (Index i = 0; i < count; ++i) {
      EXPECT_GT(weights(i), -1e-7);
      if (weights(i) > 1e-6) {
        EXPECT_NEAR(slopes(i), slopes.minCoeff(), 1e-6 * (1 + slopes.cwiseAbs().maxCoeff())) << far << ' ' << i;
      }
    }
    EXPECT_EQ(remixed_mean(clusters, mean, mean), mean);
  }
  ClusterMeans unknown{gaussian(3, 2, 1), Eigen::VectorXd::Zero(3)};
  EXPECT_THROW(remixed_mean(unknown, Eigen::VectorXd::Zero(2), Eigen::VectorXd::Ones(2)), std::invalid_argument);
  unknown.shares = Eigen::VectorXd::Constant(3, 1.0 / 3);
  EXPECT_THROW(remixed_mean(unknown, Eigen::VectorXd::Zero(2), Eigen::VectorXd::Ones(3)), std::invalid_argument);
}

// Of the way from the target's mean to the source's, what the remixed mean asks a map to go.
double asked_of_a_map(const Block<double>& source, const Block<double>& target) {
  const Eigen::VectorXd mean = source.colwise().mean().transpose(), moved = target.colwise().mean().transpose();
  const Block<double> factor = source.topRows(8).transpose();
  const ClusterMeans clusters = cluster_means<double>(source, mean, factor);
  return (remixed_mean(clusters, mean, moved) - moved).norm() / (mean - moved).norm();
}

TEST(ClassShares, RemixedMeanLeavesWhatThinnedClassesDidAndUndoesAShift) {
  const Classes classes;
  const Block<double> source = classes.sample(Eigen::VectorXi::Constant(5, 200), 2);
  EXPECT_LT(asked_of_a_map(source, classes.sample(Eigen::VectorXi{{100, 100, 200, 200, 200}}, 3)), 0.5);
  Block<double> away = classes.sample(Eigen::VectorXi::Constant(5, 200), 4);
  away.array() += 10;
  EXPECT_GT(asked_of_a_map(source, away), 0.9);
}

TEST(ClassShares, ClusterMeansPartitionTheRows) {
  // Few rows: every one a cluster's share. The mix of the means by their counts is the mean of the rows, and a cluster
  // of equal rows has no error.
  Block<double> rows(20, 3);
  for (Index i = 0; i < 20; ++i) rows.row(i) << double(i % 4), double(i % 2), 1;
  const Eigen::VectorXd mean = rows.colwise().mean().transpose();
  const ClusterMeans found = cluster_means<double>(rows, mean, Block<double>(Block<double>::Identity(3, 2)));
  EXPECT_EQ(found.means.rows(), 4);
  EXPECT_LT((found.means.colwise().mean().transpose() - mean).norm(), 1e-14);
  EXPECT_LT(found.noise.maxCoeff(), 1e-15);
  EXPECT_EQ(found.shares, Eigen::VectorXd::Constant(4, 0.25));
  EXPECT_EQ(cluster_means<double>(rows, mean, Block<double>(Block<double>::Identity(3, 2))).means, found.means);
  EXPECT_THROW(cluster_means<double>(rows, mean.head(2), Block<double>(3, 2)), std::invalid_argument);
}

TEST(ClassShares, FloatSamplesHaveTheSameClusters) {
  const Classes classes;
  const Block<double> rows = classes.sample(Eigen::VectorXi::Constant(5, 60), 7);
  const Eigen::VectorXd mean = rows.colwise().mean().transpose();
  const Block<double> factor = gaussian(12, 4, 9);
  const ClusterMeans exact = cluster_means<double>(rows, mean, factor);
  const Block<float> stored = rows.cast<float>();
  const ClusterMeans rounded = cluster_means<float>(stored, mean, factor);
  ASSERT_EQ(exact.means.rows(), rounded.means.rows());
  EXPECT_LT((exact.means - rounded.means).norm(), 1e-5 * exact.means.norm());
}

}  // namespace
}  // namespace itspace
