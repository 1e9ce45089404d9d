// SPDX-License-Identifier: Apache-2.0
//
// Rows in memory as a source, handed out in pieces of its own size, as files and Python's iterables do.
#pragma once

#include <itspace/row_source.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace itspace::test {

template <Storage Data>
class HeldRows : public RowSource<Data> {
 public:
  explicit HeldRows(Block<Data> rows, Index piece = 5) : values(std::move(rows)), piece_(piece) {}

  Index cols() const override { return values.cols(); }
  std::optional<Index> rows() const override { return values.rows(); }
  void restart() override {
    next_ = 0;
    ++restarts;
  }
  Index read(BlockView<Data> out) override {
    const Index count = std::min({out.rows(), piece_, values.rows() - next_});
    if (count > 0) out.topRows(count) = values.middleRows(next_, count);
    next_ += count;
    return count;
  }

  Block<Data> values;
  Index restarts = 0;

 private:
  Index next_ = 0, piece_;
};

// The same, read anywhere and by many threads.
template <Storage Data>
class RowsAnywhere : public HeldRows<Data> {
 public:
  using HeldRows<Data>::HeldRows;

  bool reads_anywhere() const override { return true; }
  void read_at(Index first, BlockView<Data> out) override {
    rows_read += out.rows();
    out = this->values.middleRows(first, out.rows());
  }

  std::atomic<Index> rows_read = 0;
};

}  // namespace itspace::test
