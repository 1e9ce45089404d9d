// SPDX-License-Identifier: Apache-2.0
//
// A whole file as read-only memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace itspace::io {

// Maps a regular, non-empty file. The pages are the kernel's: a file that another program cuts short while it is mapped
// raises SIGBUS, as for every mapped file (a handler finds its name by mapped_file_at); one that is replaced by rename
// (as ours are) is safe.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string name_;  // for mapped_file_at
  int row_ = -1;
};

}  // namespace itspace::io
