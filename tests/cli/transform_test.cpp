// SPDX-License-Identifier: Apache-2.0
//
// itspace transform: files and standard streams, in chunks; a bad row leaves nothing behind.
#include "program.hpp"

#include <itspace/map_file.hpp>

#include <fstream>
#include <limits>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;
constexpr Index sample_dim = 6;

class TransformCommand : public ProgramTest {
 protected:
  TransformCommand() : map(make_map(sample_dim)) { io::save_map(path("map.npz"), map); }

  static TransportMap make_map(Index d, MapKind kind = MapKind::monge) {
    LowRankGaussian from{gaussian(d, 2, 1), gaussian(d, 1, 2), 0.5};
    LowRankGaussian to{gaussian(d, 3, 3), gaussian(d, 1, 4), 0.2};
    return {from, to, kind};
  }
  Matrix expected(Matrix samples) const {
    map.apply<double>(samples);
    return samples;
  }
  Outcome transform(const std::string& in, const std::string& out, Texts more = {}) const {
    Texts arguments{"transform", "--map", "map.npz", "--in", in, "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  void expect_refused(const std::string& in, const std::string& out, int exit_code, const Texts& texts,
                      Texts more = {}) const {
    const auto before = files();
    const auto refused = transform(in, out, more);
    EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
    EXPECT_TRUE(mentions(refused.err, {"itspace: error: "}));
    EXPECT_TRUE(mentions(refused.err, texts));
    EXPECT_EQ(files(), before);
  }

  TransportMap map;
};

TEST_F(TransformCommand, IsApplyForEveryTypeOfFile) {
  const Matrix samples = gaussian(50, sample_dim, 7);
  write("x.npy", samples);
  auto done = transform("x.npy", "y.npy");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "");
  EXPECT_TRUE(mentions(done.err, {"50 samples of dimension 6", "monge", "float64", "y.npy"}));
  EXPECT_LE((array_of("y.npy") - expected(samples)).norm(), 1e-13 * samples.norm());
  EXPECT_EQ(io::open_array(path("y.npy")).info().type, "float64");

  write_float("x32.npy", samples);
  EXPECT_EQ(transform("x32.npy", "y32.npy").exit_code, 0);
  EXPECT_EQ(io::open_array(path("y32.npy")).info().type, "float32");
  EXPECT_LE((array_of("y32.npy") - expected(samples)).norm(), 1e-5 * samples.norm());

  const std::vector<io::NamedBlock> one{{"x", samples}};
  io::save_npz(path("x.npz"), one);
  EXPECT_EQ(transform("x.npz", "from_npz.npy", {"--quiet"}).err, "");
  EXPECT_EQ(array_of("from_npz.npy"), array_of("y.npy"));
}

TEST_F(TransformCommand, InverseUndoesBothKinds) {
  const Matrix samples = gaussian(50, sample_dim, 7);
  write("x.npy", samples);
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    io::save_map(path("map.npz"), make_map(sample_dim, kind));
    EXPECT_EQ(transform("x.npy", "y.npy").exit_code, 0);
    const auto done = transform("y.npy", "back.npy", {"--inverse", "--json"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.json()["inverse"], true);
    EXPECT_EQ(done.json()["rows"], 50);
    EXPECT_EQ(done.json()["kind"], std::string(name(kind)));
    EXPECT_LE((array_of("back.npy") - samples).norm(), 1e-11 * samples.norm());
  }
}

TEST_F(TransformCommand, ChunksAreRowsOfTheWhole) {
  // More than two chunks of 2^20 values, whichever way they come.
  const Index wide = 700, rows = 4000;
  const TransportMap wide_map = make_map(wide);
  io::save_map(path("map.npz"), wide_map);
  Matrix samples = gaussian(rows, wide, 9);
  write("x.npy", samples);
  EXPECT_EQ(transform("x.npy", "y.npy").exit_code, 0);
  wide_map.apply<double>(samples);
  EXPECT_LE((array_of("y.npy") - samples).norm(), 1e-13 * samples.norm());
  EXPECT_EQ(shell("cat x.npy | itspace transform --map map.npz --in - --out - --quiet | cat > piped.npy"), 0);
  EXPECT_EQ(text_of("piped.npy"), text_of("y.npy"));
}

TEST_F(TransformCommand, StandardStreamsInPiecesOfAnySize) {
  write("x.npy", gaussian(40, sample_dim, 7));
  ASSERT_EQ(transform("x.npy", "y.npy").exit_code, 0);
  const std::string itspace = "itspace transform --map map.npz --quiet ";
  EXPECT_EQ(shell("dd if=x.npy bs=7 status=none | " + itspace + "--in - --out - > a.npy"), 0);
  EXPECT_EQ(text_of("a.npy"), text_of("y.npy"));
  EXPECT_EQ(shell("(head -c 5; sleep 0.1; head -c 200; sleep 0.1; cat) < x.npy | " + itspace + "--in - --out b.npy"),
            0);
  EXPECT_EQ(text_of("b.npy"), text_of("y.npy"));
  EXPECT_EQ(shell(itspace + "--in - --out - < x.npy > c.npy"), 0);
  EXPECT_EQ(text_of("c.npy"), text_of("y.npy"));
  EXPECT_EQ(shell(itspace + "--in x.npy --out - | cat > d.npy"), 0);
  EXPECT_EQ(text_of("d.npy"), text_of("y.npy"));
  write("none.npy", Matrix(0, sample_dim));
  EXPECT_EQ(shell("cat none.npy | " + itspace + "--in - --out e.npy"), 0);
  EXPECT_EQ(io::open_array(path("e.npy")).info().shape, (std::vector<Index>{0, sample_dim}));
}

