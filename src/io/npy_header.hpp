// SPDX-License-Identifier: Apache-2.0
//
// The header of an .npy file, versions 1.0, 2.0 and 3.0: magic, version, length, and a Python dictionary in text.
#pragma once

#include <itspace/block.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "element_type.hpp"

namespace itspace::io {

struct NpyHeader {
  ElementType type = ElementType::float64;
  std::vector<Index> shape;  // 0 to 3 dimensions
  bool fortran_order = false;
  bool big_endian = false;
  std::uint64_t value_bytes = 0;  // the product of the shape and the type's size; fits a signed 64-bit integer
};

// Magic, version and header length together; no valid array is shorter.
inline constexpr std::size_t npy_prelude_bytes = 12;

// True if the bytes open as an .npy file does.
bool has_npy_magic(std::span<const std::byte> bytes);

// Where the values begin, from the first npy_prelude_bytes. `where` opens every message: "'a.npy'".
std::size_t npy_values_offset(std::span<const std::byte> prelude, std::string_view where);

// Reads the first npy_values_offset() bytes of the file.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where);

// Refuses a file that holds fewer bytes behind its header than that promises.
void require_values(const NpyHeader& header, std::uint64_t held, std::string_view where);

// Refuses a stack of matrices, of three dimensions, where one matrix is asked for.
void require_matrix(std::span<const Index> shape, std::string_view where);

// "(3, 4)", as Python writes it.
std::string shape_text(std::span<const Index> shape);

}  // namespace itspace::io
