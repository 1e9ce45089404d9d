// SPDX-License-Identifier: Apache-2.0
//
// Paths and .npy files that cannot be read: each is refused with a message that helps.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::npy;
using fixtures::npy_f8;
using fixtures::npy_of;

void expect_npy_refused(std::string_view bytes, std::initializer_list<std::string_view> parts) {
  const Folder folder;
  const auto path = folder.write("bad.npy", bytes);
  expect_refused([&] { io::open_array(path); }, parts);
  expect_refused([&] { io::open_array(path); }, {"bad.npy"});
}

TEST(BadPath, IsNamed) {
  const Folder folder;
  expect_refused([&] { io::open_array(folder / "none.npy"); }, {"none.npy", "does not exist"});
  expect_refused([&] { io::array_keys(folder / "none.npy"); }, {"none.npy", "does not exist"});
  expect_refused([&] { io::load_trace(folder / "none.json"); }, {"none.json", "does not exist"});
  expect_refused([&] { io::open_array(folder.path()); }, {"is a folder"});
  expect_refused([&] { io::open_array(folder.write("empty.npy", "")); }, {"empty.npy", "is empty"});
  expect_refused([&] { io::open_array(folder.write("a.npy", npy_f8("()", {1})) / "b"); }, {"does not exist"});
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused([&] { io::open_array(pipe); }, {"pipe", "not a regular file"});
}

TEST(BadNpy, ForeignContentIsShown) {
  expect_npy_refused("1.0,2.0\n3.0,4.0\n", {"neither .npy nor .npz", "'1.0,2.0\\x0a3.0,4.0\\x0a'", "numpy.save"});
  expect_npy_refused("\x89HDF\r\n\x1a\n and more of it", {"'\\x89HDF\\x0d\\x0a\\x1a\\x0a and mor'"});
  expect_npy_refused("x", {"'x'"});
  expect_npy_refused("\x93NUMP", {"neither"});
  const Folder folder;
  expect_refused([&] { io::array_keys(folder.write("a.csv", "1,2")); }, {"a.csv", "neither"});
}

TEST(BadNpy, TruncatedFilesGiveBothCounts) {
  const std::string whole = npy_f8("(3, 4)", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_npy_refused(whole.substr(0, whole.size() - 1), {"96 bytes", "(3, 4)", "float64", "holds 95", "truncated"});
  expect_npy_refused(whole.substr(0, 128), {"96 bytes", "holds 0"});
  expect_npy_refused(whole.substr(0, 100), {"truncated", "128 bytes", "holds 100"});
  expect_npy_refused(whole.substr(0, 9), {"truncated", "9 bytes"});
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const Folder folder;
    expect_refused([&] { io::open_array(folder.write("a.npy", whole.substr(0, length))); }, {"a.npy"});
  }
}

TEST(BadNpy, HugePromisesAreRefusedBeforeAnythingIsAllocated) {
  expect_npy_refused(npy_of("<f8", "(1000000, 1000000)", "12345678"), {"8000000000000 bytes", "holds 8"});
  expect_npy_refused(npy_of("<f8", "(4294967296, 4294967296)", ""), {"(4294967296, 4294967296)", "2^63-1"});
  expect_npy_refused(npy_of("<f8", "(1152921504606846976,)", ""), {"2^63-1"});
  expect_npy_refused(npy_of("|u1", "(9223372036854775807,)", ""), {"9223372036854775807 bytes"});
  expect_npy_refused(npy_of("|u1", "(9223372036854775808,)", ""), {"2^63-1"});
  expect_npy_refused(npy_of("|u1", "(99999999999999999999999,)", ""), {"damaged"});
  expect_npy_refused(npy_of("<f8", "(3037000500, 3037000500)", ""), {"2^63-1"});
}

TEST(BadNpy, AnArrayThatMemoryCannotHoldIsNotConverted) {
  // A sparse file of 2^43 bytes: it can be mapped, but not copied.
  const Folder folder;
  const std::string header = npy_of("|u1", "(8796093022208,)", "");
  const auto path = folder.write("sparse.npy", header);
  if (::truncate(path.c_str(), static_cast<off_t>(header.size()) + 8796093022208) != 0) {
    GTEST_SKIP() << "this file system has no sparse files of 8 TiB";
  }
  io::Array array;
  try {
    array = io::open_array(path);
  } catch (const std::runtime_error&) {
    GTEST_SKIP() << "8 TiB cannot be mapped here";
  }
  expect_refused([&] { array.as<double>(); }, {"sparse.npy", "70368744177664 bytes", "this machine has"});
}

