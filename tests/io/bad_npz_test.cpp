// SPDX-License-Identifier: Apache-2.0
//
// Zip files that are damaged, hostile or foreign.
#include <gtest/gtest.h>

#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::Member;
using fixtures::npy_f8;
using fixtures::npy_of;
using fixtures::zip;

const std::string content = npy_f8("(2, 2)", {1, 2, 3, 4});

void expect_npz_refused(std::string_view bytes, std::initializer_list<std::string_view> parts,
                        std::string_view key = {}) {
  const Folder folder;
  const auto path = folder.write("bad.npz", bytes);
  expect_refused([&] { io::open_array(path, key); }, parts);
  expect_refused([&] { io::open_array(path, key); }, {"bad.npz"});
}

Member deflated(std::string_view bytes) {
  Member member;
  member.name = "sigma.npy";
  member.content = bytes;
  member.deflated = true;
  return member;
}

TEST(BadNpz, UnknownKeysAreAnsweredWithTheList) {
  const std::string two = zip({{"mu.npy", content}, {"cov.npy", content}});
  expect_npz_refused(two, {"no array named 'sigma'", "'mu', 'cov'"}, "sigma");
  expect_npz_refused(two, {"2 arrays", "none is named 'sigma'", "'mu', 'cov'"});
  expect_npz_refused(zip({{"x.npy", content}}), {"no array named 'y'", "'x'"}, "y");
  expect_npz_refused(zip({}), {"without NumPy arrays"});
  expect_npz_refused(zip({{"data.pkl", "abc"}}), {"without NumPy arrays"});
  expect_npz_refused(zip({{"sigma.npy", content}, {"sigma.npy", content}}), {"several arrays named 'sigma'"});
  std::vector<Member> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back({"k" + std::to_string(i) + ".npy", content});
  }
  expect_npz_refused(zip(many), {"100 arrays", "'k19', ..."});
}

TEST(BadNpz, EncryptionAndOtherMethodsAreNamed) {
  Member member = deflated(content);
  member.flags = 1;
  expect_npz_refused(zip({member}), {"'sigma'", "encrypted"});
  member.flags = 0;
  for (const auto& [method, name] :
       {std::pair{12, "bzip2"}, {14, "LZMA"}, {93, "zstd"}, {9, "deflate64"}, {77, "unknown"}}) {
    member.method = method;
    expect_npz_refused(zip({member}), {"'sigma'", name, "numpy.savez"});
  }
}

TEST(BadNpz, EveryTruncationIsRefused) {
  for (const bool is_deflated : {false, true}) {
    const std::string whole = zip({{"sigma.npy", content, is_deflated}});
    for (std::size_t length = 1; length < whole.size(); ++length) {
      expect_npz_refused(whole.substr(0, length), {length < 4 ? "neither" : "truncated"});
    }
  }
}

TEST(BadNpz, MembersThatAreNotArraysAreRefused) {
  for (const bool is_deflated : {false, true}) {
    expect_npz_refused(zip({{"x.npy", "hello, I am some text", is_deflated}}),
                       {"'x'", "not a NumPy array", "'hello, I'"});
    expect_npz_refused(zip({{"x.npy", "hello", is_deflated}}), {"'x'"});
    expect_npz_refused(zip({{"x.npy", "", is_deflated}}), {"'x'"});
    expect_npz_refused(zip({{"x.npy", content.substr(0, 100), is_deflated}}), {"'x'"});
    expect_npz_refused(zip({{"x.npy", content.substr(0, 140), is_deflated}}), {"'x'", "160 bytes", "says 140"});
    expect_npz_refused(zip({{"x.npy", content + "more", is_deflated}}), {"'x'", "160 bytes", "says 164"});
    expect_npz_refused(zip({{"x.npy", npy_of("|O", "(2,)", "12"), is_deflated}}), {"'x'", "Python objects"});
  }
}

TEST(BadNpz, ABombIsRefusedBeforeItIsInflated) {
  // Directory and header agree on 80 GB; the compressed bytes cannot hold them.
  Member member = deflated(npy_of("<f8", "(100000, 100000)", ""));
  member.claimed_size = 80000000128;
  member.zip64 = true;
  expect_npz_refused(zip({member}), {"promises 80000000128 bytes", "deflate can give at most"});
  // The directory promises little, the header much.
  member.claimed_size = 128;
  member.zip64 = false;
  expect_npz_refused(zip({member}), {"80000000128 bytes", "says 128"});
  // Header and directory agree on little, the data go on.
  member = deflated(npy_f8("(2,)", {1, 2}) + std::string(1 << 20, '\0'));
  member.claimed_size = 144;
  expect_npz_refused(zip({member}), {"go on after the 144 bytes"});
  // They agree on much, the data end early, though the ratio would allow it.
  member = deflated(npy_of("<f8", "(1000,)", "12345678"));
  member.claimed_size = 8128;
  expect_npz_refused(zip({member}), {"end after 136 bytes", "7992 more"});
}

TEST(BadNpz, MuchCompressedHonestDataAreRead) {
  const Folder folder;
  const std::string zeros = npy_of("<f8", "(1024, 1024)", std::string(8 << 20, '\0'));
  const auto array = io::open_array(folder.write("a.npz", zip({deflated(zeros)})));
  EXPECT_EQ(array.as<double>().view().sum(), 0);
}

TEST(BadNpz, DamagedDataAreFound) {
  Member member = deflated(content);
  member.claimed_crc = 0x12345678;
  expect_npz_refused(zip({member}), {"checksum", "12345678"});
  std::string bytes = zip({deflated(content)});
  bytes[30 + 9] = '\x07';  // the first deflate block: reserved type
  expect_npz_refused(bytes, {"compressed data are damaged"});
}

// CRC-32 finds every error of one bit, wherever it is, stored or deflated: what is loaded is what was saved.
TEST(BadNpz, NoFlippedBitIsLoaded) {
  const Folder folder;
  const Block<double> expected = io::open_array(folder.write("good.npy", content)).as<double>().view();
  for (const bool is_deflated : {false, true}) {
    const std::string whole = zip({{"sigma.npy", content, is_deflated}});
    int refused = 0;
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      const auto path = folder.write("flipped.npz", bytes);
      try {
        EXPECT_EQ(io::open_array(path).as<double>().view(), expected) << "bit " << bit;  // dates, versions
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, static_cast<int>(8 * (is_deflated ? 20 : content.size())));
  }
}

TEST(BadNpz, WrongOffsetsAndCountsAreRefused) {
  Member member = deflated(content);
  member.claimed_offset = 1000000;
  expect_npz_refused(zip({member}), {"no member at byte 1000000"});
  member.zip64 = true;
  member.claimed_offset = INT64_MAX;
  expect_npz_refused(zip({member}), {"no member at byte"});
  member.claimed_offset = 5;
  expect_npz_refused(zip({member}), {"no member at byte 5"});

  const std::string whole = zip({deflated(content)});
  std::string bytes = whole;
  bytes[bytes.size() - 12] = '\x09';  // number of members
  expect_npz_refused(bytes, {"9 members are claimed"});
  bytes = whole;
  bytes[bytes.size() - 3] = '\x7f';  // offset of the directory
  expect_npz_refused(bytes, {"directory should be"});
  std::string end64 = zip({deflated(content)}, true);
  end64[end64.size() - 22 - 20 + 8 + 7] = '\x7f';  // offset of the zip64 record
  expect_npz_refused(end64, {"zip64 end record is missing"});
}

}  // namespace
