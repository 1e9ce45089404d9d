// SPDX-License-Identifier: Apache-2.0
//
// Quoting for messages.
#include "error.hpp"

#include <system_error>

namespace itspace::io {
namespace {

std::string escaped(std::string_view text, bool keep_utf8) {
  std::string result = "'";
  for (const char c : text) {
    const auto value = static_cast<unsigned char>(c);
    const bool printable = (value >= 0x20 && value < 0x7f) || (keep_utf8 && value >= 0x80);
    if (printable) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", value);
    }
  }
  return result + "'";
}

}  // namespace

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 120;
  if (text.size() <= longest) {
    return escaped(text, false);
  }
  return escaped(text.substr(0, longest), false) + "...";
}

// Paths are shown whole, and in the user's own script: they must be recognised.
std::string in_quotes(const std::filesystem::path& path) {
  return escaped(path.native(), true);
}

std::string in_quotes(std::span<const std::byte> bytes) {
  return in_quotes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace itspace::io
