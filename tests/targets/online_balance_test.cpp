// SPDX-License-Identifier: Apache-2.0
//
// Streams that are balanced by class against their definition: all samples at once, the weights of each class scaled to
// its share in the source, in long double.
#include "entries.hpp"
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/online.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace itspace::test {
namespace {

constexpr Index dim = 25, classes = 3;
constexpr double never = std::numeric_limits<double>::infinity();

ClassBalance three_classes() {
  return {.shares = Vector(Eigen::Vector3d(0.5, 0.3, 0.2)), .classes = {"rose", "tulip", "lily"}};
}

// Samples of classes about means of their own.
struct Drawn {
  Matrix samples;
  std::vector<Index> labels;

  Drawn rows(Index first, Index count) const {
    return {samples.middleRows(first, count), {labels.begin() + first, labels.begin() + first + count}};
  }
};

Drawn draw_samples(Index count, std::uint64_t seed, bool sorted) {
  Draw draw(seed);
  const Matrix means = 20 * draw.gaussian(classes, dim), basis = draw.gaussian(dim, dim);
  Drawn out{draw.gaussian(count, dim) * basis, {}};
  for (Index i = 0; i < count; ++i) {
    // Two thirds of the first class, whatever its share in the source.
    const double place = sorted ? double(i) / double(count) : draw.uniform();
    const Index label = place < 0.66 ? 0 : place < 0.85 ? 1 : 2;
    out.labels.push_back(label);
    out.samples.row(i) += means.row(label);
  }
  return out;
}

// Sigma and the mean of weights w_i = q_c u_i/(sum of u in the class).
struct Definition {
  Matrix samples;
  std::vector<Index> labels;
  Vector weights;  // u

  RealVector balanced() const {
    const ClassBalance balance = three_classes();
    RealVector sums = RealVector::Zero(classes), out(weights.size());
    for (Index i = 0; i < weights.size(); ++i) sums(labels[std::size_t(i)]) += weights(i);
    for (Index i = 0; i < weights.size(); ++i) {
      const Index label = labels[std::size_t(i)];
      out(i) = Real(balance.shares(label)) * weights(i) / sums(label);
    }
    return out;
  }
  RealVector mean() const {
    const RealVector w = balanced();
    return real(samples).transpose() * w / w.sum();
  }
  RealMatrix sigma() const {
    const RealVector w = balanced();
    const RealMatrix centred = real(samples).rowwise() - mean().transpose();
    return centred.transpose() * w.asDiagonal() * centred / (w.sum() - w.squaredNorm() / w.sum());
  }
  Real effective() const {
    const RealVector w = balanced();
    return w.sum() * w.sum() / w.squaredNorm();
  }
};

template <Storage Scalar>
void expect_moments(const OnlineTarget<Scalar>& target, const Definition& truth, bool exact) {
  const RealMatrix sigma = truth.sigma();
  const Real size = real(truth.samples).cwiseAbs().maxCoeff();
  const Real limit =
      ratio_limit * Real(dim) * (eps<Scalar> * sigma.trace() + eps<double> * size * std::sqrt(sigma.trace()));
  EXPECT_LE((real(target.mean()) - truth.mean()).cwiseAbs().maxCoeff(), ratio_limit * eps<double> * size);
  EXPECT_LE(std::abs(target.trace() - sigma.trace()), limit);
  EXPECT_LE((real(target.deviations()).cwiseAbs2() - sigma.diagonal()).cwiseAbs().maxCoeff(), limit);
  EXPECT_LE(std::abs(target.effective_samples() - truth.effective()), ratio_limit * eps<double> * truth.effective());
  const RealMatrix found = entries(target);
  EXPECT_LE(std::abs(found.trace() - sigma.trace()), limit);
  EXPECT_GE(eigenvalues((found + found.transpose()) / 2)(dim - 1), -limit);
  if (exact) {
    EXPECT_LE((found - sigma).norm(), limit);
  }
}

template <class T>
class Balanced : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Balanced, Scalars);

// Every class by its share, whether it came early or late, often or seldom; with all kept exactly, and with little
// room.
TYPED_TEST(Balanced, IsTheCovarianceWithEachClassAtItsShare) {
  constexpr Index n = 90, size = 15;
  for (const bool sorted : {true, false})
    for (const double half_life : {never, 2.5})
      for (const Index kept : {dim, Index(2)})
        for (const Index window : {0, 4}) {
          if (window > 0 && (half_life != never || kept != dim)) continue;
          SCOPED_TRACE(testing::Message() << "sorted " << sorted << " half-life " << half_life << " kept " << kept
                                          << " window " << window);
          const Drawn all = draw_samples(n, 3, sorted);
          OnlineTarget<TypeParam> target(
              {.half_life = half_life, .window = window, .kept_rank = kept, .balance = three_classes()});
          Definition truth;
          const Index first_counted = window > 0 ? n - window * size : 0;
          truth.weights = Vector::Zero(n - first_counted);
          truth.samples = wide(block<TypeParam>(Matrix(all.samples.bottomRows(n - first_counted))));
          truth.labels.assign(all.labels.begin() + first_counted, all.labels.end());
          for (Index first = 0; first < n; first += size) {
            const Drawn batch = all.rows(first, size);
            EXPECT_TRUE(target.update(block<TypeParam>(batch.samples), {}, {.labels = batch.labels}));
          }
          for (Index i = 0; i < truth.weights.size(); ++i)
            truth.weights(i) = std::exp2(-double((n - 1 - first_counted - i) / size) / half_life);
          expect_moments(target, truth, kept == dim);
        }
}

// With an infinite half-life it does not matter in which order samples come: sorted by class, or not.
TEST(Balanced, ASortedStreamEndsWhereAShuffledOneDoes) {
  constexpr Index n = 120, size = 20;
  const Drawn all = draw_samples(n, 4, true);
  std::vector<Index> order;
  for (Index i = 0; i < n; ++i) order.push_back(7 * i % n);  // 7 and 120 have no common divisor
  OnlineTarget<double> sorted({.kept_rank = dim, .balance = three_classes()}), shuffled = sorted;
  for (Index first = 0; first < n; first += size) {
    const Drawn batch = all.rows(first, size);
    sorted.update(block<double>(batch.samples), {}, {.labels = batch.labels});
    Predicted predicted;
    Matrix rows(size, dim);
    for (Index i = 0; i < size; ++i) {
      rows.row(i) = all.samples.row(order[std::size_t(first + i)]);
      predicted.labels.push_back(all.labels[std::size_t(order[std::size_t(first + i)])]);
    }
    shuffled.update(block<double>(rows), {}, predicted);
  }
  const Real scale = Real(sorted.trace());
  EXPECT_LE((entries(sorted) - entries(shuffled)).norm(), ratio_limit * Real(dim) * eps<double> * 100 * scale);
  EXPECT_LE((real(sorted.mean()) - real(shuffled.mean())).norm(), ratio_limit * eps<double> * 100);
}

// Probabilities of 0 and 1 are labels; others share a sample out.
TEST(Balanced, ProbabilitiesShareASampleOut) {
  constexpr Index n = 40;
  const Drawn all = draw_samples(n, 5, false);
  Predicted certain, unsure;
  certain.probabilities.setZero(n, classes);
  for (Index i = 0; i < n; ++i) certain.probabilities(i, all.labels[std::size_t(i)]) = 1;
  unsure.probabilities = 0.7 * certain.probabilities;
  unsure.probabilities.array() += 0.1;
  const Block<double> samples = block<double>(all.samples);
  OnlineTarget<double> by_label({.kept_rank = dim, .balance = three_classes()}), by_probability = by_label,
                                                                                 soft = by_label;
  by_label.update(samples, {}, {.labels = all.labels});
  by_probability.update(samples, {}, certain);
  EXPECT_EQ(entries(by_label), entries(by_probability));
  soft.update(samples, {}, unsure);
  // The definition: each sample once in each class.
  Definition truth;
  truth.samples.resize(classes * n, dim);
  truth.weights.resize(classes * n);
  for (Index c = 0; c < classes; ++c)
    for (Index i = 0; i < n; ++i) {
      truth.samples.row(c * n + i) = all.samples.row(i);
      truth.weights(c * n + i) = unsure.probabilities(i, c);
      truth.labels.push_back(c);
    }
  expect_moments(soft, truth, true);
}

TEST(Balanced, SharesAndMeansOfTheClasses) {
  const Drawn all = draw_samples(60, 6, false);
  OnlineAligner<double> aligner({.rank = 2, .stream = {.kept_rank = 4, .balance = three_classes()}});
  Observation seen;
  for (Index first = 0; first < 60; first += 20) {
    const Drawn batch = all.rows(first, 20);
    seen = aligner.observe(block<double>(batch.samples), {}, {.labels = batch.labels});
  }
  Vector counts = Vector::Zero(classes);
  Matrix means = Matrix::Zero(classes, dim);
  for (Index i = 0; i < 60; ++i) {
    const Index label = all.labels[std::size_t(i)];
    counts(label) += 1;
    means.row(label) += all.samples.row(i);
  }
  EXPECT_LE((seen.class_shares - counts / 60).norm(), 10 * eps<double>);
  for (Index c = 0; c < classes; ++c) means.row(c) /= counts(c);
  EXPECT_LE((wide(aligner.target().class_means()) - means).norm(), 1000 * eps<double>);
  ASSERT_TRUE(seen.trace);
  EXPECT_TRUE(seen.trace->certified());
}

TEST(Balanced, WhatTheSourceDoesNotHaveIsRefusedByNameAndChangesNothing) {
  const Drawn all = draw_samples(12, 7, false);
  const Block<double> samples = block<double>(all.samples);
  OnlineTarget<double> target({.kept_rank = 3, .balance = three_classes()});
  target.update(samples, {}, {.labels = all.labels});
  const RealMatrix before = entries(target);
  const auto refused = [&](const Predicted& predicted, std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { target.update(samples, {}, predicted); });
  };
  Predicted predicted{.labels = all.labels};
  predicted.labels[4] = 3;
  refused(predicted, {"predicted[4]", "class 3", "rose", "lily"});
  predicted.labels[4] = -1;
  refused(predicted, {"predicted[4]", "class -1"});
  predicted.labels.pop_back();
  refused(predicted, {"11 predicted", "12 samples"});
  refused({}, {"no predicted classes", "3"});
  refused({.probabilities = Block<double>::Ones(12, 2)}, {"12 x 2", "3 classes"});
  Predicted negative{.probabilities = Block<double>::Ones(12, 3)};
  negative.probabilities(2, 1) = -0.1;
  refused(negative, {"predicted[2, 1]", "-0.1"});
  negative.probabilities(2, 1) = std::nan("");
  refused(negative, {"predicted[2, 1]"});
  EXPECT_EQ(entries(target), before);
  EXPECT_EQ(target.version(), 1u);
  OnlineTarget<double> plain;
  expect_throws_naming<std::invalid_argument>({"no classes of a source"},
                                              [&] { plain.update(samples, {}, {.labels = all.labels}); });

  const auto bad_balance = [](const ClassBalance& balance, std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { OnlineTarget<double>{{.balance = balance}}; });
  };
  bad_balance({}, {"no shares"});
  bad_balance({.shares = Vector::Zero(2)}, {"class 0", "is 0"});
  bad_balance({.shares = Vector::Ones(2), .classes = {"one"}}, {"1 names", "2 classes"});
  bad_balance({.shares = Vector::Ones(1), .classes = {"a\nb"}}, {"one line"});
}

}  // namespace
}  // namespace itspace::test