TEST(BadNpy, DimensionsOtherThanTwoAreRefused) {
  expect_npy_refused(npy_of("<f8", "(2, 3, 4)", std::string(192, '\0')), {"3 dimensions", "(2, 3, 4)", "reshape"});
  expect_npy_refused(npy_of("<f8", "(1, 1, 1, 1)", "12345678"), {"4 dimensions"});
  // Leading zeros are none of Python's numbers, but 00 is 0.
  for (const char* shape : {"(8, 03)", "(03,)", "(010, 1)", "(1, 00003)"}) {
    expect_npy_refused(npy_of("<f8", shape, std::string(192, '\0')), {"leading zero", "damaged"});
  }
  EXPECT_EQ(io::open_array(fixtures::Folder().write("a.npy", npy_of("<f8", "(00, 3)", ""))).rows(), 0);
  for (const char* shape : {"(-1,)", "(2)", "2", "[2, 3]", "(2, 'x')", "(2.0,)", "(,)", "(2 3)", "None", "(2, (3,))"}) {
    expect_npy_refused(npy_of("<f8", shape, std::string(64, '\0')), {"damaged"});
  }
}

TEST(BadNpy, TypesThatAreNotRealNumbersAreNamed) {
  const std::string values(64, '\0');
  expect_npy_refused(npy_of("|O", "(2,)", values), {"Python objects", "'|O'", "astype"});
  expect_npy_refused(npy_of("<c8", "(2,)", values), {"complex"});
  expect_npy_refused(npy_of("<c16", "(2,)", values), {"complex", "'<c16'"});
  expect_npy_refused(npy_of("<U5", "(2,)", values), {"strings"});
  expect_npy_refused(npy_of("|S5", "(2,)", values), {"strings"});
  expect_npy_refused(npy_of("<M8[ns]", "(2,)", values), {"dates"});
  expect_npy_refused(npy_of("<V2", "(2,)", values), {"records"});
  expect_npy_refused(npy_of("<f16", "(2,)", values), {"'<f16'", "float16/32/64"});
  expect_npy_refused(npy_of("<f3", "(2,)", values), {"'<f3'"});
  expect_npy_refused(npy_of("", "(2,)", values), {"unknown type"});
  expect_npy_refused(npy_of("<x4", "(2,)", values), {"unknown type"});
  expect_npy_refused(npy("{'descr': [('x', '<f8'), ('y', '<f4')], 'fortran_order': False, 'shape': (2,), }", values),
                     {"structured type", "('x', '<f8')"});
  expect_npy_refused(npy("{'descr': True, 'fortran_order': False, 'shape': (2,), }", values), {"'descr'"});
}

TEST(BadNpy, DamagedHeadersAreRefused) {
  const std::string values(64, '\0');
  for (const char* text : {
           "",
           "{",
           "}",
           "{}",
           "not a dictionary",
           "{'descr': '<f8'}",
           "{'descr': '<f8', 'fortran_order': False}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (2,",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)} x",
           "{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}",
           "{'descr': '<f8', 'fortran_order': 'True', 'shape': (2,)}",
           "{'descr': '<f8, 'fortran_order': False, 'shape': (2,)}",
           "{'descr' '<f8', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f8' 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'other': True}",
           "{'descr': [[[[[[[[, 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f8",
       }) {
    SCOPED_TRACE(text);
    expect_npy_refused(npy(text, values), {"header", "damaged"});
  }
  std::string version = npy_f8("()", {1});
  version[6] = 9;
  expect_npy_refused(version, {"version 9.0"});
  version[6] = 1;
  version[7] = 5;
  expect_npy_refused(version, {"version 1.5"});
  std::string long_header = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "12345678", 2);
  long_header[11] = '\x7f';
  expect_npy_refused(long_header, {"header of", "limit is 65536"});
  expect_npy_refused(npy("", "", 1, false) + "1234", {"too short"});
}

TEST(BadNpy, AKeyIsRefused) {
  const Folder folder;
  expect_refused([&] { io::open_array(folder.write("a.npy", npy_f8("()", {1})), "sigma"); },
                 {"a.npy", "no key 'sigma'"});
}

}  // namespace
