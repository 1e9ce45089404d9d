// SPDX-License-Identifier: Apache-2.0
//
// One table of the number types.
#include "element_type.hpp"

#include <algorithm>
#include <array>

namespace itspace::io {
namespace {

struct Entry {
  ElementType type;
  std::string_view name;
  char kind;
  std::size_t bytes;
};

constexpr std::array<Entry, 12> table = {{
    {ElementType::float16, "float16", 'f', 2},
    {ElementType::float32, "float32", 'f', 4},
    {ElementType::float64, "float64", 'f', 8},
    {ElementType::int8, "int8", 'i', 1},
    {ElementType::int16, "int16", 'i', 2},
    {ElementType::int32, "int32", 'i', 4},
    {ElementType::int64, "int64", 'i', 8},
    {ElementType::uint8, "uint8", 'u', 1},
    {ElementType::uint16, "uint16", 'u', 2},
    {ElementType::uint32, "uint32", 'u', 4},
    {ElementType::uint64, "uint64", 'u', 8},
    {ElementType::boolean, "bool", 'b', 1},
}};

template <class Predicate>
std::optional<ElementType> first_where(Predicate predicate) {
  const auto found = std::ranges::find_if(table, predicate);
  return found == table.end() ? std::nullopt : std::optional(found->type);
}

const Entry& entry(ElementType type) {
  return *std::ranges::find(table, type, &Entry::type);
}

}  // namespace

std::string_view name(ElementType type) {
  return entry(type).name;
}

std::size_t size_in_bytes(ElementType type) {
  return entry(type).bytes;
}

std::optional<ElementType> element_type_named(std::string_view text) {
  return first_where([&](const Entry& e) { return e.name == text; });
}

std::optional<ElementType> element_type_of(char kind, std::size_t bytes) {
  return first_where([&](const Entry& e) { return e.kind == kind && e.bytes == bytes; });
}

}  // namespace itspace::io
