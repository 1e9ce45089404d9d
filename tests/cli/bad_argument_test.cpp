// SPDX-License-Identifier: Apache-2.0
//
// Misuse: every refusal names the value, the limit and the remedy, ends with exit code 2, and writes nothing.
#include "program.hpp"

#include <cmath>
#include <limits>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;

class BadArgument : public ProgramTest {
 protected:
  BadArgument() {
    write("target.npy", power_law(5, 1));
    write("features.npy", gaussian(9, 5, 2));
  }

  // align on target.npy with rank 2; `more` comes last, and replaces what stands before it.
  void expect_refused(Texts more, const Texts& texts, Texts base = {"--target", "target.npy", "--rank", "2"}) {
    Texts arguments{"align", "--out", "Y.npy", "--trace", "T.json", "--iterates", "steps"};
    arguments.insert(arguments.end(), base.begin(), base.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto before = files();
    const auto refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(mentions(refused.err, {"itspace: error: "}));
    EXPECT_TRUE(mentions(refused.err, texts));
    EXPECT_EQ(files(), before);
  }
  void expect_target_refused(const std::string& target, const Texts& texts, Texts more = {}) {
    expect_refused(std::move(more), texts, {"--target", target, "--rank", "2"});
  }
};

TEST_F(BadArgument, Rank) {
  const Texts target{"--target", "target.npy"};
  expect_refused({"--rank", "0"}, {"--rank", "0", "limit 1"}, target);
  expect_refused({"--rank", "-3"}, {"--rank", "-3", "limit 1"}, target);
  expect_refused({"--rank", "6"}, {"--rank is 6", "1 to 5", "target.npy", "choose"}, target);
  expect_refused({"--rank", "3x"}, {"--rank", "'3x'", "whole number"}, target);
  expect_refused({"--rank", "2.0"}, {"--rank", "'2.0'", "whole number"}, target);
  expect_refused({"--rank", ""}, {"--rank", "whole number"}, target);
  expect_refused({"--rank", "99999999999999999999"}, {"--rank", "99999999999999999999", "range"}, target);
  expect_refused({}, {"--rank", "required", "--help"}, target);
}

TEST_F(BadArgument, Steps) {
  expect_refused({"--steps", "-1"}, {"--steps is -1", "limit 0", "0 or more"});
  expect_refused({"--steps", "1e9999"}, {"--steps", "1e9999", "whole number"});
}

TEST_F(BadArgument, StepSize) {
  for (const std::string alpha : {"0", "2", "-0.5", "2.5"})
    expect_refused({"--alpha", alpha}, {"--alpha is " + alpha, "(0, 2)", "line-search"});
  expect_refused({"--alpha", "nan"}, {"--alpha", "nan", "finite number"});
  expect_refused({"--alpha", "1e9999"}, {"--alpha", "1e9999", "range"});
  expect_refused({"--alpha", "1,5"}, {"--alpha", "'1,5'", "finite number"});
  expect_refused({"--alpha", "line"}, {"--alpha", "'line'"});
  expect_refused({"--lambda", "0"}, {"--lambda is 0", "limit 0", "lambda > 0"});
  expect_refused({"--lambda", "inf"}, {"--lambda", "inf", "finite"});
  expect_refused({"--alpha", "1", "--lambda", "2"}, {"--alpha 1", "--lambda 2", "give one of them"});
}

TEST_F(BadArgument, OtherOptions) {
  expect_refused({"--tolerance", "-1"}, {"--tolerance is -1", "limit 0"});
  expect_refused({"--ridge", "-1"}, {"--ridge is -1", "limit 0"});
  expect_refused({"--gram-regularization", "-1"}, {"--gram-regularization is -1", "limit 0"});
  expect_refused({"--gram-regularization", "0.1", "--route", "qr"}, {"0.1", "gram"});
  expect_refused({"--threads", "0"}, {"--threads is 0", "1 to"});
  expect_refused({"--seed", "-1"}, {"--seed", "-1"});
  expect_refused({"--route", "svd"}, {"--route", "'svd'", "qr, gram, factor or root"});
  expect_refused({"--route", "factor"}, {"factor", "qr"});
  expect_refused({"--solver", "lobpcg"}, {"--solver", "'lobpcg'", "paper or ritz"});
  expect_refused({"--solver", "ritz", "--alpha", "1"}, {"ritz", "alpha", "paper"});
  expect_refused({"--solver", "ritz", "--guard", "-1"}, {"--guard is -1", "limit 0"});
  expect_refused({"--guard", "4"}, {"--guard is 4", "--solver ritz"});
  expect_refused({"--precision", "float16"}, {"--precision", "'float16'", "float32, mixed or float64"});
  expect_refused({"--target-as", "matrix"}, {"--target-as", "'matrix'", "auto, covariance, features or factor"});
  expect_refused({"--start", ""}, {"--start is empty"});
  expect_refused({"--start-as", "factor"}, {"--start"});
  expect_refused({"--colour"}, {"--colour", "align --help"});
}

TEST_F(BadArgument, TwoOutputsInOneFile) {
  const auto refused = run({"align", "--target", "target.npy", "--rank", "2", "--out", "Y.npy", "--trace", "./Y.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--out Y.npy and --trace ./Y.npy are the same file", "different"}));
}

