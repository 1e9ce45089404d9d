// SPDX-License-Identifier: Apache-2.0
//
// A regular file that is open for reading, and how to tell that it is still the one that was opened before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace itspace::io {

struct FileState {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  // of its last change

  bool operator==(const FileState&) const = default;
};

// @throws std::runtime_error for each way a path can be wrong: missing, a folder, a pipe, empty.
class RegularFile {
 public:
  // `absent`: what is to be said of a path where nothing is.
  explicit RegularFile(const std::filesystem::path& path, std::string_view absent = "does not exist; check the path");
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  int descriptor() const { return fd_; }
  FileState state() const;  // as it is now

  // Fills `out` from `offset` on; fewer bytes only where the file ends. By many threads at once, if need be.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;
  // Whether one had to wait for the disk, since this was asked last.
  bool had_to_wait() const { return waited_.exchange(false); }
  // The system is to read this part ahead.
  void expect(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  mutable std::atomic<bool> waited_ = false;
  std::filesystem::path path_;
  int fd_ = -1;
};

// @throws std::runtime_error unless both are the same: the file was written to or replaced in between.
void require_unchanged(const std::filesystem::path& path, const FileState& before, const FileState& now);

}  // namespace itspace::io
