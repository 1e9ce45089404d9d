// SPDX-License-Identifier: Apache-2.0
//
// align and covariance on Parquet and Arrow files: the result of the run in memory, within the memory that was allowed.
#include "program.hpp"

#include "arrow_files.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <string>

namespace itspace::cli_test {
namespace {

using namespace std::string_literals;

class StreamedArrow : public ProgramTest {
 protected:
  StreamedArrow() {
    z_ = gaussian(400, 12, 3);
    for (Index j = 0; j < 12; ++j) z_.col(j) /= double(j + 1);
    z_ = z_.cast<float>().cast<double>();
    write_float("all.npy", z_);
  }

  void write_columns(const std::string& name, const Matrix& rows, std::int64_t part_rows = 64,
                     const std::string& type = "float", std::vector<std::size_t> nulls_of_column_4 = {}) const {
    std::vector<fixtures::ArrowColumnOf> columns;
    for (Index j = 0; j < rows.cols(); ++j) {
      columns.push_back({"f" + std::to_string(j), type, {}, {}});
      for (Index i = 0; i < rows.rows(); ++i) columns.back().values.push_back(rows(i, j));
      if (j == 4) columns.back().nulls = nulls_of_column_4;
    }
    fixtures::write_arrow(path(name), columns, {.part_rows = part_rows, .packed = true});
  }
  void write_lists(const std::string& name, const Matrix& rows, std::int64_t part_rows = 64) const {
    fixtures::write_arrow_lists(path(name), {"v", "float", {rows.data(), rows.data() + rows.size()}, {}}, rows.cols(),
                                {}, {.part_rows = part_rows});
  }

