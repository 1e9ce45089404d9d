// SPDX-License-Identifier: Apache-2.0
//
// align on features that are streamed, and on runs that are killed: the result of the run in memory, within the memory
// that was allowed, and the bits of a run that was left alone.
#include "program.hpp"

#include <itspace/row_stream.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

namespace itspace::cli_test {
namespace {

using namespace std::string_literals;

class Streamed : public ProgramTest {
 protected:
  Streamed() {
    Matrix z = gaussian(400, 12, 3);
    for (Index j = 0; j < 12; ++j) z.col(j) /= double(j + 1);
    write_float("all.npy", z);
    write_float("part-1.npy", z.topRows(150));
    write_float("part-2.npy", z.bottomRows(250));
  }

  // The factor is the same up to the rounding of another order of sums.
  void expect_as_in_memory(const std::vector<std::string>& target) const {
    ASSERT_EQ(run({"align", "--target", "all.npy", "--rank", "3", "--precision", "mixed", "--out", "Y.npy"}).exit_code,
              0);
    std::vector<std::string> arguments{"align", "--rank", "3", "--precision", "mixed", "--out", "S.npy", "--target"};
    arguments.insert(arguments.end(), target.begin(), target.end());
    const Outcome outcome = run(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(mentions(outcome.err, {"400 samples of dimension 12", "streamed", "4 sweeps", "/s"})) << outcome.err;
    const Matrix expected = array_of("Y.npy"), found = array_of("S.npy");
    EXPECT_LE((found - expected).norm(), 1e-12 * expected.norm());
  }
};

TEST_F(Streamed, FilesPatternsAndALimitGiveTheResultOfTheRunInMemory) {
  expect_as_in_memory({"part-1.npy", "part-2.npy"});
  expect_as_in_memory({"part-*.npy"});
  expect_as_in_memory({"all.npy", "--memory", "200MiB"});
}

TEST_F(Streamed, TooLittleMemorySaysHowMuchIsNeeded) {
  const Outcome outcome = run({"align", "--target", "all.npy", "--memory", "1MiB", "--rank", "3", "--out", "Y.npy"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(mentions(outcome.err, {"--memory is 1 MiB", "needs", "12 rows at rank 3", "chunks", "give --memory"}));
  const auto at = outcome.err.find("give --memory ") + "give --memory "s.size();
  const int enough = std::stoi(outcome.err.substr(at));
  const auto with = [&](int mib) {
    return run({"align", "--target", "all.npy", "--memory", std::to_string(mib) + "MiB", "--rank", "3", "--out",
                "Y.npy"})
        .exit_code;
  };
  EXPECT_EQ(with(enough - 1), 2);
  EXPECT_EQ(with(enough), 0);
}

// In a unit that shows it, whatever it was given in.
TEST_F(Streamed, MemoryIsSaidInAUnitThatShowsIt) {
  const std::pair<std::string, std::string> cases[] = {
      {"1KiB", "1 KiB"}, {"900", "900 bytes"}, {"1536KiB", "1.5 MiB"}, {"2MB", "1.907 MiB"}, {"1023KiB", "1023 KiB"}};
  for (const auto& [given, said] : cases) {
    const Outcome outcome = run({"align", "--target", "all.npy", "--memory", given, "--rank", "3", "--out", "Y.npy"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_TRUE(mentions(outcome.err, {"--memory is " + said + ",", "40 MiB for the program", " KiB for blocks"}))
        << outcome.err;
  }
}

TEST_F(Streamed, BadInputIsNamed) {
  write_float("narrow.npy", gaussian(10, 5, 1));
  write("wide.npy", gaussian(10, 12, 1));
  write_float("square.npy", gaussian(12, 12, 1));
  Matrix broken = gaussian(40, 12, 1);
  broken(17, 4) = std::numeric_limits<double>::quiet_NaN();
  write_float("broken.npy", broken);
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {{"--target", "all.npy", "narrow.npy"}, 3, {"narrow.npy", "all.npy", "5", "12", "columns"}},
      {{"--target", "all.npy", "wide.npy"}, 3, {"wide.npy", "all.npy", "float64", "float32"}},
      {{"--target", "none-*.npy"}, 3, {"none-*.npy", "no file matches"}},
      {{"--target", "all.npy", "broken.npy"},
       2,
       {"broken.npy': row 17, column 4 is nan; all values must be finite. Remove or replace such rows first"}},
      {{"--target", "square.npy", "--memory", "1GiB"}, 2, {"square.npy", "square", "--target-as features"}},
      {{"--target", "square.npy", "square.npy"}, 2, {"2 files", "square", "--target-as features", "barycenter"}},
      {{"--target", "all.npy", "--memory", "1GiB", "--target-as", "covariance"}, 2, {"covariance", "--memory"}},
      {{"--target", "all.npy", "--memory", "1GiB", "--floor"}, 2, {"--floor", "streamed"}},
      {{"--target", "all.npy", "--memory", "1GiB", "--weights", "all.npy"}, 2, {"--weights", "streamed"}},
      {{"--target", "all.npy", "--memory", "much"}, 2, {"--memory is 'much'", "2GiB"}},
      {{"--target", "all.npy", "--memory", "64XB"}, 2, {"--memory is '64XB'", "2GiB"}},
      {{"--target", "all.npy", "--memory", "2g"}, 2, {"--memory is '2g'", "2GiB"}},
      {{"--target", "all.npy", "--memory", "-2GiB"}, 2, {"--memory is '-2GiB'", "2GiB"}},
      {{"--target", "all.npy", "--resume"}, 2, {"--resume", "--checkpoint"}},
      {{"--target", "all.npy", "--checkpoint-every", "3"}, 2, {"--checkpoint-every", "--checkpoint"}},
      {{"--target", "all.npy", "--checkpoint", "c.npz", "--checkpoint-every", "0"}, 2, {"--checkpoint-every is 0"}},
      {{"--target", "all.npy", "--checkpoint", "all.npy"}, 2, {"--checkpoint", "--target", "same file"}},
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

// Labels by mistake, or features of one column? It is taken for the latter, and that is said.
TEST_F(Streamed, AFileOfOneDimensionIsOneColumnAndThatIsSaid) {
  Matrix column = gaussian(40, 1, 2);
  const io::NamedBlock flat[] = {{"x", column, true}};
  io::save_npz(path("flat.npz"), flat);
  std::string npy = text_of("flat.npz");  // its member is stored as it is
  npy = npy.substr(npy.find("\x93NUMPY"));
  write_bytes("flat.npy", npy.substr(0, 128 + 40 * sizeof(double)));
  write("column.npy", column);
  const std::string said = "one dimension, taken for one column";
  const auto align = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"align", "--rank", "1", "--out", "Y.npy", "--target"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.err;
  };
  EXPECT_TRUE(mentions(align({"flat.npy"}), {"flat.npy", said, "40 samples of dimension 1"}));
  EXPECT_TRUE(mentions(align({"flat.npy", "--target-as", "features"}), {said}));
  EXPECT_TRUE(mentions(align({"flat.npy", "--memory", "200MiB"}), {said}));
  EXPECT_TRUE(mentions(align({"column.npy", "flat.npy"}), {"flat.npy: " + said}));
  EXPECT_FALSE(mentions(align({"column.npy"}), {"one column"}));
  EXPECT_FALSE(mentions(align({"column.npy", "--memory", "200MiB"}), {"one column"}));
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"info", "flat.npy"},
        {"distance", "flat.npy", "column.npy"},
        {"shift", "column.npy", "flat.npy"},
        {"covariance", "flat.npy", "--out", "S.npy"},
        {"follow", "--rank", "1", "flat.npy"},
        {"map", "--source", "column.npy", "--target", "flat.npy", "--map", "scale", "--out", "map.npz"},
        {"transform", "--map", "map.npz", "--in", "flat.npy", "--out", "m.npy"}}) {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.exit_code, 0) << line.front() << outcome.err;
    EXPECT_TRUE(mentions(outcome.out + outcome.err, {said})) << line.front();
  }
}

// A pattern stands for its files, and none of them is an output.
TEST_F(Streamed, NoFileOfAPatternIsWritten) {
  std::filesystem::create_symlink("part-2.npy", path("link.npy"));
  const Matrix before = array_of("part-2.npy");
  const std::vector<std::string> align{"align", "--target", "part-*.npy", "--rank", "3", "--steps", "2"};
  const std::vector<std::string> covariance{"covariance", "part-*.npy"};
  struct Case {
    std::vector<std::string> arguments;
    std::string flag;
  };
  const auto with = [](std::vector<std::string> all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Case cases[] = {
      {with(align, {"--out", "part-2.npy"}), "--out part-2.npy"},
      {with(align, {"--out", "link.npy"}), "--out link.npy"},
      {with(align, {"--memory", "1GiB", "--out", "part-2.npy"}), "--out part-2.npy"},
      {with(align, {"--out", "Y.npy", "--trace", "part-2.npy"}), "--trace part-2.npy"},
      {with(align, {"--out", "Y.npy", "--checkpoint", "part-2.npy", "--checkpoint-every", "1"}), "--checkpoint part-2"},
      {with(covariance, {"--out", "part-2.npy"}), "--out part-2.npy"},
      {with(covariance, {"--out", "S.npy", "--mean", "part-2.npy"}), "--mean part-2.npy"},
  };
  for (const Case& bad : cases) {
    const Outcome outcome = run(bad.arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_TRUE(mentions(outcome.err, {bad.flag, "part-2.npy are the same file", "another name"})) << outcome.err;
    EXPECT_EQ(array_of("part-2.npy"), before) << bad.flag;
  }
}

// The matrix by its definition, in bands where memory is short.
TEST_F(Streamed, CovarianceIsBuiltInBands) {
  const Matrix z = array_of("all.npy");
  const Matrix centred = z.rowwise() - z.colwise().mean();
  const Matrix expected = centred.transpose() * centred / 399;
  const Outcome outcome = run({"covariance", "part-*.npy", "--out", "S.npy", "--mean", "mu.npy"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(mentions(outcome.err, {"400 samples of dimension 12", "1 sweep", "make no covariance"})) << outcome.err;
  EXPECT_LE((array_of("S.npy") - expected).norm(), 30 * std::numeric_limits<double>::epsilon() * expected.norm());
  EXPECT_LE((array_of("mu.npy").col(0) - z.colwise().mean().transpose()).norm(),
            30 * std::numeric_limits<double>::epsilon() * z.norm());
  EXPECT_EQ(run({"align", "--target", "S.npy", "--rank", "3", "--out", "Y.npy"}).exit_code, 0);
  write("wide.npy", gaussian(40, 1500, 1));
  const Outcome banded = run({"covariance", "wide.npy", "--memory", "60MiB", "--out", "W.npy"});
  ASSERT_EQ(banded.exit_code, 0) << banded.err;
  EXPECT_FALSE(mentions(banded.err, {"in 1 sweep"})) << banded.err;
  const Matrix w = array_of("W.npy"), wide = array_of("wide.npy");
  const Matrix of_wide = wide.rowwise() - wide.colwise().mean();
  EXPECT_LE((w - of_wide.transpose() * of_wide / 39).norm(), 30 * std::numeric_limits<double>::epsilon() * w.norm());
}

#ifndef ITSPACE_SANITIZED  // a sanitizer holds memory of its own
// A file of three times the limit, by the limit of the kernel's own counting: the most that was ever resident.
TEST_F(Streamed, StaysWithinItsMemory) {
  constexpr Index rows = 98304, cols = 512, mib = Index(1) << 20;  // 192 MiB
  rusage own = {};
  getrusage(RUSAGE_SELF, &own);
  if (own.ru_maxrss * 1024 > 48 * mib) GTEST_SKIP() << "a child is charged with what its parent held: run it alone";
  {
    io::RowWriter<float> writer(path("big.npy"), rows, cols);
    Block<float> chunk(1024, cols);
    std::mt19937 random(1);
    for (Index i = 0; i < chunk.size(); ++i) chunk.data()[i] = float(random() % 1000) - 500;
    for (Index row = 0; row < rows; row += chunk.rows()) {
      chunk.row(row / chunk.rows() % chunk.rows()) *= 2;
      writer.write(chunk);
    }
    writer.commit();
  }
  const pid_t child = begin({"align", "--target", "big.npy", "--memory", "64MiB", "--rank", "8", "--steps", "1",
                             "--checkpoint", "c.npz", "--out", "Y.npy"});
  int status = 0;
  rusage usage = {};
  ASSERT_EQ(wait4(child, &status, 0, &usage), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text_of("err");
  EXPECT_LE(usage.ru_maxrss * 1024, 64 * mib);
}
#endif

class Killed : public Streamed {
 protected:
  static std::vector<std::string> arguments(const std::string& number, bool resume) {
    std::vector<std::string> list{"align",      "--target", "part-*.npy",         "--rank",  "3",
                                  "--steps",    "20",       "--checkpoint-every", "4",       "--checkpoint",
                                  "c" + number, "--out",    "Y" + number,         "--trace", "run" + number};
    if (resume) list.push_back("--resume");
    return list;
  }
  // Until it has ended, or that time has come.
  static void wait_for(pid_t child, std::chrono::steady_clock::time_point until) {
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    pollfd ended{handle, POLLIN, 0};
    const auto left = until - std::chrono::steady_clock::now();
    poll(&ended, 1,
         static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(std::max(left, left.zero())).count()));
    close(handle);
  }
  // The trace but for its times.
  Json trace_of(const std::string& number) const {
    Json json = json_of("run" + number);
    for (Json& step : json["steps"]) step.erase("seconds");
    return json;
  }
};

// At 50 moments of its life, the first of them before it has read anything, the last ones after its end.
TEST_F(Killed, AtAnyMomentItEndsInTheSameBits) {
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(run(arguments("", false)).exit_code, 0);
  const auto life = std::chrono::steady_clock::now() - began;
  const std::string expected = text_of("Y");
  const Json expected_trace = trace_of("");
  std::mt19937 random(5);
  int resumed_from_a_checkpoint = 0;
  for (int moment = 0; moment < 50; ++moment) {
    const std::string number = std::to_string(moment);
    bool alive = true;
    for (int times = 0; alive && times < 3; ++times) {  // killed again and again, later each time
      const auto until = std::chrono::steady_clock::now() + life / 1000 * (random() % 1000) * (times + 1) / 2;
      const pid_t child = begin(arguments(number, true));
      wait_for(child, until);
      int status = 0;
      alive = kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
      resumed_from_a_checkpoint += alive && exists("c" + number);
      if (times == 0 && moment % 2 == 0) break;
    }
    const Outcome outcome = run(arguments(number, true));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(text_of("Y" + number), expected) << moment;
    EXPECT_EQ(trace_of(number), expected_trace) << moment;
    for (const std::string name : {"c", "Y", "run"}) fs::remove(path(name + number));
  }
  EXPECT_GT(resumed_from_a_checkpoint, 0);
}

TEST_F(Killed, ACheckpointOfAnotherRunIsRefusedAndNamesWhatDiffers) {
  ASSERT_EQ(run(arguments("", false)).exit_code, 0);
  auto list = arguments("", true);
  *std::find(list.begin(), list.end(), "20") = "21";
  Outcome outcome = run(list);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(mentions(outcome.err, {"another run", "steps=20", "steps=21"})) << outcome.err;
  list = arguments("", true);
  *std::find(list.begin(), list.end(), "part-*.npy") = "part-1.npy";
  outcome = run(list);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(mentions(outcome.err, {"another run", "400 samples", "150 samples"})) << outcome.err;
  list = arguments("", true);
  write("c", gaussian(2, 2, 1));
  EXPECT_EQ(run(list).exit_code, 3);
}

// In memory too, and where float32 does not resolve the objective and the run turns to double.
TEST_F(Killed, RunsInMemoryResumeAsWell) {
  for (const std::string solver : {"paper", "ritz"}) {
    const std::vector<std::string> list{
        "align", "--target", "all.npy", "--rank",       "3",     "--solver",           solver, "--steps",
        "9",     "--out",    "Y.npy",   "--checkpoint", "c.npz", "--checkpoint-every", "4"};
    ASSERT_EQ(run(list).exit_code, 0);
    const std::string expected = text_of("Y.npy");
    auto again = list;
    again.push_back("--resume");
    const Outcome outcome = run(again);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(mentions(outcome.err, {"the run goes on from its checkpoint in c.npz"}));
    EXPECT_EQ(text_of("Y.npy"), expected);
    fs::remove(path("c.npz"));
  }
}

TEST_F(Killed, ARunThatIsTooShortForACheckpointSaysSo) {
  const std::vector<std::string> list{"align", "--target", "all.npy", "--rank",       "3",    "--out",
                                      "Y.npy", "--steps",  "10",      "--checkpoint", "c.npz"};
  const Outcome outcome = run(list);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(mentions(outcome.err, {"no checkpoint is written", "--steps 10", "--checkpoint-every 10"}));
  EXPECT_FALSE(exists("c.npz"));
}

}  // namespace
}  // namespace itspace::cli_test
