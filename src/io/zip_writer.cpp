// SPDX-License-Identifier: Apache-2.0
//
// Writing a zip file without zip64: below 4 GiB and 65535 members, which our factors, maps and states are.
#include "zip_writer.hpp"

#include <zlib.h>

#include "error.hpp"

namespace itspace::io {
namespace {

constexpr std::uint64_t most_bytes = 0xfffffffe;  // 0xffffffff says "see zip64"
constexpr std::uint32_t most_members = 0xfffe;
constexpr std::size_t alignment = 64;
constexpr std::size_t local_head_bytes = 30;
// The extra field that Android's zipalign pads with; readers skip what they do not know.
constexpr std::uint32_t padding_id = 0xd935;
constexpr std::size_t padding_head_bytes = 4;

void put16(std::string& out, std::uint32_t value) {
  out += static_cast<char>(value & 0xff);
  out += static_cast<char>(value >> 8 & 0xff);
}

void put32(std::string& out, std::uint64_t value) {
  put16(out, static_cast<std::uint32_t>(value & 0xffff));
  put16(out, static_cast<std::uint32_t>(value >> 16 & 0xffff));
}

// Version needed to date: the same in the local header and in the directory. The time is fixed, so that the same arrays
// give the same file.
std::string common_fields(std::uint32_t crc, std::uint64_t bytes, std::string_view name) {
  std::string out;
  put16(out, 20);      // version needed: 2.0
  put16(out, 0x0800);  // names are UTF-8
  put16(out, 0);       // stored
  put16(out, 0);       // 00:00:00
  put16(out, 0x21);    // 1980-01-01
  put32(out, crc);
  put32(out, bytes);
  put32(out, bytes);
  put16(out, static_cast<std::uint32_t>(name.size()));
  return out;
}

}  // namespace

void ZipWriter::require_room(std::uint64_t bytes) const {
  if (bytes > most_bytes || written_ + bytes > most_bytes) {
    fail("{} cannot be written: it would be {} bytes, an .npz of ours holds at most {}; save the large array as .npy",
         where_, written_ + bytes, most_bytes);
  }
}

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

void ZipWriter::add(std::string_view name, std::string_view head, std::string_view body) {
  if (name.size() > 0xffff) {
    fail("{} cannot be written: a key of {} bytes is too long for a zip file", where_, name.size());
  }
  if (members_ == most_members) {
    fail("{} cannot be written: an .npz of ours holds at most {} arrays", where_, most_members);
  }
  const std::uint64_t bytes = head.size() + body.size();
  require_room(local_head_bytes + name.size() + padding_head_bytes + alignment + bytes);

  uLong crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
  if (!body.empty()) {  // an empty array has no address, and zlib would start anew
    crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(body.data()), body.size());
  }
  const std::uint64_t offset = written_;
  const std::uint64_t unpadded = offset + local_head_bytes + name.size() + padding_head_bytes;
  const std::size_t padding = (alignment - unpadded % alignment) % alignment;
  const std::string fields = common_fields(static_cast<std::uint32_t>(crc), bytes, name);

  std::string local = "PK\x03\x04" + fields;
  put16(local, static_cast<std::uint32_t>(padding_head_bytes + padding));
  local += name;
  put16(local, padding_id);
  put16(local, static_cast<std::uint32_t>(padding));
  local.append(padding, '\0');
  write(local);
  write(head);
  write(body);

  directory_ += "PK\x01\x02";
  put16(directory_, 20);  // made by version 2.0
  directory_ += fields;
  put16(directory_, 0);            // extra field
  put16(directory_, 0);            // comment
  put16(directory_, 0);            // disk
  put16(directory_, 0);            // internal attributes
  put32(directory_, 0600U << 16);  // external attributes: Unix mode
  put32(directory_, offset);
  directory_ += name;
  ++members_;
}

void ZipWriter::finish() {
  require_room(directory_.size());
  const std::uint64_t offset = written_;
  write(directory_);
  std::string end = "PK\x05\x06";
  put16(end, 0);  // this disk
  put16(end, 0);  // the directory's disk
  put16(end, members_);
  put16(end, members_);
  put32(end, directory_.size());
  put32(end, offset);
  put16(end, 0);  // comment
  write(end);
}

}  // namespace itspace::io
