// SPDX-License-Identifier: Apache-2.0
//
// Headers, byte for byte as numpy.save writes them.
#include "npy_writer.hpp"

#include <fmt/format.h>

#include "npy_header.hpp"

namespace itspace::io {

std::string npy_header(std::string_view type, std::span<const Index> shape) {
  constexpr std::size_t alignment = 64;
  constexpr std::size_t before_text = 10;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape_text(shape));
  const std::size_t unpadded = before_text + text.size() + 1;
  text.append((alignment - unpadded % alignment) % alignment, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string npy_text(std::string_view text) {
  const std::u32string characters(text.begin(), text.end());
  std::string bytes = npy_header(fmt::format("{}U{}", native_order, text.size()), {});
  return bytes.append(bytes_of(characters.data(), static_cast<Index>(characters.size())));
}

}  // namespace itspace::io
