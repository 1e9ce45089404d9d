// SPDX-License-Identifier: Apache-2.0
//
// Opening an array whose values are read later, and with them their checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <itspace/io.hpp>
#include <optional>
#include <span>
#include <string>

namespace itspace::io {

// A member that lies uncompressed in a mapped .npz.
struct StoredMember {
  std::span<const std::byte> bytes;  // its .npy header and the values; the Array keeps them mapped
  std::size_t values_offset = 0;
  std::uint32_t crc = 0;  // that the directory claims
  std::string where;      // opens messages
};

// open_array, but the checksum of a stored member is left to the caller. nullopt: there is none, or it was asked.
Array open_array(const std::filesystem::path& path, std::string_view key, std::optional<StoredMember>& unchecked);

}  // namespace itspace::io
