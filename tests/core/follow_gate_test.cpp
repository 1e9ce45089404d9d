// SPDX-License-Identifier: Apache-2.0
//
// The gate of a stream against its definition: of all answers so far the last samples, what the rule says of them, and
// a choice that is made when the last decisions agree. And what moved, against sums over all eigenvalues.
#include "expect_throw.hpp"

#include <itspace/follow_gate.hpp>
#include <itspace/followed_shift.hpp>
#include <itspace/shift_noise.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace itspace::test {
namespace {

using Maps = std::vector<MapKind>;

// Rows of probabilities that lean towards the first class by `pull`, or the likeliest class of each.
Block<double> answers(std::mt19937_64& random, Index rows, Index classes, double pull, bool labels) {
  std::normal_distribution<double> normal;
  Block<double> shares(rows, classes);
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < classes; ++k) shares(i, k) = std::exp(2 * normal(random) + (k == 0 ? pull : 0));
    shares.row(i) /= shares.row(i).sum();
  }
  return labels ? Block<double>(labels_of(shares)) : shares;
}

long double entropy(const std::map<Index, long double>& counts) {
  long double total = 0, out = 0;
  for (const auto& [label, count] : counts) total += count;
  for (const auto& [label, count] : counts)
    if (count > 0) out -= count / total * std::log(count / total);
  return out;
}

// Every row that ever came, and the choice and numbers that the definition makes of them.
class Definition {
 public:
  Definition(FollowGateOptions options, Index classes) : options_(std::move(options)), classes_(classes) {}

  void add(const GateAnswers& batch) { history_.push_back(batch); }

  // The last batches, as few as have enough rows; of the last one no more rows than that.
  Block<double> last(std::size_t side) const {
    std::vector<Block<double>> parts;
    Index rows = 0;
    for (std::size_t i = history_.size(); i-- > 0 && rows < options_.samples;) {
      const Block<double>& all = side == 0 ? history_[i].before : history_[i].after[side - 1];
      parts.push_back(all.bottomRows(std::min(all.rows(), options_.samples)));
      rows += parts.back().rows();
    }
    Block<double> out(rows, parts.front().cols());
    for (const Block<double>& part : parts) out.middleRows(rows -= part.rows(), part.rows()) = part;
    return out;
  }

  Predictions numbers(std::size_t side, Index labels_there) const {
    const Block<double> all = last(side);
    const bool labels = all.cols() == 1;
    const long double scale =
        std::log(static_cast<long double>(std::max<Index>(labels ? labels_there : all.cols(), 2)));
    std::map<Index, long double> histogram, mean;
    long double own = 0;
    for (Index i = 0; i < all.rows(); ++i) {
      Index likeliest = static_cast<Index>(all(i, 0));
      std::map<Index, long double> row;
      if (!labels) all.row(i).maxCoeff(&likeliest);
      for (Index k = 0; !labels && k < all.cols(); ++k) mean[k] += row[k] = all(i, k);
      histogram[likeliest] += 1;
      own += entropy(row) / static_cast<long double>(all.rows());
    }
    Predictions out{static_cast<double>(entropy(histogram) / scale)};
    if (!labels) out.information = static_cast<double>((entropy(mean) - own) / scale);
    return out;
  }

  // The labels that there are, in the last samples of any side.
  Index labels_there() const {
    std::map<double, int> seen;
    for (std::size_t side = 0; side <= options_.maps.size(); ++side) {
      const Block<double> all = last(side);
      for (const double label : all.reshaped()) seen[label] = 1;
    }
    return std::max(classes_, static_cast<Index>(seen.size()));
  }

  void decided(const std::string& choice) { decisions_.push_back(choice); }
  // That of the last decisions where as many as the patience agree; before that, what it was.
  std::string choice() const {
    std::string out = "none";
    const auto patience = static_cast<std::size_t>(options_.patience);
    for (std::size_t end = patience; end <= decisions_.size(); ++end) {
      bool agree = true;
      for (std::size_t i = end - patience; i < end; ++i) agree = agree && decisions_[i] == decisions_[end - 1];
      if (agree) out = decisions_[end - 1];
    }
    return out;
  }

 private:
  FollowGateOptions options_;
  Index classes_;
  std::vector<GateAnswers> history_;
  std::vector<std::string> decisions_;
};