TEST_F(BadArgument, NoCommand) {
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"allign"}).exit_code, 2);
}

TEST_F(BadArgument, NotACovariance) {
  expect_target_refused("features.npy", {"features.npy", "9 x 5", "square", "--target-as features"},
                        {"--target-as", "covariance"});

  Matrix asymmetric = power_law(5, 1);
  asymmetric(1, 3) += 0.25;
  write("asymmetric.npy", asymmetric);
  expect_target_refused("asymmetric.npy", {"asymmetric.npy", "symmetric"}, {"--target-as", "covariance"});

  write("indefinite.npy", diagonal({3, 1, -0.125, 2, 1}));
  expect_target_refused("indefinite.npy", {"indefinite.npy", "-0.125", "--ridge"});
  const auto shifted =
      run({"align", "--target", "indefinite.npy", "--rank", "1", "--out", "Y.npy", "--ridge", "0.125"});
  EXPECT_EQ(shifted.exit_code, 0) << shifted.err;
  const auto trusted = run({"align", "--target", "indefinite.npy", "--rank", "1", "--out", "Y.npy", "--trust"});
  EXPECT_LE(trusted.exit_code, 1) << trusted.err;
}

TEST_F(BadArgument, NotFinite) {
  Matrix sigma = power_law(5, 1);
  sigma(2, 4) = sigma(4, 2) = std::nan("");
  write("nan.npy", sigma);
  expect_target_refused("nan.npy", {"nan.npy: row 2, column 4 is nan; all values must be finite"});
  Matrix features = gaussian(9, 5, 2);
  features(7, 3) = -std::numeric_limits<double>::infinity();
  write("inf.npy", features);
  expect_target_refused("inf.npy", {"inf.npy: row 7, column 3 is -inf"});
  expect_refused({"--start", "inf.npy"}, {"inf.npy: row 7, column 3 is -inf"});
}

TEST_F(BadArgument, MismatchedDimensions) {
  write("six.npy", gaussian(9, 6, 2));
  expect_refused({"--start", "six.npy"}, {"target.npy has dimension 5", "six.npy has dimension 6", "same coordinates"});
  const auto refused = run({"distance", "target.npy", "six.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"target.npy has dimension 5", "six.npy has dimension 6", "--as"}));
  const auto verified = run({"verify", "six.npy", "--target", "target.npy"});
  EXPECT_EQ(verified.exit_code, 2);
  EXPECT_TRUE(mentions(verified.err, {"six.npy has 9 rows", "target.npy has dimension 5"}));
}

TEST_F(BadArgument, TooFewSamples) {
  write("one.npy", gaussian(1, 5, 2));
  expect_target_refused("one.npy", {"one.npy holds 1 sample", "at least 2"});
  write("none.npy", Matrix(0, 5));
  expect_target_refused("none.npy", {"none.npy", "0 x 5", "at least one row"});
}

TEST_F(BadArgument, Weights) {
  const auto refused = [&](const Matrix& weights, const Texts& texts) {
    write("weights.npy", weights);
    expect_target_refused("features.npy", texts, {"--weights", "weights.npy"});
  };
  Matrix weights = Matrix::Ones(9, 1);
  weights(4, 0) = -0.5;
  refused(weights, {"weight", "-0.5"});
  refused(Matrix::Zero(9, 1), {"weight"});
  weights(4, 0) = std::nan("");
  refused(weights, {"weights.npy", "[4, 0]"});
  refused(Matrix::Ones(8, 1), {"weights.npy holds 8 weights", "features.npy has 9 samples", "one weight for each row"});
  write("weights.npy", Matrix::Ones(5, 1));
  expect_refused({"--weights", "weights.npy"}, {"--weights", "target.npy", "covariance", "leave out --weights"});
}

}  // namespace
}  // namespace itspace::cli_test
