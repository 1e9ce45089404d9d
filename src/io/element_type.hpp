// SPDX-License-Identifier: Apache-2.0
//
// The number types a NumPy file may hold here.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace itspace::io {

enum class ElementType { float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, boolean };

std::string_view name(ElementType type);  // NumPy's: "float32", "bool"
std::optional<ElementType> element_type_named(std::string_view text);
std::size_t size_in_bytes(ElementType type);

// From the kind letter and the size of a NumPy type string: 'f', 4. nullopt where we have no such type.
std::optional<ElementType> element_type_of(char kind, std::size_t bytes);

}  // namespace itspace::io
