// SPDX-License-Identifier: Apache-2.0
//
// Error texts: the arguments one after the other, in the C locale, numbers with six digits.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace itspace {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  (stream << ... << parts);
  return stream.str();
}

// Throws std::invalid_argument with that text unless `holds`.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw std::invalid_argument(text(parts...));
}

}  // namespace itspace
