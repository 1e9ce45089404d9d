// SPDX-License-Identifier: Apache-2.0
//
// itspace follow against the library, and what it leaves behind when it is ended.
#include "program.hpp"

#include <itspace/online_file.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <sstream>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;
constexpr Index stream_dim = 6;

class Follow : public ProgramTest {
 protected:
  static std::vector<Json> lines_of(const Outcome& done) {
    std::vector<Json> lines;
    std::istringstream text(done.out);
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  static std::string npy_head(Index rows) {
    std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(stream_dim) + "), }";
    head.append(117 - head.size(), ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + '\n';
  }
  static void send(int pipe, std::string_view bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::write(pipe, bytes.data() + sent, bytes.size() - sent);
      ASSERT_GT(count, 0);
      sent += static_cast<std::size_t>(count);
    }
  }
};

TEST_F(Follow, IsTheAlignerOfTheLibrary) {
  const Matrix all = gaussian(100, stream_dim, 1);
  write("all.npy", all);
  const auto done = run({"follow", "--rank", "2", "--steps", "3", "--half-life", "4", "--batch", "30", "--run-length",
                         "50", "--reference", "4", "--out", "Y.npy", "--state", "S.npz", "all.npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  OnlineAlignerOptions options{.rank = 2, .steps = 3};
  options.stream.half_life = 4;
  options.drift = DriftOptions{.run_length = 50, .reference_batches = 4, .rank = 2};
  OnlineAligner<double> aligner(options);
  const std::vector<Json> lines = lines_of(done);
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const Index first = 30 * Index(i);
    const Observation seen = aligner.observe(all.middleRows(first, std::min<Index>(30, 100 - first)));
    EXPECT_EQ(lines[i]["batch"], i + 1);
    EXPECT_EQ(lines[i]["samples"], seen.samples);
    EXPECT_EQ(lines[i]["effective_samples"].get<double>(), seen.effective_samples);
    EXPECT_EQ(lines[i]["objective"].get<double>(), aligner.objective());
    EXPECT_EQ(lines[i]["objective_before"].get<double>(), seen.trace->steps.front().objective);
    EXPECT_EQ(lines[i]["certified"], true);
    EXPECT_EQ(lines[i]["drift"]["watching"], seen.drift->watching);
  }
  EXPECT_EQ(array_of("Y.npy"), aligner.factor());
  EXPECT_EQ(io::load_online<double>(path("S.npz")).factor(), aligner.factor());
  EXPECT_TRUE(mentions(done.err, {"4 batches", "S.npz"}));
}

TEST_F(Follow, BalancesByThePredictedClasses) {
  const Matrix all = gaussian(60, stream_dim, 2), source = Matrix::Constant(5, 1, 3);
  Matrix labels = Matrix::Constant(60, 1, 3), probabilities = Matrix::Constant(60, 2, 0.5);
  labels.bottomRows(20).setConstant(-7);
  Matrix source_labels = source;
  source_labels(4) = -7;
  write("all.npy", all);
  write("labels.npy", labels);
  write("probabilities.npy", probabilities);
  write("source.npy", source_labels);
  const Texts options{"follow", "--rank",  "2",       "--half-life",     "4",         "--batch",
                      "20",     "--quiet", "all.npy", "--source-labels", "source.npy"};
  const auto follow = [&](const Texts& more) {
    Texts arguments = options;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const auto done = follow({"--predicted", "labels.npy", "--state", "S.npz"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  OnlineAlignerOptions balanced{.rank = 2};
  balanced.stream.half_life = 4;
  balanced.stream.balance = ClassBalance{.shares = Vector(Eigen::Vector2d(0.2, 0.8)), .classes = {"-7", "3"}};
  OnlineAligner<double> aligner(balanced);
  for (Index first = 0; first < 60; first += 20) {
    Predicted predicted;
    predicted.labels.assign(20, first < 40 ? 1 : 0);
    aligner.observe(all.middleRows(first, 20), {}, predicted);
  }
  const Json last = lines_of(done).back();
  EXPECT_EQ(last["objective"].get<double>(), aligner.objective());
  EXPECT_EQ(last["class_shares"]["-7"].get<double>(), aligner.target().class_shares()(0));
  EXPECT_EQ(io::load_online<double>(path("S.npz")).factor(), aligner.factor());
  EXPECT_EQ(follow({"--predicted", "probabilities.npy"}).exit_code, 0);

  labels(30) = 4;
  write("strange.npy", labels);
  write("short.npy", Matrix(labels.topRows(59)));
  labels(30) = 0.5;
  write("fraction.npy", labels);
  write("wide.npy", gaussian(60, 3, 1).cwiseAbs());
  for (const auto& [more, parts] : std::vector<std::pair<Texts, Texts>>{
           {{"--predicted", "strange.npy"}, {"strange.npy", "sample 30", "class 4", "-7, 3"}},
           {{"--predicted", "short.npy"}, {"short.npy", "59 samples", "60"}},
           {{"--predicted", "fraction.npy"}, {"label 30 is 0.5"}},
           {{"--predicted", "wide.npy"}, {"20 x 3", "2 classes"}},
           {{"--predicted", "labels.npy", "--predicted", "labels.npy"}, {"2 times for 1 files"}},
           {{}, {"--source-labels", "--predicted"}}}) {
    const auto refused = follow(more);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, parts)) << refused.err;
  }
  // A state that is balanced wants predictions, one that is not wants none.
  auto refused = run({"follow", "--quiet", "--state", "S.npz", "all.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"S.npz", "balanced", "--predicted"})) << refused.err;
  refused = run({"follow", "--quiet", "--rank", "2", "--predicted", "labels.npy", "all.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--source-labels"})) << refused.err;
}

TEST_F(Follow, GoesOnFromItsState) {
  Texts files;
  for (int i = 0; i < 6; ++i) {
    files.push_back("b" + std::to_string(i) + ".npy");
    write_float(files.back(), gaussian(9, stream_dim, std::uint64_t(i)));
  }
  const auto follow = [&](Texts more, std::size_t first, std::size_t end) {
    Texts arguments{"follow", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), files.begin() + std::ptrdiff_t(first), files.begin() + std::ptrdiff_t(end));
    return run(arguments);
  };
  const Texts options{"--rank", "2", "--window", "3"};
  Texts once = options, twice = options;
  once.insert(once.end(), {"--state", "once.npz"});
  twice.insert(twice.end(), {"--state", "twice.npz"});
  const auto whole = follow(once, 0, 6);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.err, "");
  ASSERT_EQ(follow(twice, 0, 2).exit_code, 0);
  const auto rest = follow({"--state", "twice.npz"}, 2, 6);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(text_of("once.npz"), text_of("twice.npz"));
  EXPECT_EQ(lines_of(rest).front()["batch"], 3);
  EXPECT_EQ(lines_of(rest).back()["objective"], lines_of(whole).back()["objective"]);

  // What contradicts the state is refused, and the state is left alone.
  const std::string before = text_of("once.npz");
  for (const auto& [more, parts] :
       std::vector<std::pair<Texts, Texts>>{{{"--rank", "3"}, {"--rank is 3", "has 2"}},
                                            {{"--window", "4"}, {"--window is 4", "has 3"}},
                                            {{"--half-life", "4"}, {"--half-life is 4"}},
                                            {{"--run-length", "40"}, {"--run-length is 40", "has 0"}},
                                            {{"--alpha", "0.5"}, {"--alpha"}},
                                            {{"--precision", "float64"}, {"--precision"}}}) {
    Texts arguments{"--state", "once.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto refused = follow(arguments, 0, 1);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, parts));
    EXPECT_EQ(text_of("once.npz"), before);
  }
}

TEST_F(Follow, ABadBatchEndsTheRunWithTheStateBeforeIt) {
  Matrix bad = gaussian(8, stream_dim, 3);
  bad(5, 2) = std::numeric_limits<double>::quiet_NaN();
  write("good.npy", gaussian(8, stream_dim, 1));
  write("bad.npy", bad);
  write("wide.npy", gaussian(8, stream_dim + 1, 2));
  write("none.npy", Matrix(0, stream_dim));
  write("map.npy", gaussian(2, 2, 1));
  auto done = run({"follow", "--rank", "2", "--state", "good.npz", "good.npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  done = run({"follow", "--rank", "2", "--state", "S.npz", "good.npy", "bad.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"bad.npy", "batch[5, 2]"}));
  EXPECT_EQ(lines_of(done).size(), 1U);
  EXPECT_EQ(text_of("S.npz"), text_of("good.npz"));
  done = run({"follow", "--state", "S.npz", "wide.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"wide.npy", "7 columns", "dimension 6"}));
  done = run({"follow", "--state", "S.npz", "none.npy"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.err, {"warning", "none.npy", "skipped"}));
  EXPECT_EQ(lines_of(done).front()["skipped"], true);
  EXPECT_EQ(text_of("S.npz"), text_of("good.npz"));
  // No state, and none that is ours.
  done = run({"follow", "--state", "map.npy", "good.npy"});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_TRUE(mentions(done.err, {"map.npy", "itspace.online/1"}));
}

TEST_F(Follow, BadArgumentsAreNamed) {
  write("x.npy", gaussian(8, stream_dim, 1));
  for (const auto& [more, parts] : std::vector<std::pair<Texts, Texts>>{
           {{}, {"--rank is missing"}},
           {{"--rank", "0"}, {"--rank is 0"}},
           {{"--rank", "2", "--half-life", "0"}, {"--half-life is 0"}},
           {{"--rank", "2", "--half-life", "-1"}, {"--half-life is -1"}},
           {{"--rank", "2", "--window", "0"}, {"--window is 0"}},
           {{"--rank", "2", "--window", "3", "--half-life", "2"}, {"--half-life and --window"}},
           {{"--rank", "2", "--half-life-in", "days", "--half-life", "2"}, {"days"}},
           {{"--rank", "2", "--run-length", "1"}, {"--run-length is 1"}},
           {{"--rank", "2", "--reference", "9"}, {"--run-length"}},
           {{"--rank", "2", "--precision", "mixed"}, {"mixed"}},
           {{"--rank", "7"}, {"rank is 7", "6 columns"}},
           {{"--rank", "2", "--state", "x.npy"}, {"--state", "x.npy"}}}) {
    Texts arguments{"follow", "x.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, parts));
  }
  EXPECT_EQ(files(), Texts{"x.npy"});
}

// Rows as they come: met at a pipe in the middle of a batch, where it waits for more.
TEST_F(Follow, SigtermSavesTheState) {
  make_pipe("in");
  const Matrix rows = gaussian(25, stream_dim, 4);
  OnlineAligner<double> expected({.rank = 2});
  for (Index first = 0; first < 20; first += 10) expected.observe(rows.middleRows(first, 10));
  for (const int signal : {SIGTERM, SIGINT}) {
    const pid_t child = begin({"follow", "--rank", "2", "--batch", "10", "--state", "S.npz", "--quiet", "-"}, "in");
    const int pipe = open(path("in").c_str(), O_WRONLY);
    send(pipe, npy_head(1000000) +
                   std::string(reinterpret_cast<const char*>(rows.data()), std::size_t(rows.size()) * sizeof(double)));
    // When the pipe is empty all rows were read, the two batches among them; the third is not full.
    for (int left = 1; left > 0;) ASSERT_EQ(ioctl(pipe, FIONREAD, &left), 0);
    kill(child, signal);
    const auto done = end(child);
    close(pipe);
    EXPECT_EQ(done.exit_code, 128 + signal) << done.err;
    EXPECT_EQ(lines_of(done).size(), 2U);
    EXPECT_EQ(io::load_online<double>(path("S.npz")).factor(), expected.factor());
    fs::remove(path("S.npz"));
  }
}

}  // namespace
}  // namespace itspace::cli_test