  Matrix z_;
};

TEST_F(StreamedArrow, AllKindsGiveTheResultOfTheRunInMemory) {
  write_columns("part-1.parquet", z_.topRows(150));
  write_columns("part-2.parquet", z_.bottomRows(250));
  write_columns("all.arrow", z_);
  write_lists("lists.parquet", z_);
  write_lists("lists.feather", z_);
  ASSERT_EQ(run({"align", "--target", "all.npy", "--rank", "3", "--precision", "mixed", "--out", "Y.npy"}).exit_code,
            0);
  const Matrix expected = array_of("Y.npy");
  std::string first;
  for (const std::string name : {"part-*.parquet", "all.arrow", "lists.parquet", "lists.feather"}) {
    const Outcome outcome =
        run({"align", "--target", name, "--rank", "3", "--precision", "mixed", "--out", "S.npy", "--steps", "3"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(mentions(outcome.err, {"400 samples of dimension 12", "streamed", "of float32", "sweeps"}))
        << outcome.err;
    if (first.empty()) first = text_of("S.npy");
    EXPECT_EQ(text_of("S.npy"), first) << name;
  }
  const Outcome outcome =
      run({"align", "--target", "part-*.parquet", "--rank", "3", "--precision", "mixed", "--out", "S.npy"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_LE((array_of("S.npy") - expected).norm(), 1e-12 * expected.norm());
}

TEST_F(StreamedArrow, TheCovarianceOfParquetFiles) {
  write_columns("z.parquet", z_);
  ASSERT_EQ(run({"covariance", "z.parquet", "--out", "S.npy", "--mean", "mu.npy"}).exit_code, 0);
  const Matrix centred = z_.rowwise() - z_.colwise().mean();
  const Matrix expected = centred.transpose() * centred / 399;
  EXPECT_LE((array_of("S.npy") - expected).norm(), 30 * std::numeric_limits<double>::epsilon() * expected.norm());
}

TEST_F(StreamedArrow, ARunThatGoesOnFromItsCheckpointEndsInTheSameBits) {
  write_columns("z.parquet", z_);
  const std::vector<std::string> list{"align",   "--target", "z.parquet",    "--rank", "3",
                                      "--steps", "9",        "--checkpoint", "c.npz",  "--checkpoint-every",
                                      "4",       "--out",    "Y.npy"};
  ASSERT_EQ(run(list).exit_code, 0);
  const std::string expected = text_of("Y.npy");
  auto again = list;
  again.push_back("--resume");
  const Outcome outcome = run(again);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(mentions(outcome.err, {"goes on from its checkpoint"}));
  EXPECT_EQ(text_of("Y.npy"), expected);
}

TEST_F(StreamedArrow, ARowGroupThatMemoryDoesNotHoldIsNamedWithTheRemedy) {
  write_columns("large.parquet", gaussian(300000, 6, 1), 300000, "double");
  const auto with = [&](const std::string& memory) {
    return run(
        {"align", "--target", "large.parquet", "--memory", memory, "--rank", "3", "--steps", "1", "--out", "Y.npy"});
  };
  const Outcome outcome = with("72MiB");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(mentions(outcome.err, {"--memory is 72 MiB", "row group of 'large.parquet'", "300000 rows",
                                     "or write smaller row groups", "give --memory"}))
      << outcome.err;
  const auto at = outcome.err.find("give --memory ") + "give --memory "s.size();
  const int enough = std::stoi(outcome.err.substr(at));
  EXPECT_EQ(with(std::to_string(enough - 1) + "MiB").exit_code, 2);
  EXPECT_EQ(with(std::to_string(enough) + "MiB").exit_code, 0);
  write_columns("large.parquet", gaussian(300000, 6, 1), 4000, "double");
  EXPECT_EQ(with("72MiB").exit_code, 0);
}

TEST_F(StreamedArrow, BadInputIsNamed) {
  Matrix broken = z_;
  broken(17, 4) = std::numeric_limits<double>::quiet_NaN();
  write_columns("all.parquet", z_);
  write_columns("broken.parquet", broken);
  write_columns("null.parquet", z_, 64, "float", {217});
  write_columns("narrow.parquet", z_.leftCols(5));
  write_bytes("text.parquet", "no such thing");
  const std::string whole = text_of("all.parquet");
  write_bytes("cut.parquet", std::string_view(whole).substr(0, whole.size() / 2));
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {{"--target", "broken.parquet"}, 2, {"broken.parquet", "row 17, column 4 is nan"}},
      {{"--target", "all.parquet", "null.parquet"}, 2, {"null.parquet", "row 217, column 4 is null"}},
      {{"--target", "all.parquet", "narrow.parquet"}, 3, {"narrow.parquet", "all.parquet", "5", "12", "columns"}},
      {{"--target", "text.parquet"}, 3, {"text.parquet", "no Parquet file", "'no such '"}},
      {{"--target", "cut.parquet"}, 3, {"cut.parquet", "truncated", "write it again"}},
      {{"--target", "none.parquet"}, 3, {"none.parquet", "does not exist"}},
      {{"--target", "all.parquet", "--floor"}, 2, {"--floor", "streamed"}},
      {{"--target", "all.parquet", "--target-as", "covariance"}, 2, {"covariance"}},
      {{"--target", "all.parquet", "--checkpoint", "all.parquet"}, 2, {"--checkpoint", "--target", "same file"}},
  };
  for (const Case& bad : cases) {
    std::vector<std::string> arguments{"align", "--rank", "3", "--out", "Y.npy"};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, bad.exit_code) << outcome.err;
    EXPECT_TRUE(mentions(outcome.err, bad.parts)) << outcome.err;
    EXPECT_FALSE(exists("Y.npy"));
  }
}

#ifndef ITSPACE_SANITIZED  // a sanitizer holds memory of its own
// Files of more than the limit, in columns and in lists, as the kernel counts: the most that was ever resident.
TEST_F(StreamedArrow, StaysWithinItsMemory) {
  constexpr Index rows = 98304, cols = 256, mib = Index(1) << 20;  // 96 MiB
  rusage own = {};
  getrusage(RUSAGE_SELF, &own);
  if (own.ru_maxrss * 1024 > 56 * mib) GTEST_SKIP() << "a child is charged with what its parent held: run it alone";
  {
    // Written by another process, for the same reason.
    const pid_t writer = fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      const Matrix z = gaussian(rows, cols, 1);
      write_columns("columns.parquet", z, 4096);
      write_columns("columns.arrow", z, 4096);
      write_lists("lists.parquet", z, rows);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    ASSERT_EQ(status, 0);
  }
  for (const std::string name : {"columns.parquet", "columns.arrow", "lists.parquet"}) {
    const Outcome refused = run({"align", "--target", name, "--memory", "1MiB", "--rank", "8", "--out", "Y.npy"});
    const auto at = refused.err.find("give --memory ") + "give --memory "s.size();
    const int limit = std::stoi(refused.err.substr(at));
    const pid_t child = begin({"align", "--target", name, "--memory", std::to_string(limit) + "MiB", "--rank", "8",
                               "--steps", "1", "--out", "Y.npy"});
    int status = 0;
    rusage usage = {};
    ASSERT_EQ(wait4(child, &status, 0, &usage), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text_of("err");
    EXPECT_LE(usage.ru_maxrss * 1024, limit * mib) << name;
    RecordProperty(name, std::to_string(usage.ru_maxrss / 1024) + " of " + std::to_string(limit) + " MiB");
  }
}
#endif

}  // namespace
}  // namespace itspace::cli_test
