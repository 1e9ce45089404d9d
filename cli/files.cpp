// SPDX-License-Identifier: Apache-2.0
//
// Files are compared by device and inode, not by name.
#include "files.hpp"

#include "interrupt.hpp"
#include "text.hpp"

#include <itspace/row_files.hpp>

#include <fmt/format.h>

#include <optional>

namespace itspace::cli {

namespace {

struct Known {
  NamedFile file;
  std::optional<io::FileIdentity> identity;
};

// What is read may be named by a pattern, or as a dataset of a file.
std::vector<Known> read_from(const NamedFiles& files) {
  std::vector<Known> known;
  for (const auto& [flag, path] : files) {
    if (path.empty()) continue;
    for (const std::filesystem::path& file : io::files_named(path == "-" ? "/dev/stdin" : path.string()))
      known.push_back({{flag, path == "-" ? path : file}, io::identity_of(file)});
  }
  return known;
}

std::vector<Known> written_to(const NamedFiles& files) {
  std::vector<Known> known;
  for (const NamedFile& file : files)
    if (!file.path.empty()) known.push_back({file, io::identity_of(file.path == "-" ? "/dev/stdout" : file.path)});
  return known;
}

std::string named(const NamedFile& file) {
  return fmt::format("{} {}", file.flag, quoted(file.path));
}

}  // namespace

void check_files(const NamedFiles& inputs, const NamedFiles& outputs) {
  const std::vector<Known> reads = read_from(inputs), writes = written_to(outputs);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    for (const Known& read : reads)
      if (io::same_file(writes[i].identity, read.identity))
        misuse(fmt::format("{} and {} are the same file: the result would destroy the input", named(writes[i].file),
                           named(read.file)),
               fmt::format("give {} another name", writes[i].file.flag));
    for (std::size_t j = 0; j < i; ++j)
      if (io::same_file(writes[i].identity, writes[j].identity))
        misuse(fmt::format("{} and {} are the same file", named(writes[j].file), named(writes[i].file)),
               "give two different files");
  }
}

void commit(io::Outputs& outputs) {
  outputs.finish();
  {
    const Uninterrupted all_or_none;
    outputs.commit_files();
  }
  outputs.commit_streams();
}

}  // namespace itspace::cli
