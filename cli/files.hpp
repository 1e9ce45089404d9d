// SPDX-License-Identifier: Apache-2.0
//
// The files of a command: which it reads and which it writes, so that no output destroys an input or another output.
#pragma once

#include <itspace/align.hpp>
#include <itspace/io.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace itspace::cli {

struct NamedFile {
  std::string flag;  // as the user typed it: --out
  std::filesystem::path path;
};
using NamedFiles = std::vector<NamedFile>;

// Refuses an output that is also an input, and two outputs that are one file, by whatever names and links they are
// reached. A file that was not given has an empty path; "-" is a standard stream. Devices and pipes may be named twice.
// Every command that writes calls it first. @throws std::invalid_argument naming both flags.
void check_files(const NamedFiles& inputs, const NamedFiles& outputs);

// All of them, and no signal between two renames.
void commit(io::Outputs& outputs);

// The factor of a run and, where it has a path, the trace that is true of it: both or neither.
template <Storage Scalar>
void save_run(const std::filesystem::path& out, const std::filesystem::path& trace, Result<Scalar>& result) {
  io::Outputs outputs;
  io::save_npy<Scalar>(outputs, out, result.factor);
  result.trace.factor_checksum = io::checksum_of<Scalar>(result.factor);
  if (!trace.empty()) io::save_text(outputs, trace, io::to_json(result.trace));
  commit(outputs);
}

}  // namespace itspace::cli
