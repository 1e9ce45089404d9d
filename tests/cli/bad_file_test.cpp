// SPDX-License-Identifier: Apache-2.0
//
// Files that cannot be read or written: exit code 3, a text that names the file, and nothing written.
#include "program.hpp"

#include <cstdint>
#include <limits>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;

std::string npy(const std::string& dictionary, const std::string& values) {
  std::string header = dictionary + "\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + values;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// A zip file with one deflated member that says it grows from a few bytes to almost 4 GiB.
std::string bomb() {
  const std::string name = "sigma.npy";
  const std::string header = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (20000, 20000), }", "");
  const std::uint64_t promised = header.size() + 20000ull * 20000 * 8;
  const std::string data = std::string("\0", 1) + little_endian(header.size(), 2) +
                           little_endian(0xffff - header.size(), 2) + header;  // one stored deflate block, not the last
  const std::string sizes = little_endian(0, 4) + little_endian(data.size(), 4) + little_endian(promised, 4);
  const std::string common = little_endian(20, 2) + little_endian(0, 2) + little_endian(8, 2) + little_endian(0, 4) +
                             sizes + little_endian(name.size(), 2) + little_endian(0, 2);
  const std::string local = "PK\x03\x04" + common + name + data;
  const std::string entry = "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 2) + little_endian(0, 2) +
                            little_endian(0, 2) + little_endian(0, 4) + little_endian(0, 4) + name;
  return local + entry + "PK\x05\x06" + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(entry.size(), 4) + little_endian(local.size(), 4) + little_endian(0, 2);
}

class BadFile : public ProgramTest {
 protected:
  BadFile() { write("target.npy", power_law(5, 1)); }

  void expect_unreadable(const std::string& name, const Texts& texts) {
    const auto before = files();
    for (const Texts& arguments :
         {Texts{"align", "--target", name, "--rank", "2", "--out", "Y.npy", "--trace", "T.json"},
          Texts{"align", "--target", "target.npy", "--start", name, "--rank", "2", "--out", "Y.npy"},
          Texts{"distance", "target.npy", name}, Texts{"verify", name, "--target", "target.npy"},
          Texts{"info", name}}) {
      const auto failed = run(arguments);
      EXPECT_EQ(failed.exit_code, 3) << arguments[0] << ": " << failed.err;
      EXPECT_TRUE(mentions(failed.err, {"itspace: error: ", name}));
      EXPECT_TRUE(mentions(failed.err, texts));
      EXPECT_EQ(files(), before);
    }
  }

  void expect_unwritable(const Texts& outputs, const Texts& texts) {
    const auto before = files();
    Texts arguments{"align", "--target", "target.npy", "--rank", "2"};
    arguments.insert(arguments.end(), outputs.begin(), outputs.end());
    const auto failed = run(arguments);
    EXPECT_EQ(failed.exit_code, 3) << failed.err;
    EXPECT_EQ(failed.out, "");
    EXPECT_TRUE(mentions(failed.err, {"itspace: error: "}));
    EXPECT_TRUE(mentions(failed.err, texts));
    EXPECT_EQ(files(), before);
  }
};

TEST_F(BadFile, Missing) {
  expect_unreadable("missing.npy", {});
}

TEST_F(BadFile, Folder) {
  fs::create_directory(path("folder"));
  expect_unreadable("folder", {"folder"});
}

TEST_F(BadFile, Empty) {
  write_bytes("empty.npy", "");
  expect_unreadable("empty.npy", {"empty"});
}

TEST_F(BadFile, Truncated) {
  const std::string whole = text_of("target.npy");
  write_bytes("truncated.npy", whole.substr(0, whole.size() - 1));
  expect_unreadable("truncated.npy", {"200", "199", "truncated"});
  write_bytes("stub.npy", whole.substr(0, 20));
  expect_unreadable("stub.npy", {"truncated"});
}

TEST_F(BadFile, HeaderThatPromisesMoreThanTheFileHolds) {
  write_bytes("promise.npy",
              npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }", std::string(64, '\0')));
  expect_unreadable("promise.npy", {"8000000000000", "64"});
}

TEST_F(BadFile, UnknownType) {
  write_bytes("complex.npy",
              npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1, 1), }", std::string(16, '\0')));
  expect_unreadable("complex.npy", {"c16"});
  write_bytes("object.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }", std::string(16, '\0')));
  expect_unreadable("object.npy", {});
  write_bytes("picture.npy", "\x89PNG\r\n\x1a\n and so on");
  expect_unreadable("picture.npy", {"neither"});
}

TEST_F(BadFile, ValuesBeyondTheAskedPrecision) {
  write("large.npy", Matrix(1e60 * power_law(5, 1)));
  const auto failed =
      run({"align", "--target", "large.npy", "--rank", "2", "--precision", "float32", "--out", "Y.npy"});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_TRUE(mentions(failed.err, {"large.npy", "float32", "3.4028", "float64"}));
  EXPECT_FALSE(exists("Y.npy"));
  EXPECT_EQ(run({"align", "--target", "large.npy", "--rank", "2", "--out", "Y.npy"}).exit_code, 0);
}

TEST_F(BadFile, Bomb) {
  write_bytes("bomb.npz", bomb());
  expect_unreadable("bomb.npz", {});
}

TEST_F(BadFile, KeysAreListed) {
  const std::vector<io::NamedBlock> arrays{{"train", gaussian(9, 5, 6), false}, {"test", gaussian(9, 5, 7), false}};
  io::save_npz(path("sets.npz"), arrays);
  expect_unreadable("sets.npz", {"train", "test"});
  const auto failed = run({"align", "--target", "sets.npz", "--target-key", "val", "--rank", "2", "--out", "Y.npy"});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_TRUE(mentions(failed.err, {"val", "train", "test"}));
}

TEST_F(BadFile, UnwritableOutput) {
  expect_unwritable({"--out", "nowhere/Y.npy"}, {"nowhere"});
  expect_unwritable({"--out", "Y.npy", "--trace", "nowhere/T.json"}, {"nowhere"});
  expect_unwritable({"--out", "Y.npy", "--iterates", "nowhere/steps"}, {"nowhere"});
  fs::create_directory(path("folder"));
  expect_unwritable({"--out", "folder"}, {"folder"});
  expect_unwritable({"--out", "Y.npy", "--iterates", "target.npy"}, {"target.npy", "not a folder"});
}

TEST_F(BadFile, OutputsAreAskedBeforeTheWork) {
  write("indefinite.npy", diagonal({1, -1}));  // would be refused with 2, later
  EXPECT_EQ(run({"align", "--target", "indefinite.npy", "--rank", "1", "--out", "nowhere/Y.npy"}).exit_code, 3);
}

TEST_F(BadFile, TraceThatIsNone) {
  write("Y.npy", gaussian(5, 2, 3));
  for (const std::string text :
       {"", "{", "[]", "{\"schema\": \"itspace.trace/9\"}", "{\"schema\": \"itspace.trace/1\"}"}) {
    write_bytes("T.json", text);
    const auto failed = run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"});
    EXPECT_EQ(failed.exit_code, 3) << text << failed.err;
    EXPECT_TRUE(mentions(failed.err, {"itspace: error: ", "T.json"}));
  }
}

}  // namespace
}  // namespace itspace::cli_test
