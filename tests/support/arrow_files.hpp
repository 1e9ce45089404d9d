// SPDX-License-Identifier: Apache-2.0
//
// Parquet and Arrow IPC files for the tests, written by Arrow itself. Arrow's headers stay in arrow_files.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fixtures {

struct ArrowColumnOf {
  std::string name;
  std::string type;  // Arrow's name of it: "float", "int16", "string", ...
  std::vector<double> values;
  std::vector<std::size_t> nulls;
};

struct ArrowWriting {
  std::int64_t part_rows = 1 << 20;  // of a row group or a record batch
  bool packed = false;               // Snappy or LZ4
  std::int64_t page_bytes = 1 << 20;
};

// By the ending of its name: .parquet, or else Arrow IPC.
void write_arrow(const std::filesystem::path& path, const std::vector<ArrowColumnOf>& columns,
                 const ArrowWriting& writing = {});
// One column of lists of `list_size` values.
void write_arrow_lists(const std::filesystem::path& path, const ArrowColumnOf& values, std::int64_t list_size,
                       const std::vector<std::size_t>& null_rows = {}, const ArrowWriting& writing = {});

}  // namespace fixtures
