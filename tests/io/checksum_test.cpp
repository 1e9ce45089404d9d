// SPDX-License-Identifier: Apache-2.0
//
// The checksum that ties a trace to its factor, against FNV-1a written from its definition.
#include <gtest/gtest.h>

#include <itspace/io.hpp>
#include <itspace/random.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::Folder;

std::string fnv(const std::string& bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211U;
  }
  char text[32];
  std::snprintf(text, sizeof text, "fnv1a64:%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST(Checksum, IsTheHashOfTypeShapeAndValues) {
  EXPECT_EQ(fnv(""), "fnv1a64:cbf29ce484222325");  // the published vectors
  EXPECT_EQ(fnv("a"), "fnv1a64:af63dc4c8601ec8c");
  const Block<double> block{{1, 2, 3}, {4, 5, 6}};
  std::string bytes = "float64 2x3\n", bytes32 = "float32 2x3\n";
  for (int i = 1; i <= 6; ++i) {
    bytes += fixtures::raw(double(i), false);
    bytes32 += fixtures::raw(float(i), false);
  }
  EXPECT_EQ(io::checksum_of<double>(block), fnv(bytes));
  EXPECT_EQ(io::checksum_of<float>(Block<float>(block.cast<float>())), fnv(bytes32));
  // Part of a wider block: the stride is no value.
  Block<double> wide(2, 5);
  wide.setConstant(7);
  wide.leftCols(3) = block;
  EXPECT_EQ(io::checksum_of<double>(wide.leftCols(3)), fnv(bytes));
}

TEST(Checksum, OfAFileIsThatOfItsValues) {
  const Folder folder;
  Block<double> block(7, 3);
  Random(1).fill_normal<double>(block);
  io::save_npy<double>(folder / "c.npy", block);
  io::save_npy<float>(folder / "f.npy", Block<float>(block.cast<float>()));
  std::string fortran, big;
  for (Index j = 0; j < 3; ++j) {
    for (Index i = 0; i < 7; ++i) {
      fortran += fixtures::raw(block(i, j), false);
    }
  }
  for (Index i = 0; i < 21; ++i) {
    big += fixtures::raw(block.data()[i], true);
  }
  folder.write("fortran.npy", fixtures::npy_of("<f8", "(7, 3)", fortran, true));
  folder.write("big.npy", fixtures::npy_of(">f8", "(7, 3)", big));
  const std::string expected = io::checksum_of<double>(block);
  for (const char* name : {"c.npy", "fortran.npy", "big.npy"}) {
    EXPECT_EQ(io::checksum_of(io::open_array(folder / name)), expected) << name;
  }
  EXPECT_NE(io::checksum_of(io::open_array(folder / "f.npy")), expected);
}

TEST(Checksum, ComesBackWithTheTrace) {
  Trace trace;
  trace.factor_checksum = "fnv1a64:0123456789abcdef";
  EXPECT_EQ(io::trace_from_json(io::to_json(trace)).factor_checksum, trace.factor_checksum);
  trace.factor_checksum.clear();
  EXPECT_NE(io::to_json(trace).find("\"factor_checksum\": null"), std::string::npos);
  EXPECT_EQ(io::trace_from_json(io::to_json(trace)).factor_checksum, "");
}

}  // namespace
