// SPDX-License-Identifier: Apache-2.0
//
// How this room fails: one exception type for a bad environment, and quoting that keeps foreign bytes readable.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace itspace::io {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

// The text of an errno value.
std::string reason(int error_number);

// 'text', with what a terminal would not show written as \xNN and long text cut: names and contents of damaged files
// end up in messages.
std::string in_quotes(std::string_view text);
inline std::string in_quotes(const std::string& text) {
  return in_quotes(std::string_view(text));
}
std::string in_quotes(const std::filesystem::path& path);
std::string in_quotes(std::span<const std::byte> bytes);

}  // namespace itspace::io
