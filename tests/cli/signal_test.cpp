// SPDX-License-Identifier: Apache-2.0
//
// Signals, closed outputs and inputs that vanish. The program is met at a pipe, where it is known to wait.
#include "program.hpp"

#include <itspace/map_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;
constexpr Index signal_dim = 6;

class Signal : public ProgramTest {
 protected:
  Signal() {
    write("target.npy", power_law(signal_dim, 1));
    io::save_map(path("map.npz"), TransportMap({gaussian(signal_dim, 2, 1), gaussian(signal_dim, 1, 2), 0.5},
                                               {gaussian(signal_dim, 2, 3), gaussian(signal_dim, 1, 4), 0.2}));
  }

  // Samples of this dimension, one more chunk of which is always to come.
  static std::string npy_head(Index rows) {
    std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(signal_dim) + "), }";
    head.append(117 - head.size(), ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + '\n';
  }
  // An alignment that will not end by itself, stopped at its first iterate, which goes into a pipe.
  Outcome align_and(int signal, Texts more = {}) const {
    fs::create_directory(path("steps"));
    make_pipe("steps/Y_000.npy");
    Texts arguments{"align", "--target", "target.npy", "--rank", "2", "--steps", "100000000", "--iterates", "steps"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const pid_t child = begin(arguments);
    drain("steps/Y_000.npy", [&] { kill(child, signal); });
    return end(child);
  }
};

TEST_F(Signal, ATransformThatIsEndedLeavesNothing) {
  make_pipe("in");
  write_bytes("old.npy", "old");
  const auto before = files();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2})
    for (const std::string out : {"new.npy", "old.npy"}) {
      const pid_t child = begin({"transform", "--map", "map.npz", "--in", "-", "--out", out}, "in");
      // More than a pipe holds: when the last byte is gone, the program has read rows, and its output is begun.
      const std::string bytes = npy_head(100000000) + std::string(std::size_t{1} << 20, '\0');
      const int pipe = open(path("in").c_str(), O_WRONLY);
      for (std::size_t sent = 0; sent < bytes.size();) {
        const ssize_t count = ::write(pipe, bytes.data() + sent, bytes.size() - sent);
        ASSERT_GT(count, 0);
        sent += static_cast<std::size_t>(count);
      }
      kill(child, signal);
      EXPECT_EQ(end(child).exit_code, 128 + signal);
      close(pipe);
      EXPECT_EQ(files(), before) << signal;
      EXPECT_EQ(text_of("old.npy"), "old");
    }
}

TEST_F(Signal, AnAlignmentThatIsEndedKeepsItsBestIterate) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto done = align_and(signal, {"--out", "Y.npy", "--trace", "T.json"});
    EXPECT_EQ(done.exit_code, 128 + signal) << done.err;
    EXPECT_TRUE(mentions(done.err, {"interrupt", "Y.npy"}));
    EXPECT_EQ(json_of("T.json")["status"], "stopped");
    EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"}).exit_code, 0);
    fs::remove_all(path("steps"));
    EXPECT_EQ(files(), (Texts{"T.json", "Y.npy", "map.npz", "target.npy"}));
    fs::remove(path("Y.npy"));
    fs::remove(path("T.json"));
  }
}

TEST_F(Signal, OneThatTheCallerIgnoresStaysIgnored) {
  make_pipe("pipe");
  // nohup's way; the shell waits for the reader of the pipe, so the signal comes while the program waits for it too.
  EXPECT_EQ(shell("{ (trap '' HUP; exec '" + program() +
                  "' align --target target.npy --rank 2 --quiet --out Y.npy --trace pipe) & "
                  "child=$!; exec 3< pipe; kill -HUP $child; cat <&3 > /dev/null; wait $child; }"),
            0);
  EXPECT_TRUE(exists("Y.npy"));
}

TEST_F(Signal, AReaderThatHasGoneCostsNothing) {
  const Texts align{"align", "--target", "target.npy", "--rank", "2", "--out", "Y.npy", "--trace", "T.json"};
  auto done = end(begin(align, "/dev/null", true));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"}).exit_code, 0);
  EXPECT_EQ(done.err.find("error"), std::string::npos) << done.err;
  for (const Texts& arguments :
       {Texts{"info", "target.npy"}, Texts{"distance", "target.npy", "target.npy"},
        Texts{"verify", "Y.npy", "--target", "target.npy"},
        Texts{"map", "--source", "target.npy", "--target", "target.npy", "--rank", "2", "--out", "m.npz"}}) {
    done = end(begin(arguments, "/dev/null", true));
    EXPECT_EQ(done.exit_code, 0) << arguments[0] << done.err;
  }
  EXPECT_TRUE(exists("m.npz"));
  // Here the reader is the only one who gets the result.
  write("x.npy", gaussian(40000, signal_dim, 3));
  done = end(begin({"transform", "--map", "map.npz", "--in", "x.npy", "--out", "-"}, "/dev/null", true));
  EXPECT_EQ(done.exit_code, 128 + SIGPIPE);
}

TEST_F(Signal, AnOutputThatCannotBeWrittenCostsNoOther) {
  const std::string align = "itspace align --target target.npy --rank 2 ";
  EXPECT_EQ(shell(align + "--out Y.npy --trace /dev/full --quiet 2> err"), 3);
  EXPECT_TRUE(mentions(text_of("err"), {"/dev/full"}));
  EXPECT_EQ(array_of("Y.npy").rows(), signal_dim);
  fs::remove(path("Y.npy"));
  EXPECT_EQ(shell(align + "--out Y.npy --trace T.json > /dev/full 2> err"), 3);
  EXPECT_TRUE(mentions(text_of("err"), {"standard output"}));
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"}).exit_code, 0);
  fs::remove(path("Y.npy"));
  EXPECT_EQ(shell(align + "--out Y.npy --trace T.json >&- 2> err"), 3);
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"}).exit_code, 0);
  fs::remove(path("Y.npy"));
  EXPECT_EQ(shell(align + "--out Y.npy --trace T.json > /dev/null 2>&- <&-"), 0);
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"}).exit_code, 0);
}

TEST_F(Signal, AFileThatGrowsTooLargeLeavesTheOldOne) {
  write("x.npy", gaussian(40000, signal_dim, 3));  // 1.9 MB
  write_bytes("old.npy", "old");
  const auto before = files();
  EXPECT_EQ(shell("ulimit -f 500; itspace transform --map map.npz --in x.npy --out old.npy 2> /dev/null"), 3);
  EXPECT_EQ(files(), before);
  EXPECT_EQ(text_of("old.npy"), "old");
}

TEST_F(Signal, AnInputThatIsCutShortIsNamed) {
  make_pipe("out");
  std::ofstream(path("x.npy"), std::ios::binary) << npy_head(2000000);
  fs::resize_file(path("x.npy"), 128 + 2000000 * signal_dim * sizeof(double));
  const pid_t child = begin({"transform", "--map", "map.npz", "--in", "x.npy", "--out", "out"});
  // It waits at the pipe for somebody to read the first rows; the last ones are not read yet.
  drain("out", [&] { fs::resize_file(path("x.npy"), 4096); });
  const auto done = end(child);
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_TRUE(mentions(done.err, {"itspace: error: 'x.npy' was cut short", "run again"}));
}

}  // namespace
}  // namespace itspace::cli_test
