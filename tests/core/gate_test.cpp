// SPDX-License-Identifier: Apache-2.0
#include <itspace/gate.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace itspace {
namespace {

double entropy_of(std::initializer_list<double> shares) {
  double value = 0;
  for (const double p : shares)
    if (p > 0) value -= p * std::log(p);
  return value;
}

TEST(Gate, SpreadIsTheEntropyOfTheHistogramOfLabels) {
  const Eigen::VectorXd labels{{4, 4, 4, -1, 7, 4, 4, -1}};
  const double expected = entropy_of({5.0 / 8, 2.0 / 8, 1.0 / 8});
  EXPECT_NEAR(predictions_of_labels(labels).spread, expected / std::log(3), 1e-15);
  EXPECT_NEAR(predictions_of_labels(labels, 10).spread, expected / std::log(10), 1e-15);
  EXPECT_FALSE(predictions_of_labels(labels).information);
  EXPECT_EQ(predictions_of_labels(Eigen::VectorXd::Ones(5)).spread, 0);
}

TEST(Gate, InformationIsTheEntropyOfTheMeanLessTheMeanEntropy) {
  Block<double> p(3, 2);
  p << 0.9, 0.1, 0.6, 0.4, 0.2, 0.8;
  const Predictions found = predictions_of(p);
  const double own = (entropy_of({0.9, 0.1}) + entropy_of({0.6, 0.4}) + entropy_of({0.2, 0.8})) / 3;
  EXPECT_NEAR(found.spread, entropy_of({2.0 / 3, 1.0 / 3}) / std::log(2), 1e-15);
  EXPECT_NEAR(*found.information, (entropy_of({1.7 / 3, 1.3 / 3}) - own) / std::log(2), 1e-15);
}

TEST(Gate, WhatIsNoPredictionIsRefused) {
  Block<double> p(2, 2);
  p << 0.5, 0.5, 0.5, 0.4;
  EXPECT_THROW(predictions_of(p), std::invalid_argument);
  p(1, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(predictions_of(p), std::invalid_argument);
  p.row(1) << 1.5, -0.5;
  EXPECT_THROW(predictions_of(p), std::invalid_argument);
  EXPECT_THROW(predictions_of(Block<double>(3, 1)), std::invalid_argument);
  EXPECT_THROW(predictions_of_labels(Eigen::VectorXd{{1, 2.5}}), std::invalid_argument);
  EXPECT_THROW(predictions_of_labels(Eigen::VectorXd{}), std::invalid_argument);
}

struct GateCase {
  const char* why;
  GateEvidence evidence;
  const char* choice;
};

TEST(Gate, DecidesByTheRule) {
  using P = Predictions;
  const GateCase cases[] = {
      {"a clear rise", {P{0.5, 0.5}, P{0.61, 0.5}}, "scale"},
      {"no clear rise", {P{0.5, 0.5}, P{0.59, 0.5}}, "none"},
      {"a rise that costs information", {P{0.5, 0.5}, P{0.8, 0.39}}, "none"},
      {"labels alone", {P{0.5, {}}, P{0.8, {}}}, "scale"},
      {"other class shares explain it", {P{0.5, 0.5}, P{0.8, 0.7}, {}, 0.04}, "none"},
      {"they cannot", {P{0.9, 0.5}, P{0.91, 0.51}, {}, 0.5}, "scale"},
      {"they cannot, but it falls", {P{0.9, 0.5}, P{0.89, 0.51}, {}, 0.5}, "none"},
      {"they cannot, but it tells less", {P{0.9, 0.5}, P{0.91, 0.49}, {}, 0.5}, "none"},
      {"they cannot, but who knows", {P{0.9, {}}, P{0.91, {}}, {}, 0.5}, "none"},
      {"the second helps", {P{0.5, 0.5}, P{0.7, 0.6}, P{0.8, 0.75}}, "scale+monge"},
      {"the second spreads alone", {P{0.5, 0.5}, P{0.7, 0.6}, P{0.8, 0.65}}, "scale"},
      {"the second without the first", {P{0.5, 0.5}, P{0.5, 0.5}, P{0.9, 0.9}}, "none"},
  };
  for (const GateCase& each : cases) {
    const GateDecision decision = decide(each.evidence);
    EXPECT_EQ(decision.choice, each.choice) << each.why << ": " << decision.sentence;
    EXPECT_TRUE(decision.sentence.starts_with(decision.choice == "none" ? "left alone" : "adapted"));
  }
}

// A number beside its limit: why a map was kept or not can be read off the sentence.
TEST(Gate, SentencesStateTheirLimits) {
  using P = Predictions;
  const auto says = [](const GateEvidence& evidence, const std::vector<std::string>& parts) {
    const std::string sentence = decide(evidence).sentence;
    for (const std::string& part : parts) EXPECT_NE(sentence.find(part), std::string::npos) << part << ": " << sentence;
  };
  says({P{0.5, 0.5}, P{0.61, 0.5}}, {"spread +0.11 (limit +0.1)", "tell +0 more about a sample (limit -0.1;"});
  says({P{0.5, {}}, P{0.55, {}}}, {"spread +0.05 (limit +0.1)", "no clear gain"});
  says({P{0.5, 0.5}, P{0.8, 0.7}, {}, 0.04}, {"4 % of the move is left over (limit 5 %)"});
  says({P{0.9, 0.5}, P{0.91, 0.51}, {}, 0.5}, {"50 % of the mean's move", "(limit 30 %)", "spread +0.01 (limit +0)"});
  says({P{0.5, 0.5}, P{0.7, 0.6}, P{0.8, 0.75}},
       {"adds +0.1 (limit +0.05)", "+0.15 of mutual information (limit +0.1)"});
  says({P{0.5, 0.5, 0.8, 0.5}, P{0.7, 0.6, 0.64, 0.5}}, {"agrees -0.16 less often (limit -0.15)"});
  says({P{0.5, 0.5, 0.8, 0.5}, P{0.7, 0.6, 0.8, 0.42}}, {"-0.08 about what a second classifier says (limit +0)"});
  says({P{0.5, 0.5, 0.5, 0.4}, P{0.5, 0.5, 0.5, 0.51}},
       {"spread +0 (limit +0)", "+0.11 more about what a second classifier says (limit +0.1)"});
  const P none{0.5, 0.5, 0.8, 0.5}, scale{0.7, 0.6, 0.8, 0.6};
  says({none, scale, P{0.8, 0.7, 0.8, 0.61}}, {"+0.1 of mutual information (limit +0.05)"});
  MomentEvidence moved{.mean_kept = 0.9, .unexplained = 0.31};
  EXPECT_NE(decide(moved).sentence.find("31 % of the mean's move"), std::string::npos);
  EXPECT_NE(decide(moved).sentence.find("(limit 30 %)"), std::string::npos) << decide(moved).sentence;
}

TEST(Gate, ASecondClassifierIsComparedByTheJointHistogram) {
  const Eigen::VectorXd first{{0, 0, 1, 1, 2, 2, 2, 2}}, second{{0, 1, 1, 1, 2, 2, 0, 2}};
  const Predictions found = beside({0.5}, first, second, 4);
  EXPECT_EQ(found.spread, 0.5);
  EXPECT_EQ(*found.agreement, 6.0 / 8);
  const double joint = entropy_of({1.0 / 8, 1.0 / 8, 2.0 / 8, 3.0 / 8, 1.0 / 8});
  const double expected = entropy_of({2.0 / 8, 2.0 / 8, 4.0 / 8}) + entropy_of({2.0 / 8, 3.0 / 8, 3.0 / 8}) - joint;
  EXPECT_NEAR(*found.shared, expected / std::log(4), 1e-15);
  EXPECT_NEAR(*beside({0.5}, first, Eigen::VectorXd(2 - first.array()), 3).shared,
              entropy_of({0.25, 0.25, 0.5}) / std::log(3), 1e-15);
  EXPECT_THROW(beside({0.5}, first, second.head(3), 4), std::invalid_argument);
  Block<double> p(2, 3);
  p << 0.2, 0.5, 0.3, 0.6, 0.1, 0.3;
  EXPECT_EQ(labels_of(p), (Eigen::VectorXd{{1, 0}}));
}

TEST(Gate, ASecondClassifierDeniesOrSecondsARise) {
  using P = Predictions;
  EXPECT_EQ(decide({P{0.5, 0.5, 0.8, 0.5}, P{0.7, 0.6, 0.64, 0.5}}).choice, "none");
  EXPECT_EQ(decide({P{0.5, 0.5, 0.8, 0.5}, P{0.7, 0.6, 0.66, 0.5}}).choice, "scale");
  const GateDecision denied = decide({P{0.5, 0.5, 0.8, 0.5}, P{0.7, 0.6, 0.8, 0.42}});
  EXPECT_EQ(denied.choice, "none");
  EXPECT_NE(denied.sentence.find("-0.08 about what a second classifier says"), std::string::npos) << denied.sentence;
  EXPECT_EQ(decide({P{0.5, 0.5, 0.5, 0.4}, P{0.5, 0.5, 0.5, 0.51}}).choice, "scale");
  EXPECT_EQ(decide({P{0.5, 0.5, 0.5, 0.4}, P{0.49, 0.5, 0.5, 0.6}}).choice, "none");
  const P none{0.5, 0.5, 0.8, 0.5}, scale{0.7, 0.6, 0.8, 0.6};
  EXPECT_EQ(decide({none, scale, P{0.8, 0.7, 0.8, 0.61}}).choice, "scale+monge");
  EXPECT_EQ(decide({none, scale, P{0.8, 0.7, 0.8, 0.6}}).choice, "scale");
}

// A covariance that drifted alone, and one number of it changed.
MomentEvidence drift() {
  return {.mean_share = 0.01,
          .mean_kept = 0.9,
          .covariance = 2,
          .covariance_kept = 0.9,
          .covariance_kept_scaled = 0.9,
          .unexplained = 0.15};
}

TEST(Gate, DecidesByTheMomentsAlone) {
  EXPECT_EQ(decide(drift()).choice, "monge");
  for (const auto& [number, value] : {std::pair{&MomentEvidence::mean_share, 0.06},
                                      {&MomentEvidence::covariance, 0.2},
                                      {&MomentEvidence::covariance_kept, 0.4},
                                      {&MomentEvidence::covariance_kept_scaled, 0.6}}) {
    MomentEvidence seen = drift();
    seen.*number = value;
    EXPECT_EQ(decide(seen).choice, "none");
    seen.unexplained = 0.31;
    EXPECT_EQ(decide(seen).choice, "scale");
    EXPECT_NE(decide(seen).sentence.find("31 % of the mean's move"), std::string::npos) << decide(seen).sentence;
    seen.mean_kept = 0;
    EXPECT_EQ(decide(seen).choice, "none");
  }
}

TEST(Gate, ADriftOpensItUnlessTheClassesDeny) {
  using P = Predictions;
  const GateEvidence worse{P{0.9, 0.5}, P{0.8, 0.4}, {}, {}, P{0.89, 0.6}};
  const GateEvidence as_good{P{0.9, 0.5}, P{0.8, 0.4}, {}, {}, P{0.9, 0.4}};
  EXPECT_EQ(decide(drift(), as_good).choice, "monge");
  EXPECT_EQ(decide(drift(), worse).choice, "none");
  EXPECT_EQ(decide(drift(), {P{0.9, 0.5}, P{0.8, 0.4}}).choice, "none");
  // What the moments leave unexplained counts for the predictions too.
  MomentEvidence moved = drift();
  moved.mean_share = 0.5;
  EXPECT_EQ(decide(moved, {P{0.5, 0.5}, P{0.7, 0.5}}).choice, "scale");
  moved.unexplained = 0.04;
  EXPECT_EQ(decide(moved, {P{0.5, 0.5}, P{0.7, 0.5}}).choice, "none");
}

}  // namespace
}  // namespace itspace
