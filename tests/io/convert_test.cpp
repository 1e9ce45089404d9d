// SPDX-License-Identifier: Apache-2.0
//
// Numbers that are hard to convert: every float16, the edges of float32, large integers, large transposed arrays.
#include <gtest/gtest.h>

#include <cmath>
#include <itspace/io.hpp>
#include <limits>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::npy_of;
using fixtures::raw;

TEST(Convert, EveryFloat16) {
  std::string values;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    values += raw(static_cast<std::uint16_t>(bits), false);
  }
  const Folder folder;
  const auto held = io::open_array(folder.write("a.npy", npy_of("<f2", "(65536,)", values))).as<double>();
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 0x1f);
    const int fraction = static_cast<int>(bits & 0x3ff);
    const double sign = bits >> 15 != 0 ? -1 : 1;
    const double value = held.view()(bits, 0);
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    // 1.f * 2^(e-15), and 0.f * 2^-14 where e = 0.
    const double expected = exponent == 31  ? std::numeric_limits<double>::infinity()
                            : exponent == 0 ? std::ldexp(fraction, -24)
                                            : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(value, sign * expected) << bits;
    ASSERT_EQ(std::signbit(value), sign < 0) << bits;
  }
}

TEST(Convert, Float64BeyondFloat32IsRefusedWithItsPlace) {
  const Folder folder;
  const double largest = std::numeric_limits<float>::max();
  const double last_finite = std::nextafter(0x1.ffffffp127, 0.0);  // still rounds down to the largest float
  const auto matrix = [&](double value) {
    return io::open_array(folder.write(
        "a.npy",
        npy_of("<f8", "(2, 2)", raw(1.0, false) + raw(largest, false) + raw(value, false) + raw(last_finite, false))));
  };
  expect_refused([&] { matrix(-1e39).as<float>(); }, {"a.npy", "-1e+39", "[1, 0]", "float32", "--precision float64"});
  expect_refused([&] { matrix(0x1.ffffffp127).as<float>(); }, {"[1, 0]"});
  EXPECT_EQ(matrix(-1e39).as<double>().view()(1, 0), -1e39);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto array = matrix(-infinity);
  const auto held = array.as<float>();
  EXPECT_EQ(held.view()(0, 1), std::numeric_limits<float>::max());
  EXPECT_EQ(held.view()(1, 0), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(held.view()(1, 1), std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isnan(matrix(not_a_number).as<float>().view()(1, 0)));
  const auto vector = io::open_array(folder.write("v.npy", npy_of("<f8", "(2,)", raw(0.0, false) + raw(1e300, false))));
  expect_refused([&] { vector.as<float>(); }, {"v.npy", "1e+300", "at [1] "});
}

TEST(Convert, IntegersRoundToTheNearest) {
  const Folder folder;
  const std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const auto array = io::open_array(folder.write(
      "a.npy", npy_of("<i8", "(3,)", raw(smallest, false) + raw(odd, false) + raw(std::int64_t{-1}, false))));
  EXPECT_EQ(array.as<double>().view()(0, 0), -0x1p63);
  EXPECT_EQ(array.as<double>().view()(1, 0), 0x1p53);
  EXPECT_EQ(array.as<float>().view()(2, 0), -1.0F);
  const auto large =
      io::open_array(folder.write("b.npy", npy_of(">u8", "()", raw(std::numeric_limits<std::uint64_t>::max(), true))));
  EXPECT_EQ(large.as<float>().view()(0, 0), 0x1p64F);
}

TEST(Convert, AnyNonZeroByteIsTrue) {
  const Folder folder;
  const auto array = io::open_array(folder.write("a.npy", npy_of("|b1", "(3,)", std::string("\x00\x01\xff", 3))));
  EXPECT_EQ(array.as<float>().view()(0, 0), 0);
  EXPECT_EQ(array.as<float>().view()(1, 0), 1);
  EXPECT_EQ(array.as<float>().view()(2, 0), 1);
}

TEST(Convert, LargeTransposedArraysAreTiledRight) {
  const Folder folder;
  for (const auto& [rows, cols] : {std::pair{200, 131}, {64, 64}, {65, 63}, {1, 300}, {300, 1}, {129, 2}}) {
    std::string c_order;
    std::string f_order;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < cols; ++j) {
        c_order += raw(static_cast<float>(1000 * i + j), true);
      }
    }
    for (int j = 0; j < cols; ++j) {
      for (int i = 0; i < rows; ++i) {
        f_order += raw(static_cast<float>(1000 * i + j), false);
      }
    }
    const std::string shape = "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
    const auto c = io::open_array(folder.write("c.npy", npy_of(">f4", shape, c_order))).as<double>();
    const auto f_array = io::open_array(folder.write("f.npy", npy_of("<f4", shape, f_order, true)));
    const auto f = f_array.as<float>();
    EXPECT_EQ(f_array.is_borrowed<float>(), rows == 1 || cols == 1);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < cols; ++j) {
        ASSERT_EQ(c.view()(i, j), 1000 * i + j);
        ASSERT_EQ(f.view()(i, j), static_cast<float>(1000 * i + j));
      }
    }
  }
}

}  // namespace
