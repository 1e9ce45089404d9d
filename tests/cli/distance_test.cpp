// SPDX-License-Identifier: Apache-2.0
//
// itspace distance against closed forms: for diagonal covariances W2^2 = sum (a_i^(1/2) - b_i^(1/2))^2.
#include "program.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>

#include <cmath>

namespace itspace::cli_test {
namespace {

class DistanceCommand : public ProgramTest {
 protected:
  DistanceCommand() {
    write("a.npy", diagonal({4, 9, 1}));
    write("b.npy", diagonal({1, 1, 1}));
  }

  Json distance(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "distance");
    arguments.emplace_back("--json");
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.exit_code == 0 ? done.json() : Json{};
  }
};

TEST_F(DistanceCommand, DiagonalCovariances) {
  const Json json = distance({"a.npy", "b.npy"});
  EXPECT_NEAR(json["w2_squared"].get<double>(), 5, 1e-13);
  EXPECT_NEAR(json["w2"].get<double>(), std::sqrt(5), 1e-14);
  EXPECT_NEAR(json["covariance_part"].get<double>(), 5, 1e-13);
  EXPECT_EQ(json["mean_part"], 0.0);
  EXPECT_EQ(json.size(), 4u);
  EXPECT_EQ(distance({"a.npy", "a.npy"})["w2"], 0.0);
}

TEST_F(DistanceCommand, PeopleGetDigits) {
  auto done = run({"distance", "a.npy", "b.npy"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.out, {"w2 ", "2.2360679"}));
  EXPECT_TRUE(mentions(done.err, {"A a.npy: covariance of dimension 3", "B b.npy: covariance"}));
  done = run({"distance", "a.npy", "b.npy", "--squared", "--quiet"});
  EXPECT_TRUE(mentions(done.out, {"w2_squared "}));
  EXPECT_EQ(done.err, "");
}

TEST_F(DistanceCommand, MeansOfFidStatistics) {
  write_statistics("a.npz", Matrix{{1}, {2}, {3}}, diagonal({4, 9, 1}));
  write_statistics("b.npz", Matrix{{1}, {0}, {0}}, diagonal({1, 1, 1}));
  Json json = distance({"a.npz", "b.npz", "--means"});
  EXPECT_NEAR(json["w2_squared"].get<double>(), 18, 1e-12);
  EXPECT_NEAR(json["mean_part"].get<double>(), 13, 1e-13);
  EXPECT_EQ(distance({"a.npz", "b.npz"})["mean_part"], 0.0);

  const auto refused = run({"distance", "a.npz", "b.npy", "--means"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--means", "b.npy", "mu", "leave out --means"}));

  write_statistics("short.npz", Matrix{{1}, {2}}, diagonal({4, 9, 1}));
  const auto mismatched = run({"distance", "short.npz", "b.npz", "--means"});
  EXPECT_EQ(mismatched.exit_code, 2);
  EXPECT_TRUE(mentions(mismatched.err, {"mu", "short.npz", "2 x 1", "dimension 3"}));
}

TEST_F(DistanceCommand, OneDimensionalFeatures) {
  write("x.npy", Matrix{{0}, {2}, {4}});            // mean 2, variance 4
  write("y.npy", Matrix{{4}, {5}, {6}, {5}, {5}});  // mean 5, variance 1/2
  const Json json = distance({"x.npy", "y.npy", "--means"});
  EXPECT_NEAR(json["mean_part"].get<double>(), 9, 1e-13);
  EXPECT_NEAR(json["covariance_part"].get<double>(), std::pow(2 - std::sqrt(0.5), 2), 1e-13);
  EXPECT_EQ(distance({"x.npy", "y.npy"})["mean_part"], 0.0);
}

TEST_F(DistanceCommand, EveryPairOfKindsAgrees) {
  const Matrix features = gaussian(30, 4, 5), other = gaussian(4, 3, 6);
  write("features.npy", features);
  write("covariance.npy", covariance<double>(features));
  write("factor.npy", centred_factor<double>(features));
  write("other.npy", other);
  write("other_covariance.npy", Matrix(other * other.transpose()));
  const double reference = distance({"features.npy", "other.npy", "--as", "features,factor"})["w2"];
  EXPECT_GT(reference, 0.1);
  for (const std::string kind : {"features", "covariance", "factor"}) {
    EXPECT_NEAR(distance({kind + ".npy", "other.npy", "--as", kind + ",factor"})["w2"], reference, 1e-10) << kind;
    EXPECT_NEAR(distance({kind + ".npy", "other_covariance.npy", "--as", kind + ",covariance"})["w2"], reference, 1e-7)
        << kind;  // the rank-3 covariance carries its rounding under the square root
  }
}

TEST_F(DistanceCommand, Float32Files) {
  write_float("a32.npy", diagonal({4, 9, 1}));
  write_float("b32.npy", diagonal({1, 1, 1}));
  EXPECT_NEAR(distance({"a32.npy", "b32.npy"})["w2_squared"].get<double>(), 5, 1e-12);
  EXPECT_NEAR(distance({"a32.npy", "b.npy"})["w2_squared"].get<double>(), 5, 1e-12);
}

TEST_F(DistanceCommand, WhatOverflowsIsNamed) {
  write("huge.npy", Matrix(1e200 * gaussian(9, 5, 1)));
  write("other.npy", Matrix(1e200 * gaussian(8, 5, 2)));
  write("cov.npy", Matrix(1e308 * Matrix::Identity(5, 5)));
  write("small.npy", Matrix(Matrix::Identity(5, 5)));
  for (const std::vector<std::string>& pair :
       {std::vector<std::string>{"huge.npy", "other.npy"}, {"huge.npy", "small.npy"}, {"cov.npy", "small.npy"}})
    for (const std::string json : {"--json", "--quiet"}) {
      const auto done = run({"distance", pair[0], pair[1], json});
      EXPECT_EQ(done.exit_code, 1) << pair[0] << done.err;
      EXPECT_TRUE(mentions(done.err, {"itspace: error: ", "beyond the largest", "scale the data"}));
    }
}

TEST_F(DistanceCommand, Misuse) {
  auto refused = run({"distance", "a.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"B", "required"}));
  refused = run({"distance", "a.npy", "b.npy", "--as", "factor,factor,factor"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--as", "more than the two"}));
  write("indefinite.npy", diagonal({1, 1, -1}));
  for (const auto& [first, second] : {std::pair{"a.npy", "indefinite.npy"}, {"indefinite.npy", "a.npy"}}) {
    refused = run({"distance", first, second});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(mentions(refused.err, {"indefinite.npy", "-1", "--trust"}));
    EXPECT_EQ(run({"distance", first, second, "--trust"}).exit_code, 0);  // the direction counts as 0
  }
  refused = run({"distance", "a.npy", "b.npy", "--accuracy", "-1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--accuracy", "-1"}));
}

// A direction that the other side has next to none of is looked at all the same.
TEST_F(DistanceCommand, IndefiniteWhereTheOtherHasNoVariance) {
  write("thin.npy", diagonal({1, 1, 1e-16}));
  write("negative.npy", diagonal({1, 1, -1e-6}));
  for (const auto& [first, second] : {std::pair{"thin.npy", "negative.npy"}, {"negative.npy", "thin.npy"}}) {
    const auto refused = run({"distance", first, second});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(mentions(refused.err, {"negative.npy", "-1e-06"}));
  }
}

// The program's number is the library's, bit for bit, at each accuracy.
TEST_F(DistanceCommand, IsTheLibrarysNumber) {
  const Matrix a = covariance<double>(gaussian(60, 20, 3)), b = covariance<double>(gaussian(50, 20, 4));
  write("x.npy", a);
  write("y.npy", b);
  EXPECT_EQ(distance({"x.npy", "y.npy"})["w2_squared"], dense_distance_squared<double>(a, b));
  EXPECT_EQ(distance({"x.npy", "y.npy", "--accuracy", "0"})["w2_squared"],
            dense_distance_squared<double>(a, b, Accuracy{}));
}

}  // namespace
}  // namespace itspace::cli_test