TEST_F(TransformCommand, BrokenStreams) {
  write("x.npy", gaussian(40, sample_dim, 7));
  const std::string to_file = " | itspace transform --map map.npz --in - --out out.npy 2> err";
  const auto expect_broken = [&](const std::string& sender, const Texts& texts, int exit_code = 3) {
    EXPECT_EQ(shell(sender + to_file), exit_code) << sender;
    EXPECT_TRUE(mentions(text_of("err"), {"itspace: error: ", "standard input"}));
    EXPECT_TRUE(mentions(text_of("err"), texts));
    EXPECT_EQ(files(), (Texts{"err", "map.npz", "x.npy"}));
  };
  expect_broken("true", {"empty"});
  expect_broken("head -c 4 x.npy", {"starts with"});
  expect_broken("head -c 9 x.npy", {"truncated"});
  expect_broken("head -c 60 x.npy", {"truncated", "header"});
  expect_broken("head -c 1000 x.npy", {"truncated", "40 rows", "ended in row 18"});  // 128 + 18 * 48 = 992
  expect_broken("cat map.npz", {"not a NumPy array"});
}

TEST_F(TransformCommand, ARowThatIsNotFiniteLeavesNothing) {
  Matrix samples = gaussian(40, sample_dim, 7);
  samples(17, 3) = std::numeric_limits<double>::quiet_NaN();
  write("nan.npy", samples);
  expect_refused("nan.npy", "y.npy", 2, {"nan.npy: row 17, column 3 is nan", "Remove or replace"});
  samples(17, 3) = -std::numeric_limits<double>::infinity();
  write("inf.npy", samples);
  write_bytes("old.npy", "old");
  expect_refused("inf.npy", "old.npy", 2, {"inf.npy: row 17, column 3 is -inf"});
  EXPECT_EQ(text_of("old.npy"), "old");
  samples(17, 3) = 1e308;
  samples(17, 4) = -1e308;
  samples(17, 5) = 1e308;
  write("huge.npy", samples);
  io::save_map(path("map.npz"), TransportMap({gaussian(sample_dim, 2, 1), gaussian(sample_dim, 1, 2), 1e-3},
                                             {gaussian(sample_dim, 3, 3), gaussian(sample_dim, 1, 4), 1e3}));
  expect_refused("huge.npy", "y.npy", 2, {"huge.npy: row 17 is mapped beyond the largest number"});
  // In a stream the rows of earlier chunks are gone, but never a bad one: here the first chunk is bad.
  EXPECT_EQ(shell("cat nan.npy | itspace transform --map map.npz --in - --out - > piped 2> err"), 2);
  EXPECT_TRUE(mentions(text_of("err"), {"standard input: row 17, column 3 is nan"}));
  EXPECT_LE(text_of("piped").size(), 128u);
}

TEST_F(TransformCommand, AFlippedBitInAnNpzLeavesNothing) {
  const std::vector<io::NamedBlock> one{{"x", gaussian(40, sample_dim, 7)}};
  io::save_npz(path("x.npz"), one);
  std::string bytes = text_of("x.npz");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_bytes("x.npz", bytes);
  expect_refused("x.npz", "y.npy", 3, {"x.npz", "checksum"});
}

TEST_F(TransformCommand, Misuse) {
  write("x.npy", gaussian(40, sample_dim, 7));
  write("wide.npy", gaussian(4, 9, 7));
  expect_refused("wide.npy", "y.npy", 2, {"wide.npy is 4 x 9", "dimension 9", "map.npz has dimension 6"});
  expect_refused("x.npy", "-", 2, {"--json and --out -"}, {"--json"});
  expect_refused("x.npy", "none/y.npy", 3, {"none"});
  expect_refused("none.npy", "y.npy", 3, {"none.npy", "does not exist"});
  expect_refused("map.npz", "y.npy", 3, {"map.npz"});
  const auto refused = run({"transform", "--map", "x.npy", "--in", "x.npy", "--out", "y.npy"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_TRUE(mentions(refused.err, {"x.npy", "no transport map", "itspace.map/2"}));
  EXPECT_EQ(run({"transform", "--in", "x.npy", "--out", "y.npy"}).exit_code, 2);
  EXPECT_FALSE(exists("y.npy"));
}

#ifndef ITSPACE_SANITIZED
// 400 MB of samples, of which the disk holds nothing, with 300 MB for the program's own memory: OpenBLAS takes 128 MB,
// and on some systems more, before the first product.
TEST_F(TransformCommand, AFileLargerThanTheMemoryItMayTake) {
  const Index wide = 1000, rows = 100000;
  io::save_map(path("map.npz"), make_map(wide));
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000, 1000), }";
  head.append(117 - head.size(), ' ');
  std::ofstream(path("x.npy"), std::ios::binary) << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << head << '\n';
  fs::resize_file(path("x.npy"), 128 + static_cast<std::uintmax_t>(wide * rows) * sizeof(float));
  const std::string limited = "export OPENBLAS_NUM_THREADS=1; ulimit -d 300000; ";
  EXPECT_EQ(shell(limited + "itspace transform --map map.npz --in x.npy --out /dev/null --quiet"), 0);
  EXPECT_EQ(shell(limited + "cat x.npy | itspace transform --map map.npz --in - --out - --quiet > /dev/null"), 0);
  fs::remove(path("x.npy"));
}
#endif

}  // namespace
}  // namespace itspace::cli_test
