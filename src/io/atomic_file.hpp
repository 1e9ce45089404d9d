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
// behind, named .itspace-*.tmp. A program that ends on a signal removes them by remove_temporaries() (signals.hpp).
class AtomicFile {
 public:
  // `later`: a direct destination is opened and written only by commit(); until then its bytes stay in memory.
  explicit AtomicFile(const std::filesystem::path& path, bool later = false);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  bool direct() const { return destination_.direct; }
  void write(std::string_view bytes);
  // Everything is in the temporary file, which is durable and closed: commit() has only to rename it. Nothing for a
  // direct destination.
  void finish();
  // finish(), rename, and make the rename durable; a direct destination gets its last bytes.
  void commit();
  // The two halves of commit() for a file among several. @pre not direct.
  void rename();
  void settle();

 private:
  void open_temporary();
  void remember(std::filesystem::path name);
  void forget();
  void close();
  void open_direct();
  void flush();
  void write_now(std::string_view bytes);

  Destination destination_;
  std::filesystem::path temporary_;  // empty when there is none to remove
  int row_ = -1;                     // of the temporary file in the table of those to remove on a signal
  int fd_ = -1;
  bool later_ = false;
  bool finished_ = false;
  std::string buffer_;  // small writes are gathered
};

}  // namespace itspace::io
