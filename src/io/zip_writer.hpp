// SPDX-License-Identifier: Apache-2.0
//
// Uncompressed zip files (.npz), members aligned so that they can be mapped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "atomic_file.hpp"

namespace itspace::io {

class ZipWriter {
 public:
  // `where` opens every message.
  ZipWriter(AtomicFile& file, std::string where) : file_(file), where_(std::move(where)) {}

  // A member whose content is `head` followed by `body`.
  void add(std::string_view name, std::string_view head, std::string_view body);
  // Writes the directory.
  void finish();

 private:
  void write(std::string_view bytes);
  void require_room(std::uint64_t bytes) const;

  AtomicFile& file_;
  std::string where_;
  std::string directory_;
  std::uint64_t written_ = 0;
  std::uint32_t members_ = 0;
};

}  // namespace itspace::io
