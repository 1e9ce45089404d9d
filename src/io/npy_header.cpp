// SPDX-License-Identifier: Apache-2.0
//
// Parsing the header of an .npy file. It may come from anywhere, so every claim is checked here and nothing is
// allocated on its word.
#include "npy_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "dict_literal.hpp"
#include "error.hpp"

namespace itspace::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
// NumPy itself refuses headers above 10,000 characters unless told otherwise; ours are about 100.
constexpr std::uint64_t longest_header = 65536;

unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<unsigned>(bytes[i]);
}

struct TypeDescription {
  ElementType type;
  bool big_endian;
};

// What NumPy calls the kinds that are not numbers to us.
std::string_view foreign_kind(char kind) {
  switch (kind) {
    case 'O':
      return "Python objects";
    case 'c':
      return "complex numbers";
    case 'S':
    case 'a':
    case 'U':
    case 'T':
      return "strings";
    case 'V':
      return "raw or structured records";
    case 'M':
    case 'm':
      return "dates or durations";
    default:
      return "an unknown type";
  }
}

TypeDescription parse_type(const DictValue& value, std::string_view where) {
  constexpr std::string_view remedy = "save it as numbers, for instance array.astype(numpy.float32)";
  if (value.kind == DictValue::Kind::other && value.text.starts_with('[')) {
    fail("{}: holds a structured type, {}; {}", where, in_quotes(value.text), remedy);
  }
  if (value.kind != DictValue::Kind::string) {
    fail("{}: 'descr' in the header must be a type string such as '<f8', is {}; the header is damaged", where,
         in_quotes(value.text));
  }
  const std::string_view text = value.text;
  std::string_view rest = text;
  char order = '=';
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  if (rest == "?") {
    return {ElementType::boolean, false};
  }
  if (rest.size() == 2 && rest[1] >= '1' && rest[1] <= '9') {
    const auto bytes = static_cast<std::size_t>(rest[1] - '0');
    if (const auto type = element_type_of(rest[0], bytes)) {
      const bool native_is_big = std::endian::native == std::endian::big;
      const bool big = order == '>' || (order != '<' && native_is_big);
      return {*type, big && bytes > 1};
    }
  }
  if (!rest.empty() && std::string_view("fiub").find(rest.front()) != std::string_view::npos) {
    fail("{}: type {} is not one of float16/32/64, int8..64, uint8..64, bool; {}", where, in_quotes(text), remedy);
  }
  fail("{}: holds {} (type {}), not real numbers; {}", where, foreign_kind(rest.empty() ? '?' : rest.front()),
       in_quotes(text), remedy);
}

bool parse_order(const DictValue& value, std::string_view where) {
  if (value.kind != DictValue::Kind::boolean) {
    fail("{}: 'fortran_order' in the header must be True or False, is {}; the header is damaged", where,
         in_quotes(value.text));
  }
  return value.truth;
}

[[noreturn]] void refuse_dimensions(std::size_t count, std::string_view shape, std::string_view where) {
  fail("{}: has {} dimensions, shape {}; at most 2 are understood: reshape it to (rows, columns)", where, count,
       in_quotes(shape));
}

std::vector<Index> parse_shape(const DictValue& value, std::string_view where) {
  if (value.kind != DictValue::Kind::integers) {
    fail("{}: 'shape' in the header must be a tuple of non-negative integers, is {}; the header is damaged", where,
         in_quotes(value.text));
  }
  if (value.integers.size() > 3) {
    refuse_dimensions(value.integers.size(), value.text, where);
  }
  std::vector<Index> shape;
  for (const std::uint64_t length : value.integers) {
    if (length > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
      fail("{}: shape {} has a length above 2^63-1; the header is damaged", where, in_quotes(value.text));
    }
    shape.push_back(static_cast<Index>(length));
  }
  return shape;
}

