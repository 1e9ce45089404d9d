// SPDX-License-Identifier: Apache-2.0
//
// The table of contents of a zip file (.npz), with zip64. Only the central directory is believed: local headers may
// leave sizes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace itspace::io {

struct ZipMember {
  std::string name;
  unsigned flags = 0;
  unsigned method = 0;
  std::uint32_t crc = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t uncompressed_bytes = 0;
  std::uint64_t local_header_offset = 0;
};

inline constexpr unsigned zip_stored = 0;
inline constexpr unsigned zip_deflated = 8;

// True if the bytes open as a zip file does (one with members, or an empty one).
bool has_zip_magic(std::span<const std::byte> bytes);

// All members in file order. `where` opens every message: "'a.npz'".
std::vector<ZipMember> read_zip_directory(std::span<const std::byte> file, std::string_view where);

// The member's bytes as they lie in the file. Refuses encryption and methods other than stored and deflated, by name.
std::span<const std::byte> zip_member_bytes(std::span<const std::byte> file, const ZipMember& member,
                                            std::string_view where);

}  // namespace itspace::io
