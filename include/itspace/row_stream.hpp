// SPDX-License-Identifier: Apache-2.0
//
// Arrays a chunk of rows at a time: for files larger than memory, and for pipes.
//
//     io::RowReader in("X.npy");
//     io::RowWriter<float> out("X2.npy", in.rows(), in.cols());
//     Block<float> chunk(1024, in.cols());
//     while (const Index count = in.read<float>(chunk)) out.write(chunk.topRows(count));
//     out.commit();
#pragma once

#include <itspace/io.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>

namespace itspace::io {

class ITSPACE_API RowReader {
 public:
  // A file that open_array opens (mapped), or "-": standard input, an .npy in C order that is read as it comes.
  explicit RowReader(const std::filesystem::path& path);
  ~RowReader();
  RowReader(RowReader&&) noexcept;

  const ArrayInfo& info() const;
  Index rows() const;
  Index cols() const;

  // Fills `out` from the top with the next rows and returns how many there were: out.rows(), fewer at the end, then 0.
  // @pre out.cols() == cols(). Throws std::runtime_error where a stream ends before its last row, and at the last row
  // of an .npz whose checksum is not that of the rows: then what was read before is damaged too.
  template <Storage Scalar>
  Index read(BlockView<Scalar> out);

 private:
  struct Source;
  std::unique_ptr<Source> source_;
};

// Writes rows x cols values: header first, rows as they come. A regular file appears at commit(), whole, and not at all
// without it; "-", standard output, gets what was written at once.
template <Storage Scalar>
class ITSPACE_API RowWriter {
 public:
  RowWriter(const std::filesystem::path& path, Index rows, Index cols);
  ~RowWriter();
  RowWriter(RowWriter&&) noexcept;

  void write(const ConstBlockView<Scalar>& rows);
  // @pre all rows were written.
  void commit();

 private:
  struct Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace itspace::io
