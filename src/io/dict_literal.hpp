// SPDX-License-Identifier: Apache-2.0
//
// The Python dictionary literal inside an .npy header: string keys; strings, True/False and tuples of integers as
// values. Any key order, whitespace, trailing commas and both quotes, as Python reads it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace itspace::io {

struct DictValue {
  enum class Kind { string, boolean, integers, other };  // other: a list or a nested tuple (structured types)

  Kind kind = Kind::other;
  std::string_view text;  // of a string its content, of anything else the literal as written; borrowed
  bool truth = false;
  std::vector<std::uint64_t> integers;
};

// The entries in order; `literal` may end in whitespace (headers are padded). Throws with `where` on anything else.
std::vector<std::pair<std::string_view, DictValue>> parse_dict_literal(std::string_view literal,
                                                                       std::string_view where);

}  // namespace itspace::io
