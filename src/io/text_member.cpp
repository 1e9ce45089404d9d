// SPDX-License-Identifier: Apache-2.0
//
// Reading one string array. Strings are no numbers, so this stands beside Array and shares only the parsers.
#include "text_member.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <vector>

#include "crc.hpp"
#include "dict_literal.hpp"
#include "error.hpp"
#include "inflate.hpp"
#include "mapped_file.hpp"
#include "npy_header.hpp"
#include "zip_directory.hpp"

namespace itspace::io {
namespace {

// No name of ours is a hundredth of this; more is not read.
constexpr std::uint64_t longest_member = 65536;

struct TextType {
  std::size_t characters = 0;
  std::size_t bytes_each = 0;  // 4 for U, 1 for S
  bool big_endian = false;
};

std::optional<TextType> parse_text_type(std::string_view text) {
  TextType type;
  type.big_endian = std::endian::native == std::endian::big;
  if (!text.empty() && std::string_view("<>|=").find(text.front()) != std::string_view::npos) {
    if (text.front() == '<' || text.front() == '>') {
      type.big_endian = text.front() == '>';
    }
    text.remove_prefix(1);
  }
  if (text.empty() || (text.front() != 'U' && text.front() != 'S')) {
    return std::nullopt;
  }
  type.bytes_each = text.front() == 'U' ? 4 : 1;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), type.characters);
  if (error != std::errc{} || end != text.data() + text.size() || type.characters > longest_member) {
    return std::nullopt;
  }
  return type;
}

std::string decode(std::span<const std::byte> bytes, const TextType& type) {
  std::string text;
  for (std::size_t i = 0; i < type.characters; ++i) {
    std::uint32_t character = 0;
    for (std::size_t j = 0; j < type.bytes_each; ++j) {
      const std::size_t significance = type.big_endian ? type.bytes_each - 1 - j : j;
      character |= std::to_integer<std::uint32_t>(bytes[i * type.bytes_each + j]) << (8 * significance);
    }
    text += character < 0x80 ? static_cast<char>(character) : '?';
  }
  return text.substr(0, text.find_last_not_of('\0') + 1);  // NumPy pads with zeros
}

std::vector<std::byte> member_content(std::span<const std::byte> file, const ZipMember& member,
                                      std::string_view where) {
  if (member.uncompressed_bytes > longest_member) {
    fail("{}: is {} bytes, too many for a name; it must be a text without dimensions", where,
         member.uncompressed_bytes);
  }
  const auto bytes = zip_member_bytes(file, member, where);
  if (member.method != zip_deflated) {
    require_crc(crc_of(bytes), member.crc, where);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> content(static_cast<std::size_t>(member.uncompressed_bytes));
  Inflater inflater(bytes, where);
  inflater.read(content);
  inflater.finish(member.crc);
  return content;
}

}  // namespace

std::string read_text(const std::filesystem::path& path, std::string_view key) {
  const std::string where = fmt::format("array {} of {}", in_quotes(key), in_quotes(path));
  const MappedFile file(path);
  const auto members = read_zip_directory(file.bytes(), in_quotes(path));
  const auto found = std::ranges::find(members, std::string(key) + ".npy", &ZipMember::name);
  if (found == members.end()) {
    fail("{}: has no array named {}", in_quotes(path), in_quotes(key));
  }
  const auto content = member_content(file.bytes(), *found, where);
  const auto bytes = std::span(content);
  const std::size_t offset = npy_values_offset(bytes.first(std::min(bytes.size(), npy_prelude_bytes)), where);
  if (offset > bytes.size()) {
    fail("{}: is truncated, its header should be {} bytes and it holds {}; save it again", where, offset, bytes.size());
  }
  const std::size_t text_begin = std::to_integer<unsigned>(bytes[6]) == 1 ? 10 : 12;
  const std::string_view literal(reinterpret_cast<const char*>(bytes.data()) + text_begin, offset - text_begin);
  std::optional<TextType> type;
  bool no_dimensions = false;
  for (const auto& [name, value] : parse_dict_literal(literal, where)) {
    if (name == "descr" && value.kind == DictValue::Kind::string) {
      type = parse_text_type(value.text);
    } else if (name == "shape") {
      no_dimensions = value.kind == DictValue::Kind::integers && value.integers.empty();
    }
  }
  if (!type || !no_dimensions || type->characters * type->bytes_each > bytes.size() - offset) {
    fail("{}: must be a text without dimensions, its header is {}", where, in_quotes(literal));
  }
  return decode(bytes.subspan(offset), *type);
}

}  // namespace itspace::io
