// SPDX-License-Identifier: Apache-2.0
//
// The checksum that zip files keep of their members, CRC-32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace itspace::io {

// Of `bytes`, or of what `before` was the checksum of, followed by `bytes`.
std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

// Throws where they differ. `where` opens the message.
void require_crc(std::uint32_t found, std::uint32_t expected, std::string_view where);

}  // namespace itspace::io