std::string by_the_rule(const Maps& maps, const std::vector<Predictions>& seen, const MomentEvidence& moments) {
  GateEvidence evidence{seen[0], seen[1]};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (maps[i] == MapKind::scale) evidence.scale = seen[i + 1];
    if (maps[i] == MapKind::monge) evidence.monge = seen[i + 1];
  }
  const std::string choice = decide(moments, evidence).choice;
  return choice == "scale" && maps.size() == 1 ? std::string(name(maps[0])) : choice;
}

MomentEvidence draw_moments() {
  MomentEvidence moments{
      .mean_share = 0.5, .mean_kept = 1, .covariance = 2, .covariance_kept = 0.9, .covariance_kept_scaled = 0.9};
  if (*rc::gen::inRange(0, 3) == 0) moments.mean_share = 0.01;
  if (*rc::gen::inRange(0, 2) == 0) moments.unexplained = *rc::gen::element(0.01, 0.2, 0.6);
  return moments;
}

RC_GTEST_PROP(FollowGate, DecidesByTheLastSamplesAsDefined, ()) {
  const bool labels = *rc::gen::inRange(0, 2) == 0;
  const Index classes = *rc::gen::inRange<Index>(2, 5);
  FollowGateOptions options{.maps = *rc::gen::element(Maps{MapKind::scale}, Maps{MapKind::monge}, Maps{MapKind::whiten},
                                                      Maps{MapKind::monge, MapKind::scale}),
                            .samples = *rc::gen::inRange<Index>(1, 60),
                            .patience = *rc::gen::inRange<Index>(1, 4)};
  if (*rc::gen::inRange(0, 2) == 0)
    for (Index k = 0; k < classes; ++k) options.classes.push_back(static_cast<double>(k));
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  Definition definition(options, static_cast<Index>(options.classes.size()));
  FollowGate gate(options);
  const int batches = *rc::gen::inRange(1, 10), cut = *rc::gen::inRange(0, 10);
  for (int i = 0; i < batches; ++i) {
    if (i == cut) gate = FollowGate(FollowGate::Parts(gate.parts()));  // as if it was saved and loaded
    const Index rows = *rc::gen::inRange<Index>(0, 40);
    GateAnswers batch{answers(random, rows, classes, *rc::gen::inRange(0, 8), labels), {}};
    for (std::size_t side = 0; side < options.maps.size(); ++side)
      batch.after.push_back(answers(random, rows, classes, *rc::gen::inRange(0, 8), labels));
    const MomentEvidence moments = draw_moments();
    const FollowVerdict verdict = gate.observe(batch, moments);
    if (rows > 0) {
      definition.add(batch);
      RC_ASSERT(verdict.samples == definition.last(0).rows());
      RC_ASSERT(verdict.are_labels == labels);
      RC_ASSERT(verdict.predictions.size() == options.maps.size() + 1);
      for (std::size_t side = 0; side < verdict.predictions.size(); ++side) {
        const Predictions expected = definition.numbers(side, definition.labels_there());
        const double unit = 64 * std::numeric_limits<double>::epsilon();
        RC_ASSERT(std::abs(verdict.predictions[side].spread - expected.spread) <= unit);
        RC_ASSERT(verdict.predictions[side].information.has_value() == !labels);
        RC_ASSERT(labels || std::abs(*verdict.predictions[side].information - *expected.information) <= unit);
      }
      const std::string decided = by_the_rule(options.maps, verdict.predictions, moments);
      RC_ASSERT(verdict.decision.choice == decided);
      definition.decided(decided);
    }
    RC_ASSERT(verdict.choice == definition.choice());
    RC_ASSERT(gate.choice() == verdict.choice);
    RC_ASSERT(gate.is_open() == (verdict.choice != "none"));
  }
}

