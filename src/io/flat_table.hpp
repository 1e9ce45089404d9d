// SPDX-License-Identifier: Apache-2.0
//
// The few numbers of an Arrow file's footer and messages that Arrow's interface does not tell: how many rows and bytes
// a record batch has. They are tables in FlatBuffers' layout: a number at the front leads to the table, and the table's
// first number back to a list of where its fields are.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

namespace itspace::io {

class FlatTable {
 public:
  explicit FlatTable(std::span<const std::uint8_t> bytes) : FlatTable(bytes, 0) {}

  template <class Number>
  Number number(int field) const {
    const std::size_t at = place_of(field);
    return at == 0 ? Number(0) : get<Number>(at);
  }
  bool has(int field) const { return place_of(field) != 0; }
  FlatTable table(int field) const { return {bytes_, require_place(field)}; }
  // Where a list begins, and how many it has.
  std::pair<std::size_t, std::size_t> list(int field) const {
    if (!has(field)) return {0, 0};
    const std::size_t at = place_of(field), begin = at + get<std::uint32_t>(at);
    return {begin + sizeof(std::uint32_t), get<std::uint32_t>(begin)};
  }
  template <class Number>
  Number get(std::size_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(Number)) throw std::runtime_error("its footer is damaged");
    Number value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

 private:
  // `at` holds the distance to the table.
  FlatTable(std::span<const std::uint8_t> bytes, std::size_t at) : bytes_(bytes), at_(at + get<std::uint32_t>(at)) {}

  std::size_t require_place(int field) const {
    if (!has(field)) throw std::runtime_error("its footer is damaged");
    return place_of(field);
  }
  std::size_t place_of(int field) const {
    const auto fields = static_cast<std::size_t>(static_cast<std::int64_t>(at_) - get<std::int32_t>(at_));
    const std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
    if (entry + 2 > get<std::uint16_t>(fields)) return 0;
    const auto offset = get<std::uint16_t>(fields + entry);
    return offset == 0 ? 0 : at_ + offset;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_;
};

}  // namespace itspace::io
