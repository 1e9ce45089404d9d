// SPDX-License-Identifier: Apache-2.0
//
// Several files, renamed one right after the other.
#include <itspace/io.hpp>

#include "atomic_file.hpp"

namespace itspace::io {

Outputs::Outputs() = default;
Outputs::~Outputs() = default;

AtomicFile& Outputs::add(const std::filesystem::path& path) {
  files_.push_back(std::make_unique<AtomicFile>(path, true));
  return *files_.back();
}

void Outputs::finish() {
  for (const auto& file : files_) {
    file->finish();
  }
}

void Outputs::commit_files() {
  finish();
  for (const auto& file : files_) {
    if (!file->direct()) {
      file->rename();
    }
  }
  for (const auto& file : files_) {
    if (!file->direct()) {
      file->settle();
    }
  }
}

void Outputs::commit_streams() {
  for (const auto& file : files_) {
    if (file->direct()) {
      file->commit();
    }
  }
}

}  // namespace itspace::io
