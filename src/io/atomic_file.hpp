// SPDX-License-Identifier: Apache-2.0
//
// A file that appears whole or not at all.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace itspace::io {

// Where a write to some path goes.
struct Destination {
  std::filesystem::path path;    // symbolic links followed
  std::filesystem::path folder;  // that holds it
  // A pipe, a device or an open descriptor (/dev/stdout): nothing to rename over, so it is written directly.
  bool direct = false;
  int descriptor = -1;               // of a direct destination that this process has open
  std::optional<mode_t> mode;        // of the file to be replaced
  std::filesystem::path as_written;  // what the user said, for messages
};

// Follows links and throws where a file cannot stand: a folder, a missing or unwritable one above it, a read-only file.
Destination find_destination(const std::filesystem::path& path);

// Writes to a temporary file beside the destination; commit() makes it durable and renames it. Without commit() (an
// exception, a full disk) the temporary file is removed and the old file stays. Only a killed process can leave one
// behind, named .itspace-*.tmp.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  void open_temporary();
  void open_direct();
  void flush();
  void write_now(std::string_view bytes);

  Destination destination_;
  std::filesystem::path temporary_;  // empty when there is none to remove
  int fd_ = -1;
  std::string buffer_;  // small writes are gathered
};

}  // namespace itspace::io
