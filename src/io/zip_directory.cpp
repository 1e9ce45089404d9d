// SPDX-License-Identifier: Apache-2.0
//
// Reading a zip file's directory. Every offset and length is checked against the file before it is used.
#include "zip_directory.hpp"

#include <algorithm>
#include <concepts>
#include <optional>

#include "error.hpp"

namespace itspace::io {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t entry_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;

constexpr std::size_t local_bytes = 30;
constexpr std::size_t entry_bytes = 46;
constexpr std::size_t end_bytes = 22;
constexpr std::size_t end64_bytes = 56;
constexpr std::size_t locator64_bytes = 20;

// A field with this value is too large for it; the real one is in a zip64 record.
constexpr std::uint32_t saturated32 = 0xffffffff;
constexpr std::uint16_t saturated16 = 0xffff;

// Little-endian fields of a record whose length the caller has checked.
template <std::unsigned_integral Field>
Field field(std::span<const std::byte> record, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Field); ++i) {
    value |= std::to_integer<std::uint64_t>(record[at + i]) << (8 * i);
  }
  return static_cast<Field>(value);
}

// `length` bytes from `offset`, or nullopt where the file does not hold them.
std::optional<std::span<const std::byte>> part(std::span<const std::byte> file, std::uint64_t offset,
                                               std::uint64_t length) {
  if (offset > file.size() || length > file.size() - offset) {
    return std::nullopt;
  }
  return file.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

bool starts_with(std::span<const std::byte> record, std::uint32_t signature) {
  return record.size() >= 4 && field<std::uint32_t>(record, 0) == signature;
}

[[noreturn]] void damaged(std::string_view where, std::string_view what) {
  fail("{}: is a damaged or truncated zip file ({}); copy or save it again", where, what);
}

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

// The end record is the last thing in the file but for a comment of at most 64 KiB.
std::size_t find_end_record(std::span<const std::byte> file, std::string_view where) {
  if (file.size() >= end_bytes) {
    const std::size_t last = file.size() - end_bytes;
    const std::size_t first = last - std::min<std::size_t>(last, saturated16);
    for (std::size_t at = last + 1; at-- > first;) {
      const auto record = file.subspan(at);
      if (starts_with(record, end_signature) && field<std::uint16_t>(record, 20) <= record.size() - end_bytes) {
        return at;
      }
    }
  }
  damaged(where, "its end record is missing");
}

Extent directory_extent(std::span<const std::byte> file, std::string_view where) {
  const std::size_t end = find_end_record(file, where);
  const auto record = file.subspan(end, end_bytes);
  Extent extent{field<std::uint32_t>(record, 16), field<std::uint32_t>(record, 12), field<std::uint16_t>(record, 10)};
  if (extent.offset != saturated32 && extent.bytes != saturated32 && extent.entries != saturated16) {
    return extent;
  }
  if (end < locator64_bytes || !starts_with(file.subspan(end - locator64_bytes), locator64_signature)) {
    return extent;  // a directory may have exactly 65535 entries; its bounds are checked by the caller
  }
  const auto offset64 = field<std::uint64_t>(file.subspan(end - locator64_bytes), 8);
  const auto record64 = part(file, offset64, end64_bytes);
  if (!record64 || !starts_with(*record64, end64_signature)) {
    damaged(where, "its zip64 end record is missing");
  }
  return {field<std::uint64_t>(*record64, 48), field<std::uint64_t>(*record64, 40),
          field<std::uint64_t>(*record64, 32)};
}

// The zip64 extra field holds, in this order, those values that were saturated.
void apply_zip64(ZipMember& member, std::span<const std::byte> extra, std::string_view where) {
  std::uint64_t* const values[] = {&member.uncompressed_bytes, &member.compressed_bytes, &member.local_header_offset};
  if (std::ranges::none_of(values, [](const std::uint64_t* v) { return *v == saturated32; })) {
    return;
  }
  while (extra.size() >= 4) {
    const auto id = field<std::uint16_t>(extra, 0);
    const auto length = field<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) {
      break;
    }
    auto body = extra.subspan(4, length);
    if (id == 1) {
      for (std::uint64_t* const value : values) {
        if (*value == saturated32) {
          if (body.size() < 8) {
            damaged(where, "a zip64 field is too short");
          }
          *value = field<std::uint64_t>(body, 0);
          body = body.subspan(8);
        }
      }
      return;
    }
    extra = extra.subspan(4 + std::size_t{length});
  }
}

