// SPDX-License-Identifier: Apache-2.0
//
// The header that NumPy would write, and values as the bytes behind it.
#pragma once

#include <itspace/block.hpp>

#include <bit>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace itspace::io {

inline constexpr char native_order = std::endian::native == std::endian::big ? '>' : '<';

// Version 1.0, padded with spaces so that the values begin at a multiple of 64 bytes. `type` is NumPy's: "<f8".
std::string npy_header(std::string_view type, std::span<const Index> shape);

// Of float or double in this machine's order.
template <Storage Scalar>
std::string npy_header(std::span<const Index> shape) {
  return npy_header(std::string{native_order, 'f', static_cast<char>('0' + sizeof(Scalar))}, shape);
}

// A text as NumPy keeps it, four bytes to a character, in an array without dimensions: header and value together.
// @pre ASCII.
std::string npy_text(std::string_view text);

template <class Scalar>
std::string_view bytes_of(const Scalar* data, Index count) {
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(count) * sizeof(Scalar)};
}

}  // namespace itspace::io
