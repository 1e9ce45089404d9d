// SPDX-License-Identifier: Apache-2.0
//
// Error texts: the arguments one after the other, numbers with six digits, whatever the locale.
//
// Without iostreams: they lean on locales, which a process with two C++ runtimes (a Python module that brings its own,
// linked statically, beside that of another) may have in two copies that do not know each other. The first error text
// then ends in a segmentation fault.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace itspace {

template <class Part>
void append_to(std::string& out, const Part& part) {
  if constexpr (std::convertible_to<const Part&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::same_as<Part, char>) {
    out += part;
  } else if constexpr (std::same_as<Part, bool>) {
    out += part ? '1' : '0';
  } else if constexpr (std::integral<Part>) {
    char digits[std::numeric_limits<Part>::digits10 + 3];
    out.append(digits, std::to_chars(digits, std::end(digits), part).ptr);
  } else {
    static_assert(std::same_as<Part, float> || std::same_as<Part, double>, "no text for this type");
    if (std::isnan(part)) {
      out += "nan";  // the sign of one means nothing
      return;
    }
    char digits[16];  // -1.23457e-308
    out.append(digits, std::to_chars(digits, std::end(digits), part, std::chars_format::general, 6).ptr);
  }
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_to(out, parts), ...);
  return out;
}

// Throws std::invalid_argument with that text unless `holds`.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw std::invalid_argument(text(parts...));
}

}  // namespace itspace