std::string_view method_name(unsigned method) {
  switch (method) {
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "LZMA";
    case 93:
      return "zstd";
    case 95:
      return "xz";
    case 98:
      return "PPMd";
    case 99:
      return "AES encryption";
    default:
      return "unknown";
  }
}

}  // namespace

bool has_zip_magic(std::span<const std::byte> bytes) {
  return starts_with(bytes, local_signature) || starts_with(bytes, end_signature);
}

std::vector<ZipMember> read_zip_directory(std::span<const std::byte> file, std::string_view where) {
  const Extent extent = directory_extent(file, where);
  const auto directory = part(file, extent.offset, extent.bytes);
  if (!directory) {
    damaged(where, fmt::format("its directory should be {} bytes at {}, the file has {}", extent.bytes, extent.offset,
                               file.size()));
  }
  if (extent.entries > directory->size() / entry_bytes) {
    damaged(where, fmt::format("{} members are claimed in a directory of {} bytes", extent.entries, directory->size()));
  }
  std::vector<ZipMember> members;
  members.reserve(static_cast<std::size_t>(extent.entries));
  auto rest = *directory;
  for (std::uint64_t i = 0; i < extent.entries; ++i) {
    if (rest.size() < entry_bytes || !starts_with(rest, entry_signature)) {
      damaged(where, fmt::format("member {} of {} is missing", i, extent.entries));
    }
    const std::size_t name_bytes = field<std::uint16_t>(rest, 28);
    const std::size_t extra_bytes = field<std::uint16_t>(rest, 30);
    const std::size_t comment_bytes = field<std::uint16_t>(rest, 32);
    if (name_bytes + extra_bytes + comment_bytes > rest.size() - entry_bytes) {
      damaged(where, fmt::format("member {} of {} is cut short", i, extent.entries));
    }
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(rest.data()) + entry_bytes, name_bytes);
    member.flags = field<std::uint16_t>(rest, 8);
    member.method = field<std::uint16_t>(rest, 10);
    member.crc = field<std::uint32_t>(rest, 16);
    member.compressed_bytes = field<std::uint32_t>(rest, 20);
    member.uncompressed_bytes = field<std::uint32_t>(rest, 24);
    member.local_header_offset = field<std::uint32_t>(rest, 42);
    apply_zip64(member, rest.subspan(entry_bytes + name_bytes, extra_bytes), where);
    members.push_back(std::move(member));
    rest = rest.subspan(entry_bytes + name_bytes + extra_bytes + comment_bytes);
  }
  return members;
}

std::span<const std::byte> zip_member_bytes(std::span<const std::byte> file, const ZipMember& member,
                                            std::string_view where) {
  if ((member.flags & 1U) != 0) {
    fail("{}: is encrypted; save it without a password", where);
  }
  if (member.method != zip_stored && member.method != zip_deflated) {
    fail(
        "{}: is compressed by zip method {} ({}); only stored and deflated are understood: write it with numpy.savez "
        "or numpy.savez_compressed",
        where, member.method, method_name(member.method));
  }
  const auto header = part(file, member.local_header_offset, local_bytes);
  if (!header || !starts_with(*header, local_signature)) {
    damaged(where, fmt::format("there is no member at byte {}", member.local_header_offset));
  }
  // The local name and extra field may differ in length from the directory's. No overflow: the header lies in the file.
  const std::uint64_t begin =
      member.local_header_offset + local_bytes + field<std::uint16_t>(*header, 26) + field<std::uint16_t>(*header, 28);
  const auto bytes = part(file, begin, member.compressed_bytes);
  if (!bytes) {
    damaged(where,
            fmt::format("it should be {} bytes at {}, the file has {}", member.compressed_bytes, begin, file.size()));
  }
  return *bytes;
}

}  // namespace itspace::io
