// SPDX-License-Identifier: Apache-2.0
//
// itspace barycenter against the library on the same files.
#include "program.hpp"

#include <itspace/barycenter.hpp>
#include <itspace/targets.hpp>

#include <cmath>

namespace itspace::cli_test {
namespace {

class BarycenterCommand : public ProgramTest {
 protected:
  static constexpr Index family_dim = 6;

  BarycenterCommand()
      : first_(power_law(family_dim, 1)), second_(power_law(family_dim, 2)), features_(gaussian(20, family_dim, 3)) {
    write("a.npy", first_);
    write("b.npy", second_);
    write("x.npy", features_);
  }

  Barycenter<double> expected(const Eigen::VectorXd& weights, const BarycenterOptions& options = {}) const {
    const DenseTarget<double> a(first_), b(second_);
    const FeaturesTarget<double> x(features_);
    return barycenter<double>(std::vector<TargetRef<double>>{a, x, b}, weights, 2, options);
  }

  Matrix first_, second_, features_;
};

TEST_F(BarycenterCommand, IsTheLibrarys) {
  const Outcome done = run({"barycenter", "a.npy", "x.npy", "b.npy", "--weights", "2,1,1", "--rank", "2", "--out",
                            "Y.npy", "--trace", "t.json", "--json", "--threads", "1"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto library = expected(Eigen::Vector3d(2, 1, 1));
  EXPECT_EQ(array_of("Y.npy"), library.factor);
  EXPECT_TRUE(mentions(done.err, {"the weights sum to 4", "x.npy: features", "a.npy: covariance"}));
  const Json json = done.json(), trace = json_of("t.json");
  EXPECT_EQ(json["command"], "barycenter");
  EXPECT_EQ(json["certified"], true);
  EXPECT_EQ(json["inputs"][0]["weight"], 0.5);
  EXPECT_EQ(json["inputs"][1]["taken_for"], "features");
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(json["inputs"][std::size_t(i)]["w2_squared"], library.objectives(i));
  EXPECT_EQ(trace["solver"], "barycenter");
  EXPECT_EQ(trace["steps"].size(), library.trace.steps.size());
  EXPECT_EQ(trace["steps"].back()["objective"], library.trace.steps.back().objective);
  EXPECT_FALSE(trace["factor_checksum"].get<std::string>().empty());
}

TEST_F(BarycenterCommand, StartsSubsetsAndWords) {
  const Outcome done =
      run({"barycenter", "a.npy", "x.npy",    "b.npy", "--rank", "2", "--steps", "7",     "--tolerance", "0",
           "--starts",   "3",     "--subset", "1",     "--seed", "4", "--out",   "Y.npy", "--threads",   "1"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  BarycenterOptions options;
  options.steps = 7;
  options.tolerance = 0;
  options.starts = 3;
  options.subset = 1;
  options.seed = 4;
  EXPECT_EQ(array_of("Y.npy"), expected({}, options).factor);
  EXPECT_TRUE(mentions(done.out, {"W2^2 to the inputs, weighted mean", "Certified", "The best of 3 starts", "Y.npy"}));
}

TEST_F(BarycenterCommand, GoesOnFromAStart) {
  ASSERT_EQ(run({"barycenter", "a.npy", "b.npy", "--rank", "2", "--out", "Y.npy", "--quiet"}).exit_code, 0);
  const Outcome again =
      run({"barycenter", "a.npy", "b.npy", "--rank", "2", "--start", "Y.npy", "--out", "Z.npy", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_LE(again.json()["trace"]["steps"].size(), 3u);  // it was there
}

TEST_F(BarycenterCommand, RefusesByName) {
  write("five.npy", power_law(5, 1));
  const auto expect_refused = [&](std::vector<std::string> line, const std::vector<std::string>& parts) {
    line.insert(line.begin(), "barycenter");
    line.insert(line.end(), {"--out", "Y.npy"});
    const Outcome done = run(line);
    EXPECT_EQ(done.exit_code, 2) << done.err;
    EXPECT_TRUE(mentions(done.err, parts));
    EXPECT_FALSE(exists("Y.npy"));
  };
  expect_refused({"--rank", "2"}, {"FILES"});
  expect_refused({"a.npy", "five.npy", "--rank", "2"}, {"five.npy", "5", "6"});
  expect_refused({"a.npy", "b.npy", "--rank", "7"}, {"--rank is 7", "1 to 6"});
  expect_refused({"a.npy", "b.npy", "--rank", "0"}, {"--rank is 0"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--weights", "1"}, {"1 numbers", "2 inputs"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--weights", "1,-1"}, {"b.npy", "-1"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--weights", "0,0"}, {"weights are 0"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--weights", "1,nan"}, {"--weights", "nan"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--weights", "1,"}, {"--weights"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--alpha", "2"}, {"--alpha is 2"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--alpha", "line-search"}, {"line-search"});
  expect_refused({"a.npy", "b.npy", "--rank", "2", "--starts", "0"}, {"--starts is 0"});
  expect_refused({"a.npy", "", "--rank", "2"}, {"empty"});
  EXPECT_EQ(run({"barycenter", "a.npy", "b.npy", "--rank", "2", "--out", "a.npy"}).exit_code, 2);
  EXPECT_EQ(run({"barycenter", "a.npy", "none.npy", "--rank", "2", "--out", "Y.npy"}).exit_code, 3);
  EXPECT_EQ(array_of("a.npy"), first_);
}

}  // namespace
}  // namespace itspace::cli_test
