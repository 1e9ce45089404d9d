// SPDX-License-Identifier: Apache-2.0
//
// Converting between number types, byte orders and storage orders.
#include "convert.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "error.hpp"

namespace itspace::io {
namespace {

struct Half {
  std::uint16_t bits;
};
struct Boolean {
  std::uint8_t bits;  // not bool: a damaged file may hold 2
};

float number(Half value) {
  return half_to_float(value.bits);
}
int number(Boolean value) {
  return value.bits != 0 ? 1 : 0;
}
template <class Number>
requires std::is_arithmetic_v<Number> Number number(Number value) {
  return value;
}

template <std::size_t bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = std::uint8_t;
  static type swapped(type bits) { return bits; }
};
template <>
struct BitsOf<2> {
  using type = std::uint16_t;
  static type swapped(type bits) { return __builtin_bswap16(bits); }
};
template <>
struct BitsOf<4> {
  using type = std::uint32_t;
  static type swapped(type bits) { return __builtin_bswap32(bits); }
};
template <>
struct BitsOf<8> {
  using type = std::uint64_t;
  static type swapped(type bits) { return __builtin_bswap64(bits); }
};

template <class Raw, bool swap_bytes>
Raw load(const std::byte* at) {
  using Bits = BitsOf<sizeof(Raw)>;
  typename Bits::type bits;
  std::memcpy(&bits, at, sizeof bits);
  return std::bit_cast<Raw>(swap_bytes ? Bits::swapped(bits) : bits);
}

[[noreturn]] void refuse_overflow(double value, Index row, Index col, const Layout& layout, std::string_view where) {
  const Index cols = layout.cols_of_whole > 0 ? layout.cols_of_whole : layout.cols;
  const std::string place = cols == 1 ? fmt::format("[{}]", row) : fmt::format("[{}, {}]", row, col);
  fail("{}: value {} at {} is beyond float32 (largest {}); use --precision float64, or rescale the data", where, value,
       place, std::numeric_limits<float>::max());
}

template <class Raw, bool swap_bytes, Storage Scalar>
void fill(Block<Scalar>& out, const std::byte* values, const Layout& layout, std::string_view where) {
  // Tiles keep both sides of a transposition in cache; without one, a tile is a run of whole rows.
  const Index tile_rows = 64;
  const Index tile_cols = layout.column_major ? 64 : layout.cols;
  const Index row_step = layout.column_major ? 1 : layout.cols;
  const Index column_step = layout.column_step > 0 ? layout.column_step : layout.rows;
  const Index col_step = layout.column_major ? column_step : 1;
  for (Index i0 = 0; i0 < layout.rows; i0 += tile_rows) {
    const Index i1 = std::min(i0 + tile_rows, layout.rows);
    for (Index j0 = 0; j0 < layout.cols; j0 += tile_cols) {
      const Index j1 = std::min(j0 + tile_cols, layout.cols);
      for (Index i = i0; i < i1; ++i) {
        for (Index j = j0; j < j1; ++j) {
          const auto offset = static_cast<std::size_t>(i * row_step + j * col_step) * sizeof(Raw);
          const auto value = number(load<Raw, swap_bytes>(values + offset));
          if constexpr (std::is_same_v<Raw, double> && std::is_same_v<Scalar, float>) {
            // Narrowing a double that float cannot hold is undefined in C++, so it is asked before. The bound is the
            // first value that rounds up to infinity: halfway between the largest float and 2^128.
            constexpr double first_infinite = 0x1.ffffffp127;
            if (std::isfinite(value) && std::abs(value) >= first_infinite) {
              refuse_overflow(value, layout.first_row + i, layout.first_col + j, layout, where);
            }
          }
          out(i, j) = static_cast<Scalar>(value);
        }
      }
    }
  }
}

template <class Raw, Storage Scalar>
void fill(Block<Scalar>& out, const std::byte* values, const Layout& layout, std::string_view where) {
  if (layout.swap_bytes) {
    fill<Raw, true>(out, values, layout, where);
  } else {
    fill<Raw, false>(out, values, layout, where);
  }
}

}  // namespace

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24, exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13U));
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23U) | (fraction << 13U));
}

Layout layout_of(ElementType type, bool big_endian, Index rows, Index cols) {
  Layout layout;
  layout.type = type;
  layout.swap_bytes = size_in_bytes(type) > 1 && big_endian != (std::endian::native == std::endian::big);
  layout.rows = rows;
  layout.cols = cols;
  return layout;
}

template <Storage Scalar>
Block<Scalar> convert(const std::byte* values, const Layout& layout, std::string_view where) {
  Block<Scalar> out(layout.rows, layout.cols);
  if (out.size() == 0) {
    return out;  // the other length may be anything: do not loop over it
  }
  switch (layout.type) {
    case ElementType::float16:
      fill<Half>(out, values, layout, where);
      break;
    case ElementType::float32:
      fill<float>(out, values, layout, where);
      break;
    case ElementType::float64:
      fill<double>(out, values, layout, where);
      break;
    case ElementType::int8:
      fill<std::int8_t>(out, values, layout, where);
      break;
    case ElementType::int16:
      fill<std::int16_t>(out, values, layout, where);
      break;
    case ElementType::int32:
      fill<std::int32_t>(out, values, layout, where);
      break;
    case ElementType::int64:
      fill<std::int64_t>(out, values, layout, where);
      break;
    case ElementType::uint8:
      fill<std::uint8_t>(out, values, layout, where);
      break;
    case ElementType::uint16:
      fill<std::uint16_t>(out, values, layout, where);
      break;
    case ElementType::uint32:
      fill<std::uint32_t>(out, values, layout, where);
      break;
    case ElementType::uint64:
      fill<std::uint64_t>(out, values, layout, where);
      break;
    case ElementType::boolean:
      fill<Boolean>(out, values, layout, where);
      break;
  }
  return out;
}

template Block<float> convert<float>(const std::byte*, const Layout&, std::string_view);
template Block<double> convert<double>(const std::byte*, const Layout&, std::string_view);

}  // namespace itspace::io
