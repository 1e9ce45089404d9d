// SPDX-License-Identifier: Apache-2.0
//
// itspace shift against the library.
#include "program.hpp"

#include <itspace/shift_test.hpp>

#include <limits>

namespace itspace::cli_test {
namespace {

class ShiftCommand : public ProgramTest {
 protected:
  ShiftCommand() : source(gaussian(80, 6, 1)), target(gaussian(60, 6, 2)) {
    target.col(4) *= 5;
    write("source.npy", source);
    write("target.npy", target);
  }
  Matrix source, target;
};

TEST_F(ShiftCommand, IsTheTestOfTheLibrary) {
  const auto done = run({"shift", "source.npy", "target.npy", "--json", "--permutations", "49", "--seed", "3"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const ShiftTest found = shift_test<double>(source, target, {.permutations = 49, .seed = 3});
  const Json json = done.json();
  EXPECT_EQ(json["samples_source"], 80);
  EXPECT_EQ(json["samples_target"], 60);
  EXPECT_EQ(json["rank"], 6);
  for (const auto& [key, part] : {std::pair{"mean", found.mean}, std::pair{"covariance", found.covariance}}) {
    EXPECT_NEAR(json[key]["observed"].get<double>(), part.observed, 1e-9 * part.observed);
    EXPECT_NEAR(json[key]["z"].get<double>(), part.z, 1e-6);
    EXPECT_NEAR(json[key]["p_normal"].get<double>(), part.p_normal, 1e-6);
    EXPECT_EQ(json[key]["p_permutation"].get<double>(), part.p_permutation);
  }
  ASSERT_EQ(json["directions"].size(), found.directions.size());
  EXPECT_NEAR(std::abs(json["directions"][0]["direction"][4].get<double>()), 1, 0.1);
}

TEST_F(ShiftCommand, SaysItToPeople) {
  auto done = run({"shift", "source.npy", "target.npy"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.out, {"p permutation", "means", "covariances", "6 leading directions", "199 permutations",
                                  "moved beyond noise", "largest coordinate"}));
  write("other.npy", gaussian(70, 6, 9));
  done = run({"shift", "source.npy", "other.npy", "--quiet"});
  EXPECT_EQ(done.err, "");
  EXPECT_TRUE(mentions(done.out, {"No direction moved beyond noise"}));
  // Square and symmetric, and still taken for features: a covariance cannot be permuted.
  write("square.npy", Matrix(Matrix::Identity(6, 6)));
  EXPECT_TRUE(mentions(run({"shift", "source.npy", "square.npy"}).err, {"features, 6 samples"}));
}

TEST_F(ShiftCommand, Misuse) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::vector<std::string>& texts) {
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 2) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_TRUE(mentions(done.err, texts));
  };
  refused({"shift", "source.npy", "target.npy", "--rank", "0"}, {"--rank is 0"});
  refused({"shift", "source.npy", "target.npy", "--permutations", "-1"}, {"--permutations is -1"});
  refused({"shift", "source.npy", "target.npy", "--level", "1"}, {"--level is 1"});
  write("narrow.npy", gaussian(20, 5, 3));
  refused({"shift", "source.npy", "narrow.npy"}, {"dimension 5", "dimension 6"});
  write("few.npy", gaussian(2, 6, 3));
  refused({"shift", "source.npy", "few.npy"}, {"2 row", "at least 3"});
  target(7, 3) = std::numeric_limits<double>::quiet_NaN();
  write("target.npy", target);
  refused({"shift", "source.npy", "target.npy"}, {"target.npy: row 7, column 3 is nan"});
  EXPECT_EQ(run({"shift", "source.npy", "none.npy"}).exit_code, 3);
}

}  // namespace
}  // namespace itspace::cli_test
