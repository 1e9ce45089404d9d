// SPDX-License-Identifier: Apache-2.0
//
// One file of rows: what is known of it, and rows out of it.
#pragma once

#include <itspace/row_files.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "arrow_file.hpp"
#include "npy_header.hpp"
#include "regular_file.hpp"

namespace itspace::io {

enum class RowFileKind { npy, dataset, parquet, arrow_ipc };

struct RowFile {
  std::filesystem::path path;
  RowFileKind kind = RowFileKind::npy;
  std::string dataset;  // of an HDF5 file
  Index rows = 0, cols = 0;
  bool flat = false;  // of one dimension: its values are a column
  ElementType type = ElementType::float64;
  bool big_endian = false;
  std::uint64_t offset = 0;        // of the values in an .npy
  std::uint64_t reader_bytes = 0;  // RowFiles::reader_bytes, and what takes them
  std::string reader_holds, reader_remedy;
  std::shared_ptr<const ArrowFacts> arrow;  // of a Parquet or Arrow file
  FileState state;

  std::string name() const;  // for messages, in quotes
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(cols) * size_in_bytes(type);
  }
};

// An open file of rows.
template <Storage Data>
class OpenRowFile {
 public:
  virtual ~OpenRowFile() = default;
  // Rows first, first + 1, ... of an .npy by many threads at once, if need be. @pre `out` is contiguous and they are
  // rows of the file.
  virtual void read(Index first, BlockView<Data> out) = 0;
};

// Examines the header.
RowFile examine_npy(const std::filesystem::path& path);
RowFile examine_dataset(const std::filesystem::path& path, const std::string& dataset);
RowFile examine_arrow(const std::filesystem::path& path, RowFileKind kind);

// `file` is open as well, so that its state can be asked.
template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_npy_rows(const RowFile& info, const RegularFile& file);
template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_dataset_rows(const RowFile& info);
template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_arrow_rows(const RowFile& info, const RegularFile& file);

}  // namespace itspace::io