std::uint64_t value_bytes(const NpyHeader& header, std::string_view where) {
  // A length of 0 anywhere means no values, however long the other one is.
  if (std::ranges::find(header.shape, Index{0}) != header.shape.end()) {
    return 0;
  }
  std::uint64_t bytes = size_in_bytes(header.type);
  bool overflow = false;
  for (const Index length : header.shape) {
    overflow = overflow || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(length), &bytes);
  }
  if (overflow || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail("{}: shape {} of {} is more than 2^63-1 bytes; the header is damaged", where, shape_text(header.shape),
         name(header.type));
  }
  return bytes;
}

}  // namespace

bool has_npy_magic(std::span<const std::byte> bytes) {
  return bytes.size() >= magic.size() &&
         std::ranges::equal(bytes.first(magic.size()), magic, {}, [](std::byte b) { return static_cast<char>(b); });
}

std::size_t npy_values_offset(std::span<const std::byte> prelude, std::string_view where) {
  if (!has_npy_magic(prelude)) {
    fail("{}: is not a NumPy array, it starts with {}; write it with numpy.save", where,
         in_quotes(prelude.first(std::min<std::size_t>(prelude.size(), 8))));
  }
  if (prelude.size() < npy_prelude_bytes) {
    fail("{}: is truncated, {} bytes cannot hold an .npy header; save it again", where, prelude.size());
  }
  const unsigned major = byte_at(prelude, 6);
  const unsigned minor = byte_at(prelude, 7);
  if (major < 1 || major > 3 || minor != 0) {
    fail("{}: is .npy version {}.{}; versions 1.0, 2.0 and 3.0 are understood: write it with numpy.save", where, major,
         minor);
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::uint64_t>(byte_at(prelude, 8 + i)) << (8 * i);
  }
  if (length > longest_header) {
    fail("{}: claims a header of {} bytes, the limit is {}; the header is damaged", where, length, longest_header);
  }
  const std::size_t offset = 8 + length_bytes + static_cast<std::size_t>(length);
  if (offset < npy_prelude_bytes) {
    fail("{}: claims a header of {} bytes, too short for any array; the header is damaged", where, length);
  }
  return offset;
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view where) {
  const std::size_t text_begin = byte_at(bytes, 6) == 1 ? 10 : 12;
  const auto* const characters = reinterpret_cast<const char*>(bytes.data());
  const std::string_view text(characters + text_begin, bytes.size() - text_begin);

  std::optional<TypeDescription> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<Index>> shape;
  for (const auto& [key, value] : parse_dict_literal(text, where)) {
    if (key == "descr" && !type) {
      type = parse_type(value, where);
    } else if (key == "fortran_order" && !fortran_order) {
      fortran_order = parse_order(value, where);
    } else if (key == "shape" && !shape) {
      shape = parse_shape(value, where);
    } else {
      fail("{}: key {} in the header is unknown or there twice; the header is damaged", where, in_quotes(key));
    }
  }
  if (!type || !fortran_order || !shape) {
    fail("{}: the header {} lacks 'descr', 'fortran_order' or 'shape'; the header is damaged", where, in_quotes(text));
  }
  NpyHeader header{type->type, std::move(*shape), *fortran_order, type->big_endian, 0};
  header.value_bytes = value_bytes(header, where);
  return header;
}

void require_values(const NpyHeader& header, std::uint64_t held, std::string_view where) {
  if (header.value_bytes > held) {
    fail(
        "{}: its header promises {} bytes of values (shape {}, {}), the file holds {}; it is truncated or its header "
        "is damaged: copy or save it again",
        where, header.value_bytes, shape_text(header.shape), name(header.type), held);
  }
}

void require_matrix(std::span<const Index> shape, std::string_view where) {
  if (shape.size() > 2) {
    refuse_dimensions(shape.size(), shape_text(shape), where);
  }
}

std::string shape_text(std::span<const Index> shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape.front()) : fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace itspace::io