// The caller keeps the samples: all answers at once are decided by as if they were the last ones.
TEST(FollowGate, JudgesAnswersOfSamplesThatOthersKeep) {
  std::mt19937_64 random(1);
  FollowGate kept, asked;
  for (const double pull : {0.0, 6.0, 0.0, 6.0}) {
    const GateAnswers all{answers(random, 400, 4, 6, false), {answers(random, 400, 4, pull, false)}};
    FollowGate fresh;
    const FollowVerdict expected = fresh.observe(all), verdict = asked.judge(all);
    EXPECT_EQ(verdict.choice, pull == 0 ? "scale" : "none");
    EXPECT_EQ(verdict.decision.sentence, expected.decision.sentence);
    EXPECT_EQ(verdict.predictions[1].spread, expected.predictions[1].spread);
    EXPECT_EQ(asked.parts().answers.rows(), 0);
  }
  const GateAnswers labels{Block<double>::Zero(9, 1), {Block<double>(Eigen::VectorXd::LinSpaced(9, 0, 8))}};
  EXPECT_EQ(asked.judge(labels).predictions[1].spread, 1);
  EXPECT_NEAR(asked.judge(labels, {}, 81).predictions[1].spread, 0.5, 1e-15);
  expect_throws_naming<std::invalid_argument>({"no answers"}, [&] {
    asked.judge({Block<double>(0, 2), {Block<double>(0, 2)}});
  });
}

TEST(FollowGate, WhatIsNoAnswerIsNamedAndChangesNothing) {
  std::mt19937_64 random(2);
  FollowGate gate({.classes = {0, 1, 2}});
  gate.observe({answers(random, 20, 3, 6, false), {answers(random, 20, 3, 0, false)}});
  const FollowGate::Parts before = gate.parts();
  const auto refused = [&](const Block<double>& one, const Block<double>& other,
                           std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { gate.observe({one, {other}}); });
    EXPECT_EQ(gate.parts().answers, before.answers);
    EXPECT_EQ(gate.parts().counts, before.counts);
    EXPECT_EQ(gate.choice(), before.choice);
    EXPECT_EQ(gate.parts().times, before.times);
  };
  const Block<double> good = answers(random, 5, 3, 0, false);
  Block<double> bad = good;
  bad(3, 1) = std::numeric_limits<double>::quiet_NaN();
  refused(bad, good, {"as they are", "row 3"});
  bad(3, 1) = 7;
  refused(good, bad, {"under the map 'scale'", "row 3", "sum to 1"});
  refused(good, good.topRows(4), {"5 x 3", "4 x 3", "same samples"});
  refused(answers(random, 5, 4, 0, false), answers(random, 5, 4, 0, false), {"4 columns", "3"});
  refused(Block<double>::Zero(5, 1), Block<double>::Zero(5, 1), {"1 columns", "3", "labels"});
  expect_throws_naming<std::invalid_argument>({"2 maps", "1"}, [&] { gate.observe({good, {good, good}}); });

  FollowGate of_labels({.classes = {0, 1, 2}});
  Block<double> labels = Block<double>::Ones(4, 1);
  labels(2) = 5;
  expect_throws_naming<std::invalid_argument>({"row 2", "class 5", "0, 1, 2"}, [&] {
    of_labels.observe({labels, {labels}});
  });
  labels(2) = 0.5;
  expect_throws_naming<std::invalid_argument>({"row 2", "0.5", "whole"}, [&] {
    of_labels.observe({labels, {labels}});
  });
  expect_throws_naming<std::invalid_argument>({"4 columns", "3 classes"}, [&] {
    of_labels.observe({answers(random, 5, 4, 0, false), {answers(random, 5, 4, 0, false)}});
  });
}

TEST(FollowGate, BadOptionsAndPartsAreNamed) {
  const auto refused = [](const FollowGateOptions& options, std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { FollowGate{options}; });
  };
  refused({.maps = {}}, {"no map"});
  refused({.maps = {MapKind::mean, MapKind::monge}}, {"2 maps", "scale"});
  refused({.maps = {MapKind::scale, MapKind::scale}}, {"twice"});
  refused({.maps = {MapKind::scale_monge}}, {"scale+monge"});
  refused({.samples = 0}, {"0 samples"});
  refused({.patience = 0}, {"patience is 0"});
  refused({.classes = {1, 1}}, {"class twice"});
  refused({.classes = {1.5}}, {"1.5"});
  const auto spoiled = [](const FollowGate::Parts& parts, std::initializer_list<std::string> words) {
    expect_throws_naming<std::invalid_argument>(words, [&] { FollowGate{parts}; });
  };
  spoiled({.answers = Block<double>::Zero(3, 2), .counts = {2}}, {"3 x 2", "2 samples"});
  spoiled({.answers = Block<double>::Zero(3, 3), .counts = {3}}, {"3 x 3", "1 maps"});
  spoiled({.answers = Block<double>::Constant(3, 4, 0.7), .counts = {3}}, {"row 0"});
  spoiled({.choice = "monge"}, {"monge"});
  spoiled({.times = 2}, {"2 decisions", "patience, 1"});
}

