// SPDX-License-Identifier: Apache-2.0
//
// The rows of files, one after the other, as a source for a streamed target (streamed.hpp).
//
//     io::RowFiles files({"2024-*.npy", "extra.h5:/features"});
//     files.rows(); files.cols(); files.type();
//     StreamedFeatures<float> target(files.source<float>());
//
// A file is an .npy in C order, a dataset of an HDF5 file (where this library was built with HDF5), or a Parquet or
// Arrow IPC file (where it was built with Arrow), known by its name: .parquet, .pq, .arrow, .feather, .ipc. Such a file
// holds columns of numbers, which are all used, or one column of lists of a fixed length. A header is examined at once,
// values are read with the rows, straight into the block that asks for them, and no more of them is ever in memory than
// reader_bytes() says. All files hold rows of the same length and type. A file that is not the one it was, by size,
// time or place on the disk, ends the sweep.
#pragma once

#include <itspace/export.hpp>
#include <itspace/row_source.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace itspace::io {

struct RowFile;  // inside

class ITSPACE_API RowFiles {
 public:
  // Names of files, `file.h5:/path` of datasets, or patterns of either (*, ?, [a-z]), which stand for all files that
  // match, in the order of their names. @throws std::runtime_error that names the file, or both files.
  explicit RowFiles(const std::vector<std::string>& names);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  const std::string& type() const { return type_; }  // "float32", ...: that of all files
  std::uint64_t bytes() const { return bytes_; }     // of the values
  // What reading takes beside the blocks that are read into: what is unpacked of a dataset, a Parquet or Arrow file.
  std::uint64_t reader_bytes() const { return reader_bytes_; }
  // The same for messages: "for a row group of 'x.parquet', of up to 1000 rows"; and what would make it less, if
  // something would: "write smaller row groups". Empty where nothing is unpacked.
  const std::string& reader_holds() const { return reader_holds_; }
  const std::string& reader_remedy() const { return reader_remedy_; }
  std::vector<std::filesystem::path> paths() const;
  // Those of one dimension, as they were named: n values are n rows of one. Labels by mistake look like that, too.
  std::vector<std::string> flat_files() const;
  bool all_square() const;  // each has as many rows as columns: covariances by mistake look like that

  // The rows as they lie in the files, converted to Data. Each has a place of its own.
  template <Storage Data>
  std::shared_ptr<RowSource<Data>> source() const {
    return source<Data>(0, rows_);
  }
  // `count` of them from row `first` on: the share of one reader of many. No other file is opened.
  // @throws std::invalid_argument where there are no such rows.
  template <Storage Data>
  std::shared_ptr<RowSource<Data>> source(Index first, Index count) const;

 private:
  std::shared_ptr<const std::vector<RowFile>> files_;
  Index rows_ = 0, cols_ = 0;
  std::string type_;
  std::uint64_t bytes_ = 0, reader_bytes_ = 0;
  std::string reader_holds_, reader_remedy_;
};

// Whether a name is one that only RowFiles opens: a pattern, a dataset of an HDF5 file, a Parquet or Arrow file.
ITSPACE_API bool names_row_files(const std::string& name);

// The files that a name stands for: those that match a pattern, that of a dataset, or the one of just that name. None
// where none matches.
ITSPACE_API std::vector<std::filesystem::path> files_named(const std::string& name);

}  // namespace itspace::io
