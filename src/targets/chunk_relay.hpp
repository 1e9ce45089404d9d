// SPDX-License-Identifier: Apache-2.0
//
// Two chunks of rows that go back and forth between a thread that reads and one that computes.
#pragma once

#include <itspace/row_source.hpp>

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace itspace {

template <Storage Data>
struct Chunk {
  Block<Data> rows;  // the first `count` of them
  Index count = 0;
  Eigen::RowVectorXd mean;  // less the origin
  double scatter = 0;       // sum ||z_i - mean||^2, where it was asked for
};

template <Storage Data>
class ChunkRelay {
 public:
  ChunkRelay(Index chunk_rows, Index cols);

  Index chunk_rows() const { return chunks_[0].rows.rows(); }
  // The first row of a sweep, once its first chunk was visited. Means are taken about it, so that a difference of two
  // is as accurate as the rows are spread, whatever they are spread about.
  const Eigen::RowVectorXd& origin() const { return origin_; }

  // All rows of the source once, by visit(chunk) on the calling thread while another one reads ahead. What either of
  // them throws ends the sweep and is thrown here. Throws std::invalid_argument, with its place, where a value is not
  // finite.
  void sweep(RowSource<Data>& source, bool with_scatter, const std::function<void(const Chunk<Data>&)>& visit);

 private:
  void read_all(RowSource<Data>& source, bool with_scatter);
  bool fill(RowSource<Data>& source, Chunk<Data>& chunk, Index first_row, bool with_scatter);

  std::array<Chunk<Data>, 2> chunks_;
  Eigen::RowVectorXd origin_;
  // Under the lock: how many chunks were read and computed so far in this sweep, and how it ended.
  std::mutex mutex_;
  std::condition_variable changed_;
  Index read_ = 0, used_ = 0;
  bool read_all_ = false, given_up_ = false;
  std::exception_ptr failure_;
};

}  // namespace itspace
