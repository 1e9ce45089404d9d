// SPDX-License-Identifier: Apache-2.0
//
// itspace align-batch against itspace align on each problem of the stack.
#include "program.hpp"

#include <itspace/stack_file.hpp>

#include <algorithm>
#include <limits>

namespace itspace::cli_test {
namespace {

class AlignBatchCommand : public ProgramTest {
 protected:
  static constexpr Index count = 5, dim = 6, rank = 2, samples = 9;

  AlignBatchCommand()
      : sigma_(count * dim, dim), start_(gaussian(count * dim, rank, 1)), features_(gaussian(count * samples, dim, 2)) {
    for (Index i = 0; i < count; ++i) sigma_.middleRows(i * dim, dim) = power_law(dim, static_cast<std::uint64_t>(i));
    write_stack<double>("sigma.npy", sigma_, dim);
    write_stack<double>("start.npy", start_, dim);
    write_stack<double>("features.npy", features_, samples);
  }

  template <Storage Scalar>
  void write_stack(const std::string& name, const Matrix& values, Index rows) const {
    io::Outputs outputs;
    io::save_stack<Scalar>(outputs, path(name), values.cast<Scalar>(), rows);
    outputs.commit_files();
  }

  // The factors of `name`, which must be those that align writes for each problem, with its objectives in the record.
  void expect_as_alone(const std::string& name, const std::string& record, const Matrix& targets, Index rows,
                       const std::vector<std::string>& more) const {
    const io::Array stack = io::open_stack(path(name));
    EXPECT_EQ(stack.info().shape, (std::vector<Index>{count, dim, rank}));
    const HeldBlock<double> factors = stack.as<double>();
    const Json problems = json_of(record)["problems"];
    ASSERT_EQ(problems.size(), std::size_t(count));
    for (Index i = 0; i < count; ++i) {
      write("T.npy", targets.middleRows(i * rows, rows));
      std::vector<std::string> line{"align", "--target", "T.npy",  "--rank",    "2", "--out",
                                    "Y.npy", "--trace",  "t.json", "--threads", "1", "--quiet"};
      line.insert(line.end(), more.begin(), more.end());
      if (std::find(more.begin(), more.end(), "--start") != more.end())
        write("Y0.npy", start_.middleRows(i * dim, dim));
      ASSERT_EQ(run(line).exit_code, 0);
      EXPECT_EQ(array_of("Y.npy"), factors.view().middleRows(i * dim, dim)) << i;
      const Json alone = json_of("t.json"), problem = problems[std::size_t(i)];
      EXPECT_EQ(problem["status"], alone["status"]);
      EXPECT_EQ(problem["best"], alone["best"]);
      for (std::size_t k = 0; k < alone["steps"].size(); ++k)
        EXPECT_EQ(problem["objectives"][k], alone["steps"][k]["objective"]) << i << ", " << k;
    }
  }

  Matrix sigma_, start_, features_;
};

TEST_F(AlignBatchCommand, IsALoopOfAlign) {
  auto done = run({"align-batch", "--targets", "sigma.npy", "--starts", "start.npy", "--steps", "3", "--out", "F.npy",
                   "--trace", "F.json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.out, {"5 problems: 5 step_limit; 5 certified", "F.npy", "F.json"}));
  EXPECT_TRUE(mentions(done.err, {"sigma.npy: 5 covariances of dimension 6"}));
  expect_as_alone("F.npy", "F.json", sigma_, dim, {"--start", "Y0.npy", "--start-as", "factor", "--steps", "3"});

  done = run({"align-batch", "--targets", "features.npy", "--as", "features", "--rank", "2", "--seed", "4", "--solver",
              "ritz", "--out", "F.npy", "--trace", "F.json", "--quiet"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out + done.err, "");
  expect_as_alone("F.npy", "F.json", features_, samples,
                  {"--target-as", "features", "--seed", "4", "--solver", "ritz"});
}

TEST_F(AlignBatchCommand, ABadProblemFailsAlone) {
  sigma_(2 * dim + 1, 3) = std::numeric_limits<double>::quiet_NaN();
  write_stack<double>("sigma.npy", sigma_, dim);
  const auto done = run({"align-batch", "--targets", "sigma.npy", "--starts", "start.npy", "--out", "F.npy", "--json"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_TRUE(mentions(done.err, {"problem 2 ended as not_finite", "[1, 3] is nan"}));
  const Json problems = done.json()["problems"];
  EXPECT_EQ(problems[2]["status"], "not_finite");
  EXPECT_EQ(problems[2]["certified"], false);
  EXPECT_TRUE(problems[2]["objectives"][0].is_null());
  EXPECT_EQ(problems[3]["status"], "step_limit");
  const HeldBlock<double> factors = io::open_stack(path("F.npy")).as<double>();
  EXPECT_EQ(factors.view().middleRows(2 * dim, dim), start_.middleRows(2 * dim, dim));
}

TEST_F(AlignBatchCommand, Precisions) {
  write_stack<float>("single.npy", sigma_, dim);
  const auto precision = [&](const std::string& asked) {
    const auto done = run(
        {"align-batch", "--targets", "single.npy", "--rank", "2", "--out", "F.npy", "--json", "--precision", asked});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.json()["precision"].get<std::string>() + " " + io::open_stack(path("F.npy")).info().type;
  };
  EXPECT_EQ(precision("float32"), "float32 float32");
  EXPECT_EQ(precision("mixed"), "mixed float64");
  EXPECT_EQ(precision("float64"), "float64 float64");
}

TEST_F(AlignBatchCommand, MisuseIsNamed) {
  write("flat.npy", diagonal({1, 2, 3}));
  const auto refuses = [&](std::vector<std::string> arguments, int code, const std::vector<std::string>& parts) {
    arguments.insert(arguments.begin(), "align-batch");
    arguments.insert(arguments.end(), {"--out", "F.npy"});
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, code);
    EXPECT_TRUE(mentions(done.err, parts));
    EXPECT_FALSE(exists("F.npy"));
  };
  refuses({"--targets", "sigma.npy"}, 2, {"--rank", "--starts"});
  refuses({"--targets", "flat.npy", "--rank", "2"}, 3, {"flat.npy", "2 dimension", "(3, 3)", "numpy.stack"});
  refuses({"--targets", "features.npy", "--as", "covariance", "--rank", "2"}, 2, {"9 x 6", "--as features"});
  refuses({"--targets", "sigma.npy", "--starts", "start.npy", "--rank", "3"}, 2, {"--rank is 3", "2 columns"});
  refuses({"--targets", "sigma.npy", "--rank", "7"}, 2, {"rank is 7", "6"});
  refuses({"--targets", "sigma.npy", "--starts", "F.npy"}, 2, {"--starts", "--out"});
  // One matrix is asked for elsewhere.
  const auto done = run({"align", "--target", "sigma.npy", "--rank", "2", "--out", "F.npy"});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_TRUE(mentions(done.err, {"3 dimensions", "(5, 6, 6)"}));
}

}  // namespace
}  // namespace itspace::cli_test
