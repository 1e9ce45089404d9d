// SPDX-License-Identifier: Apache-2.0
//
// Rows that come one after the other, and again from the beginning: what a streamed target asks of its data.
//
//     struct Drawn : itspace::RowSource<float> {              // a complete source
//       Index cols() const override { return 512; }
//       void restart() override { next = 0; }
//       Index read(BlockView<float> out) override { ... }     // the next rows; how many there were
//     };
//
// A source is used by one thread at a time, not always the same one; one that reads anywhere lets each thread read for
// itself, which is faster. Files are sources too: io::RowFiles (row_files.hpp).
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <optional>
#include <stdexcept>
#include <string>

namespace itspace {

template <Storage Data>
class ITSPACE_API RowSource {
 public:
  virtual ~RowSource() = default;

  virtual Index cols() const = 0;
  // How many there are, where that is known before they were read.
  virtual std::optional<Index> rows() const { return std::nullopt; }

  // The next read() begins with the first row. Every sweep gives the same rows.
  virtual void restart() = 0;
  // Fills `out` from the top with the next rows and returns how many there were, 0 only behind the last one.
  // @pre out.cols() == cols().
  virtual Index read(BlockView<Data> out) = 0;

  // Whether rows can be read by their number, by many threads at once. It then has rows(), and a sweep asks for each
  // row once, after a restart(), in about this order.
  virtual bool reads_anywhere() const { return false; }
  // Fills `out` with the rows from `first` on. @pre reads_anywhere(), and there are so many.
  virtual void read_at(Index first, BlockView<Data> out) {
    static_cast<void>(first), static_cast<void>(out);
    throw std::logic_error("this source of rows does not read anywhere");
  }
  // These rows are asked for soon.
  virtual void expect(Index first, Index count) { static_cast<void>(first), static_cast<void>(count); }

  // How a message calls a row, counted from 0: "row 12 of 'b.npy'".
  virtual std::string place_of(Index row) const { return "row " + std::to_string(row); }
};

}  // namespace itspace
