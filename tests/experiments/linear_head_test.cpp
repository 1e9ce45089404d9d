// SPDX-License-Identifier: Apache-2.0
#include "linear_head.hpp"

#include "metrics.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <stdexcept>

namespace itspace::experiments {
namespace {

struct Clouds {
  Block<double> samples;
  std::vector<int> labels;
};

// Unit Gaussians around `distance` times a unit vector of each class, in an order in which the largest label is first.
Clouds clouds(const std::vector<int>& classes, double distance, std::uint64_t seed, Index each = 60, Index dim = 7) {
  const auto count = static_cast<Index>(classes.size());
  Clouds out{Block<double>(each * count, dim), {}};
  Random(seed).fill_normal<double>(out.samples);
  for (Index i = 0; i < out.samples.rows(); ++i) {
    const Index c = count - 1 - i % count;
    out.samples(i, c) += distance;
    out.labels.push_back(classes[static_cast<std::size_t>(c)]);
  }
  return out;
}

double accuracy_of(const LinearHead& head, const Clouds& on) {
  return accuracy(head.predict(head.scores(on.samples)), on.labels);
}

TEST(LinearHead, LearnsWhatIsSeparableWhateverTheLabels) {
  for (const std::vector<int>& classes :
       {std::vector{-1, 7, 42}, std::vector{-1, 1}, std::vector{1, 2}, std::vector{0, 5, 6, 9, 2147483647}}) {
    const TrainedHead trained = train_head(clouds(classes, 12, 1).samples, clouds(classes, 12, 1).labels, 0);
    EXPECT_EQ(trained.head.classes(), classes);
    EXPECT_EQ(accuracy_of(trained.head, clouds(classes, 12, 2)), 100) << "first class " << classes[0];
  }
}

// The direction of a binary score must not depend on which class came first in the data.
TEST(LinearHead, ScoresTheLargerOfTwoLabels) {
  for (const bool larger_first : {false, true}) {
    Clouds data = clouds({-1, 1}, 6, 3);
    if (larger_first != (data.labels.front() == 1)) {
      data.samples = data.samples.colwise().reverse().eval();
      std::reverse(data.labels.begin(), data.labels.end());
    }
    ASSERT_EQ(data.labels.front() == 1, larger_first);
    const Block<double> scores = train_head(data.samples, data.labels, 0).head.scores(data.samples);
    ASSERT_EQ(scores.cols(), 1);
    std::vector<bool> is_positive;
    for (const int label : data.labels) is_positive.push_back(label == 1);
    EXPECT_GT(auroc(scores.col(0), is_positive), 99);
  }
}

// At the optimum of the definition, min ||(w, b)||^2/2 + C sum log(1 + exp(-y s)), the gradient is small against where
// the solver began; LIBLINEAR promises 0.01 (times a share for unbalanced classes).
TEST(LinearHead, IsTheRegularisedLogisticOptimum) {
  const Clouds data = clouds({0, 1}, 1, 5);
  const TrainedHead trained = train_head(data.samples, data.labels, 0);
  const Index d = data.samples.cols();
  const auto gradient = [&](const SmallVector& scores, SmallVector w, double b) {
    SmallVector g(d + 1);
    g << w, b;
    for (Index i = 0; i < data.samples.rows(); ++i) {
      const double y = data.labels[static_cast<std::size_t>(i)] == 1 ? 1 : -1;
      const double pull = -trained.cost * y / (1 + std::exp(y * scores[i]));
      g.head(d) += pull * data.samples.row(i).transpose();
      g[d] += pull;
    }
    return g;
  };
  // The head's weights, read off the scores of the unit vectors.
  const SmallVector at_zero = trained.head.scores(Block<double>::Zero(1, d)).row(0);
  const SmallVector w = (trained.head.scores(Block<double>::Identity(d, d)).col(0).array() - at_zero[0]).matrix();
  const SmallVector scores = trained.head.scores(data.samples).col(0);
  const double first = gradient(SmallVector::Zero(scores.size()), SmallVector::Zero(d), 0).norm();
  EXPECT_LE(gradient(scores, w, at_zero[0]).norm(), 0.01 * first);
}

TEST(LinearHead, ChoosesACostFromTheGridAndIsTheSameEveryTime) {
  const Clouds data = clouds({0, 1, 2}, 2, 7);
  const TrainedHead once = train_head(data.samples, data.labels, 4), again = train_head(data.samples, data.labels, 4);
  EXPECT_EQ(std::count(std::begin(head_cost_grid), std::end(head_cost_grid), once.cost), 1);
  EXPECT_EQ(once.cost, again.cost);
  EXPECT_EQ(once.head.scores(data.samples), again.head.scores(data.samples));
}

TEST(LinearHead, AfterAMapIsTheHeadOfTheMovedSamples) {
  const Clouds data = clouds({0, 1, 2}, 3, 8);
  const LinearHead head = train_head(data.samples, data.labels, 0).head;
  const Index d = data.samples.cols();
  LowRankGaussian from{Block<double>(d, 2), Eigen::VectorXd(d), 0.7}, to{Block<double>(d, 2), Eigen::VectorXd(d), 0.2};
  Random(1).fill_normal<double>(from.factor);
  Random(2).fill_normal<double>(to.factor);
  for (Index i = 0; i < d; ++i) {
    from.mean[i] = Random(3).normal(static_cast<std::uint64_t>(i));
    to.mean[i] = Random(4).normal(static_cast<std::uint64_t>(i));
  }
  for (const MapKind kind : {MapKind::whiten, MapKind::monge}) {
    const TransportMap map(from, to, kind);
    Block<double> moved = data.samples;
    map.apply<double>(moved);
    const Block<double> expected = head.scores(moved), got = head.after(map).scores(data.samples);
    EXPECT_LE((got - expected).norm(), 1e3 * Eigen::NumTraits<double>::epsilon() * expected.norm()) << name(kind);
  }
  const Block<double> shifted = data.samples.rowwise() + to.mean.transpose();
  const Block<double> expected = head.scores(shifted), got = head.after_shift(to.mean).scores(data.samples);
  EXPECT_LE((got - expected).norm(), 1e2 * Eigen::NumTraits<double>::epsilon() * expected.norm());
}

TEST(LinearHead, RefusesWhatCannotBeLearned) {
  const Clouds data = clouds({3, 4}, 1, 9);
  const std::vector<int> one_class(data.labels.size(), 3);
  EXPECT_THROW(train_head(data.samples, one_class, 0), std::invalid_argument);
  EXPECT_THROW(train_head(data.samples, {3, 4}, 0), std::invalid_argument);
  Block<double> broken = data.samples;
  broken(2, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(train_head(broken, data.labels, 0), std::invalid_argument);
  const LinearHead head = train_head(data.samples, data.labels, 0).head;
  EXPECT_THROW(head.scores(Block<double>::Zero(2, 3)), std::invalid_argument);
}

// A class so rare that only the held-out rows have it is learned all the same.
TEST(LinearHead, LearnsAClassThatIsNotAmongTheKeptRows) {
  Clouds data = clouds({0, 1}, 12, 10);
  for (std::size_t rare = 0; rare < data.labels.size(); ++rare) {
    std::vector<int> labels = data.labels;
    Block<double> samples = data.samples;
    labels[rare] = 2;
    samples.row(static_cast<Index>(rare)).setZero();
    samples(static_cast<Index>(rare), 5) = 40;
    const LinearHead head = train_head(samples, labels, 1).head;
    ASSERT_EQ(head.classes(), (std::vector{0, 1, 2}));
    EXPECT_EQ(head.predict(head.scores(samples))[rare], 2) << "row " << rare;
  }
}

TEST(LinearHead, LearnsFromAHandfulOfSamples) {
  const Block<double> samples{{-1, 0}, {1, 0}};
  EXPECT_EQ(train_head(samples, {5, 6}, 0).head.classes(), (std::vector{5, 6}));
}

}  // namespace
}  // namespace itspace::experiments
