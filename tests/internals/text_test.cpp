// SPDX-License-Identifier: Apache-2.0
//
// Error texts say what a stream in the C locale would have said.
#include "core/require.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <locale>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

namespace itspace {
namespace {

template <class Part>
std::string streamed(const Part& part) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  stream << part;
  return stream.str();
}

template <class Scalar, class Bits>
void expect_same_for_any_bits() {
  std::mt19937_64 draw(1);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<Scalar>(static_cast<Bits>(draw()));
    if (!std::isnan(value)) {
      ASSERT_EQ(text(value), streamed(value));
    }
  }
}

TEST(Text, NumbersOfEverySizeAsByAStream) {
  expect_same_for_any_bits<double, std::uint64_t>();
  expect_same_for_any_bits<float, std::uint32_t>();
  using Limits = std::numeric_limits<double>;
  for (const double value : {Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(), Limits::infinity(),
                             -Limits::infinity(), 0.0, -0.0})
    EXPECT_EQ(text(value), streamed(value));
}

TEST(Text, NumbersNearOneAsByAStream) {
  std::mt19937_64 draw(2);
  std::uniform_real_distribution<double> exponent(-9, 9);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::pow(10, exponent(draw));
    ASSERT_EQ(text(value), streamed(value));
    ASSERT_EQ(text(std::round(value)), streamed(std::round(value)));
  }
}

TEST(Text, TheFormsOfANumber) {
  EXPECT_EQ(text(0.5), "0.5");
  EXPECT_EQ(text(2.0), "2");
  EXPECT_EQ(text(1e-7), "1e-07");
  EXPECT_EQ(text(1.0 / 3), "0.333333");
  EXPECT_EQ(text(123456.0), "123456");
  EXPECT_EQ(text(1234567.0), "1.23457e+06");
  EXPECT_EQ(text(-1e300), "-1e+300");
}

TEST(Text, WhatIsNoNumberIsNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text(nan, ' ', -nan, ' ', float(nan)), "nan nan nan");
  EXPECT_EQ(text(inf, ' ', -inf), "inf -inf");
}

TEST(Text, IntegersOfEveryTypeWhole) {
  const auto expect_ends = [](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    for (const auto value : {Limits::min(), zero, Limits::max()}) EXPECT_EQ(text(value), streamed(value));
  };
  expect_ends(short(0));
  expect_ends(0);
  expect_ends(0U);
  expect_ends(0L);
  expect_ends(std::size_t(0));
}

TEST(Text, WordsOneAfterTheOther) {
  const std::string owned = "owned";
  const char* pointer = "pointer";
  EXPECT_EQ(text("literal", ' ', owned, ' ', std::string_view("view"), ' ', pointer, ' ', true, false),
            "literal owned view pointer 10");
  EXPECT_EQ(text(), "");
}

}  // namespace
}  // namespace itspace
