// SPDX-License-Identifier: Apache-2.0
//
// A sweep over rows that can be read anywhere, without a reader: each thread has a lane, reads a piece of rows into its
// own cache, and multiplies it there before it reads the next. Piece k belongs to lane k modulo their number, which
// adds up its own sums; these are put together at the end. So bits depend on the number of lanes and not on who was
// faster.
//
// In a lane a piece is centred at its own mean m_c, and joined to the rows before it, n of mean m, by one more row:
//
//     sum_i (z_i - m_c)(z_i - m_c)' + e e',    e = sqrt(n n_c/(n + n_c)) (m_c - m).
#pragma once

#include <itspace/row_source.hpp>

#include "targets/running_mean.hpp"

#include <cstdint>
#include <vector>

namespace itspace {

template <Storage Scalar, Storage Data>
class RowLanes {
 public:
  explicit RowLanes(Index dim);

  // How many lanes a product with so many columns has, within so much memory; 0: none, it is not for lanes.
  Index count_for(Index cols, std::uint64_t memory) const;

  // sum = sum_i (z_i - m)(z_i - m)'y over all rows, m being their mean, which is returned, less origin(). `closely`:
  // it is summed in double throughout, and there is a scatter; the bits of the sum are the same. What reading throws,
  // and std::invalid_argument for a value that is not finite, is thrown for the first piece where it happens.
  // @pre source.reads_anywhere(), and it was restarted.
  RunningMean sweep(RowSource<Data>& source, Index lanes, bool closely, const ConstBlockView<Scalar>& y,
                    Block<double>& sum);
  // The first row.
  const Eigen::RowVectorXd& origin() const { return lanes_.front().origin; }

 private:
  struct Lane {
    Block<Data> piece;
    Block<Scalar> joints;  // the rows e, until there is a strip of them
    Index count = 0;       // rows in the piece
    Index joint_count = 0, rows_since_moved = 0;
    Block<Scalar> w;     // in slabs
    Block<double> sums;  // likewise
    Block<Data> pivot, offset;
    Block<Scalar> shift;
    Eigen::RowVectorXd origin, mean, apart;
    RunningMean running;  // what the products are centred at
    // And to all digits, where that is asked for: a product must not depend on it.
    Eigen::RowVectorXd close_mean;
    RunningMean close;
    Vector squares;
  };
  struct Product {
    const Scalar* y;  // in slabs
    Index cols, padded;
    double factor, unit;  // of each row, a power of two; and what takes it back
  };

  void begin(Lane& lane, Index padded) const;
  void add_piece(Lane& lane, RowSource<Data>& source, Index first, Index count, bool closely, const Product& product);
  void read(Lane& lane, RowSource<Data>& source, Index first, Index count) const;
  void gather(Lane& lane) const;
  void gather_closely(Lane& lane) const;
  void multiply(Lane& lane, const Product& product) const;
  void add_joints(Lane& lane, const Product& product) const;
  void move_sums(Lane& lane, const Product& product) const;
  RunningMean means_together(RunningMean Lane::*running) const;
  void add_sums(const ConstBlockView<Scalar>& y, const Product& product, Block<double>& sum);

  Index dim_, piece_rows_;
  Index rows_at_once_;  // of a piece, that are read and added up, or centred and multiplied, at a time
  std::vector<Lane> lanes_;
  Block<Scalar> slabs_;
};

}  // namespace itspace
