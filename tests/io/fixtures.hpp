// SPDX-License-Identifier: Apache-2.0
//
// Files for the tests, built byte by byte and independently of the library's own writers, so that a shared mistake
// cannot hide.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fixtures {

// A folder that is gone at the end of the test.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Writes a file and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view bytes) const;
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

std::string read(const std::filesystem::path& path);

std::string little(std::uint64_t value, int bytes);

// One number as a file holds it.
template <class Number>
requires std::is_arithmetic_v<Number> std::string raw(Number value, bool big_endian) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);  // the tests run on little-endian machines
  if (big_endian) {
    std::ranges::reverse(bytes);
  }
  return bytes;
}

// Magic, version, length, and the dictionary as given; padded with spaces and a newline to 64 bytes if `pad`.
std::string npy(std::string_view dictionary, std::string_view values, int major = 1, bool pad = true);
// The usual header.
std::string npy_of(std::string_view descr, std::string_view shape, std::string_view values, bool fortran_order = false);
// numbers as float64, C order
std::string npy_f8(std::string_view shape, std::initializer_list<double> numbers);

struct Member {
  std::string name;
  std::string content;
  bool deflated = false;
  bool zip64 = false;       // sizes and offset in a zip64 extra field
  bool descriptor = false;  // local header without sizes, data descriptor after the data
  int flags = 0;
  int method = -1;  // -1: as `deflated` says
  // What the directory claims instead of the truth.
  std::int64_t claimed_size = -1;
  std::int64_t claimed_crc = -1;
  std::int64_t claimed_offset = -1;
};

std::string zip(const std::vector<Member>& members, bool zip64_end = false, std::string_view comment = "");
std::string deflate(std::string_view content);

// Runs `action`, which must throw std::runtime_error, and checks that its message contains all parts.
void expect_refused(const std::function<void()>& action, std::initializer_list<std::string_view> parts);

}  // namespace fixtures
