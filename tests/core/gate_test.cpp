// SPDX-License-Identifier: Apache-2.0
#include <itspace/gate.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

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

struct Case {
  const char* why;
  GateEvidence evidence;
  const char* choice;
};

TEST(Gate, DecidesByTheRule) {
  using P = Predictions;
  const Case cases[] = {
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
  for (const Case& each : cases) {
    const GateDecision decision = decide(each.evidence);
    EXPECT_EQ(decision.choice, each.choice) << each.why << ": " << decision.sentence;
    EXPECT_TRUE(decision.sentence.starts_with(decision.choice == "none" ? "left alone" : "adapted"));
  }
}

}  // namespace
}  // namespace itspace
