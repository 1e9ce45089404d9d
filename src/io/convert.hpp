// SPDX-License-Identifier: Apache-2.0
//
// Values of a file as a row-major block of float or double.
#pragma once

#include <itspace/block.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "element_type.hpp"

namespace itspace::io {

// IEEE binary16, all cases (subnormals, infinities, NaN).
float half_to_float(std::uint16_t bits);

struct Layout {
  ElementType type = ElementType::float64;
  bool swap_bytes = false;
  bool column_major = false;
  Index rows = 0;
  Index cols = 0;
  // Of a part of an array: the rows between two columns in memory (column_major; 0: `rows`), and the part's place.
  Index column_step = 0;
  Index first_row = 0, first_col = 0;
  Index cols_of_whole = 0;  // 0: `cols`
};

// C order, bytes swapped where the machine's order differs.
Layout layout_of(ElementType type, bool big_endian, Index rows, Index cols);

// `values` may have any alignment. Integers are rounded to the nearest Scalar (exact up to 2^24 or 2^53); a finite
// float64 beyond float32 is refused, with its place, under the name `where`.
template <Storage Scalar>
Block<Scalar> convert(const std::byte* values, const Layout& layout, std::string_view where);

}  // namespace itspace::io
