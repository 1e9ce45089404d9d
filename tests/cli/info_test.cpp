// SPDX-License-Identifier: Apache-2.0
//
// itspace info on inputs whose spectrum is known.
#include "program.hpp"

namespace itspace::cli_test {
namespace {

class Info : public ProgramTest {};

TEST_F(Info, Covariance) {
  write("sigma.npy", diagonal({4, 3, 2, 1}));
  const auto done = run({"info", "sigma.npy", "--rank", "2", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json json = done.json();
  EXPECT_EQ(json["shape"], (Json{4, 4}));
  EXPECT_EQ(json["type"], "float64");
  EXPECT_EQ(json["taken_for"], "covariance");
  EXPECT_NEAR(json["trace"].get<double>(), 10, 1e-13);
  const Json spectrum = json["spectrum"];
  ASSERT_EQ(spectrum["eigenvalues"].size(), 2u);
  EXPECT_NEAR(spectrum["eigenvalues"][0].get<double>(), 4, 1e-13);
  EXPECT_NEAR(spectrum["share_of_leading"].get<double>(), 0.7, 1e-13);
  EXPECT_NEAR(spectrum["participation_ratio"].get<double>(), 100.0 / 30, 1e-12);
  EXPECT_NEAR(spectrum["intrinsic_dimension"].get<double>(), 2.5, 1e-12);
}

TEST_F(Info, PeopleGetSentences) {
  write("features.npy", gaussian(20, 6, 1));
  const auto done = run({"info", "features.npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.out, {"20 x 6", "float64", "features, 20 samples of dimension 6", "not square", "trace",
                                  "eigenvalues", "share of top 6", "effective rank"}));
}

TEST_F(Info, ListsTheKeysOfAnNpz) {
  write_statistics("stats.npz", gaussian(3, 1, 1), diagonal({3, 2, 1}));
  const auto done = run({"info", "stats.npz"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.out, {"mu, sigma (this is sigma)", "covariance"}));
  const auto mean = run({"info", "stats.npz", "--key", "mu", "--json"});
  ASSERT_EQ(mean.exit_code, 0) << mean.err;
  EXPECT_EQ(mean.json()["key"], "mu");
  EXPECT_EQ(mean.json()["shape"], Json::array({3}));
}

TEST_F(Info, FactorAndThinFeatures) {
  write("factor.npy", gaussian(8, 2, 3));
  const auto done = run({"info", "factor.npy", "--as", "factor", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["dim"], 8);
  EXPECT_EQ(done.json()["spectrum"]["eigenvalues"].size(), 2u);
  EXPECT_NEAR(done.json()["spectrum"]["share_of_leading"].get<double>(), 1, 1e-13);
}

TEST_F(Info, LargeInputsKeepTheirSpectrumForThoseWhoAsk) {
  write_float("large.npy", Matrix::Ones(4100, 4097));
  const auto done = run({"info", "large.npy", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.json()["spectrum"].is_null());
  EXPECT_TRUE(mentions(done.err, {"4097", "--spectrum"}));
}

TEST_F(Info, WhatOverflowsIsNamed) {
  write("huge.npy", Matrix(1e200 * gaussian(9, 5, 1)));
  write("cov.npy", Matrix(1e308 * Matrix::Identity(5, 5)));
  for (const std::string name : {"huge.npy", "cov.npy"})
    for (const std::string trust : {"--json", "--trust"}) {
      const auto done = run({"info", name, trust});
      EXPECT_EQ(done.exit_code, 1) << name << done.err;
      EXPECT_TRUE(mentions(done.err, {"itspace: error: trace is inf", "beyond the largest", "scale the data"}));
    }
  // Squares beyond the largest number are no trouble where their ratio is none.
  write("large.npy", Matrix(1e200 * Matrix::Identity(5, 5)));
  const auto done = run({"info", "large.npy", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NEAR(done.json()["spectrum"]["participation_ratio"].get<double>(), 5, 1e-12);
}

// The check that every other command makes, from the spectrum that is computed anyway.
TEST_F(Info, AMatrixThatIsNoCovarianceIsRefused) {
  write("indefinite.npy", diagonal({3, 1, -0.125}));
  const auto refused = run({"info", "indefinite.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(
      mentions(refused.err, {"indefinite.npy", "-0.125", "indefinite", "a ridge of at least 0.125", "--trust"}));
  EXPECT_EQ(run({"info", "indefinite.npy", "--trust"}).exit_code, 0);
  Matrix asymmetric = power_law(5, 1);
  asymmetric(1, 3) += 0.25;
  write("asymmetric.npy", asymmetric);
  EXPECT_TRUE(mentions(run({"info", "asymmetric.npy", "--as", "covariance"}).err, {"asymmetric.npy", "not symmetric"}));
  write("zeros.npy", Matrix::Zero(2500, 2500));  // above the limit, and no eigenproblem anywhere
  const auto done = run({"info", "zeros.npy", "--json"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.err, {"2500", "above 2048", "--spectrum"}));
}

TEST_F(Info, ZeroCovarianceIsNoAccident) {
  write("zero.npy", Matrix::Zero(3, 3));
  const auto done = run({"info", "zero.npy", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["spectrum"]["participation_ratio"], 0.0);
}

}  // namespace
}  // namespace itspace::cli_test