LowRankGaussian model(Index d, Index rank, double scale, double samples, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  LowRankGaussian out{.factor = Block<double>(d, rank),
                      .mean = Vector(Eigen::VectorXd(d)),
                      .remainder = 0.3 * scale,
                      .samples = samples};
  for (double& value : out.factor.reshaped()) value = scale * normal(random);
  for (double& value : out.mean) value = normal(random);
  const Eigen::MatrixXd covariance =
      out.factor * out.factor.transpose() + out.remainder * Eigen::MatrixXd::Identity(d, d);
  out.deviations = Vector(covariance.diagonal().cwiseSqrt());
  return out;
}

// The shares of what moved that is beyond noise, from all eigenvalues.
TEST(FollowedShift, IsThatOfTheModels) {
  for (const auto& [d, rank] : {std::pair<Index, Index>{7, 2}, {5, 5}, {4, 1}}) {
    const LowRankGaussian source = model(d, rank, 1, 300, 1), stream = model(d, rank, 1.2, 80, 2);
    const FollowedShift shift = followed_shift(source, stream);
    const double move = (source.mean - stream.mean).squaredNorm();
    const double covariance = TransportMap(stream, source).displacement() - move;
    const Eigen::MatrixXd sigma =
        source.factor * source.factor.transpose() + source.remainder * Eigen::MatrixXd::Identity(d, d);
    const Eigen::VectorXd eigenvalues = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(sigma).eigenvalues();
    const double c = 1.0 / 300 + 1.0 / 80, unit = 1e-13;
    const double traces = source.deviations.squaredNorm() / 300 + stream.deviations.squaredNorm() / 80;
    EXPECT_NEAR(shift.moments.mean_share, move / (move + covariance), unit * 10);
    EXPECT_NEAR(shift.moments.mean_kept, 1 - traces / move, unit);
    EXPECT_NEAR(shift.moments.covariance, covariance / sigma.trace(), unit * 10);
    EXPECT_NEAR(shift.moments.covariance_kept, std::max(0.0, 1 - covariance_noise(eigenvalues, c).mean / covariance),
                unit * 10);
    EXPECT_FALSE(shift.moments.unexplained);
    for (Index j = 0; j < d; ++j) {
      const double change = std::log(stream.deviations(j) / source.deviations(j));
      EXPECT_NEAR(shift.deviations_kept(j), std::max(0.0, 1 - c / 2 / (change * change)), unit);
    }
    EXPECT_EQ(shift.kept(MapKind::scale).deviations, shift.deviations_kept);
    EXPECT_EQ(shift.kept(MapKind::monge).deviations.size(), 0);
    EXPECT_EQ(shift.kept(MapKind::monge).covariance, shift.moments.covariance_kept);
    EXPECT_EQ(shift.kept(MapKind::whiten).mean, 1);
    // Nothing moved: nothing is kept, of whatever counts.
    const FollowedShift same = followed_shift(source, source);
    EXPECT_EQ(same.moments.mean_kept, 0);
    EXPECT_EQ(same.deviations_kept.norm(), 0);
    // A count that is not known is that of no noise.
    LowRankGaussian sure = source, certain = stream;
    sure.samples = certain.samples = 0;
    EXPECT_EQ(followed_shift(sure, certain).moments.mean_kept, 1);
    const ClusterMeans clusters{Block<double>(source.mean.transpose()), Eigen::VectorXd::Zero(1)};
    EXPECT_EQ(*followed_shift(source, stream, &clusters).moments.unexplained,
              unexplained_move(clusters, source.mean, stream.mean, stream.deviations.squaredNorm() / 80));
    EXPECT_EQ(*followed_shift(source, source, &clusters).moments.unexplained, 0);
  }
  expect_throws_naming<std::invalid_argument>({"dimension 7", "5"},
                                              [] { followed_shift(model(7, 2, 1, 9, 1), model(5, 2, 1, 9, 1)); });
}

}  // namespace
}  // namespace itspace::test
