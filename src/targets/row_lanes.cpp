// SPDX-License-Identifier: Apache-2.0
#include "targets/row_lanes.hpp"

#include <itspace/threads.hpp>

#include "core/require.hpp"
#include "kernels/piece_loops.hpp"
#include "kernels/pool.hpp"
#include "kernels/strips.hpp"
#include "targets/finite_rows.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <concepts>
#include <exception>

namespace itspace {
namespace {

// A piece is about as large as a second-level cache, so that what is done once for each is little beside it, and is
// gone through in runs of rows that stay there between reading and summing, and between centring and the second
// product.
constexpr std::uint64_t piece_bytes = std::uint64_t(1) << 20, run_bytes = std::uint64_t(128) << 10;
constexpr Index fewest_piece_rows = 32, most_piece_rows = 1024;
// Sums are moved from Scalar to double after so many rows.
constexpr Index rows_until_moved = 1024;
// Pieces between two looks at the whole: then the threads meet, and the system is told what comes next.
constexpr Index pieces_of_a_lane = 8;

constexpr std::uint64_t size_of(Index count) {
  return static_cast<std::uint64_t>(count);
}

}  // namespace

template <Storage Scalar, Storage Data>
RowLanes<Scalar, Data>::RowLanes(Index dim) : dim_(dim) {
  const auto held = static_cast<Index>(piece_bytes / (size_of(dim) * sizeof(Data)));
  piece_rows_ = std::clamp(held, fewest_piece_rows, most_piece_rows) / kernels::strip_rows * kernels::strip_rows;
  const auto run = static_cast<Index>(run_bytes / (size_of(dim) * sizeof(Data)));
  rows_at_once_ = std::clamp(run / fewest_piece_rows * fewest_piece_rows, fewest_piece_rows, piece_rows_);
}

template <Storage Scalar, Storage Data>
Index RowLanes<Scalar, Data>::count_for(Index cols, std::uint64_t memory) const {
  // Wider blocks are for BLAS. Longer ones are no longer in cache beside the rows, and better shared between the
  // threads.
  constexpr std::uint64_t most_block_bytes = std::uint64_t(512) << 10;
  if (cols > kernels::most_strip_columns) return 0;
  const Index padded = cols > 0 ? kernels::strip_loops<Scalar, Data>().widths.padded(cols) : 0;
  const std::uint64_t block = size_of(dim_) * size_of(padded) * sizeof(Scalar);
  if (block > most_block_bytes || size_of(dim_) * sizeof(Data) * size_of(fewest_piece_rows) > piece_bytes) return 0;
  const std::uint64_t of_lane =
      size_of(dim_) * (size_of(piece_rows_ + 2) * sizeof(Data) + size_of(kernels::strip_rows + 1) * sizeof(Scalar) +
                       size_of(padded) * (sizeof(Scalar) + sizeof(double)) + 8 * sizeof(double));
  if (memory < block + of_lane) return 0;
  return std::min(threads(), static_cast<Index>((memory - block) / of_lane));
}

template <Storage Scalar, Storage Data>
RunningMean RowLanes<Scalar, Data>::sweep(RowSource<Data>& source, Index lanes, bool closely,
                                          const ConstBlockView<Scalar>& y, Block<double>& sum) {
  const Index rows = *source.rows(), pieces = (rows + piece_rows_ - 1) / piece_rows_;
  lanes = std::clamp<Index>(lanes, 1, std::max<Index>(1, pieces));
  // Rows are scaled down by about the root of their number, so that sums of squares stay in range; by a power of two,
  // which rounds nothing.
  const int half = static_cast<int>(std::bit_width(static_cast<unsigned long>(rows_until_moved + piece_rows_))) / 2;
  Product product{y.data(), y.cols(), 0, std::ldexp(1.0, -half), std::ldexp(1.0, 2 * half)};
  if (y.cols() > 0) {
    const auto& loops = kernels::strip_loops<Scalar, Data>();
    product.padded = loops.widths.padded(y.cols());
    slabs_.resize(dim_, product.padded);
    loops.pack(y, 0, dim_, slabs_.data());
    product.y = slabs_.data();
  }
  lanes_.resize(static_cast<std::size_t>(lanes));
  for (Lane& lane : lanes_) begin(lane, product.padded);

  std::vector<std::exception_ptr> failures(lanes_.size());
  std::vector<Index> failed_at(lanes_.size(), pieces);
  std::atomic<Index> end = pieces;  // the first piece that failed, if one did: those before it may fail too
  const Index at_once = pieces_of_a_lane * lanes;  // a multiple, so that each round begins with lane 0
  const auto lane_of_round = [&](Index number, Index round) {
    const auto at = static_cast<std::size_t>(number);
    const Index last = std::min(pieces, round + at_once);
    for (Index piece = round + number; piece < last && piece < end; piece += lanes) {
      const Index first = piece * piece_rows_;
      try {
        add_piece(lanes_[at], source, first, std::min(piece_rows_, rows - first), closely, product);
      } catch (...) {
        failures[at] = std::current_exception();
        failed_at[at] = piece;
        for (Index before = end; piece < before && !end.compare_exchange_weak(before, piece);) {
        }
      }
    }
  };
  for (Index round = 0; round < end; round += at_once) {
    const Index next = (round + at_once) * piece_rows_;
    if (next < rows) source.expect(next, std::min(at_once * piece_rows_, rows - next));
    kernels::run_parts(lanes, [&](Index lane) { lane_of_round(lane, round); });
  }
  if (end < pieces) {
    const auto first = std::min_element(failed_at.begin(), failed_at.end()) - failed_at.begin();
    std::rethrow_exception(failures[static_cast<std::size_t>(first)]);
  }
  add_sums(y, product, sum);
  return means_together(closely ? &Lane::close : &Lane::running);
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::begin(Lane& lane, Index padded) const {
  lane.piece.resize(piece_rows_, dim_);
  lane.joints.resize(kernels::strip_rows, dim_);
  lane.pivot.resize(1, dim_);
  lane.offset.resize(1, dim_);
  lane.shift.resize(1, dim_);
  lane.mean.resize(dim_);
  lane.w.resize(dim_, padded);
  lane.w.setZero();
  lane.sums.resize(dim_, padded);
  lane.sums.setZero();
  lane.squares.setZero(dim_);
  lane.joint_count = lane.rows_since_moved = 0;
  lane.running = lane.close = {};
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::add_piece(Lane& lane, RowSource<Data>& source, Index first, Index count, bool closely,
                                       const Product& product) {
  read(lane, source, first, count);
  gather(lane);
  if (closely) gather_closely(lane);
  const double weight = lane.running.join(count, lane.mean, lane.apart);
  if (product.cols == 0) return;
  if (weight > 0) {
    lane.joints.row(lane.joint_count) = (std::sqrt(weight) * lane.apart).template cast<Scalar>();
    if (++lane.joint_count == kernels::strip_rows) add_joints(lane, product);
  }
  multiply(lane, product);
  lane.rows_since_moved += count;
  if (lane.rows_since_moved >= rows_until_moved) move_sums(lane, product);
}

// And the sums of the rows about the first of them, each run of rows while it is in the cache.
template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::read(Lane& lane, RowSource<Data>& source, Index first, Index count) const {
  const auto& loops = kernels::piece_loops<Data>();
  // What is missed of a mean counts once, not squared, where pieces are joined: it must be as fine as the products.
  constexpr bool in_double = !std::same_as<Scalar, Data>;
  lane.count = count;
  lane.mean.setZero(dim_);
  for (Index row = 0; row < count; row += rows_at_once_) {
    const Index rows = std::min(rows_at_once_, count - row);
    source.read_at(first + row, lane.piece.middleRows(row, rows));
    if (row == 0) lane.pivot = lane.piece.row(0);
    loops.add(lane.piece.data() + row * dim_, rows, dim_, lane.pivot.data(), in_double, lane.mean.data());
  }
  if (lane.mean.allFinite()) return;
  require_finite(source, lane.piece.topRows(count), first);
  lane.mean.setZero();  // it was the sum that was out of range
  loops.add(lane.piece.data(), count, dim_, lane.pivot.data(), true, lane.mean.data());
}

// The mean of the piece, less the origin, and the two parts of it that rows are centred by: the first row is one.
template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::gather(Lane& lane) const {
  if (lane.running.count == 0) lane.origin = lane.pivot.template cast<double>();
  lane.mean /= static_cast<double>(lane.count);
  if constexpr (std::same_as<Scalar, Data>) {
    lane.offset = lane.mean.template cast<Data>();
  } else {
    lane.shift = lane.pivot.template cast<Scalar>() + lane.mean;
  }
  lane.mean += lane.pivot.template cast<double>() - lane.origin;
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::gather_closely(Lane& lane) const {
  const auto& loops = kernels::piece_loops<Data>();
  lane.close_mean.setZero(dim_);
  loops.add(lane.piece.data(), lane.count, dim_, lane.pivot.data(), true, lane.close_mean.data());
  lane.close_mean /= static_cast<double>(lane.count);
  loops.add_squares(lane.piece.data(), lane.count, dim_, lane.pivot.data(), lane.close_mean.data(),
                    lane.squares.data());
  lane.close_mean += lane.pivot.template cast<double>() - lane.origin;
  const double weight = lane.close.join(lane.count, lane.close_mean, lane.apart);
  lane.close.scatter += weight * lane.apart.squaredNorm();
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::multiply(Lane& lane, const Product& product) const {
  const auto& loops = kernels::strip_loops<Scalar, Data>();
  for (Index row = 0; row < lane.count; row += rows_at_once_) {
    const Index rows = std::min(rows_at_once_, lane.count - row);
    Data* from = lane.piece.data() + row * dim_;
    const Scalar* shift = nullptr;
    if constexpr (std::same_as<Scalar, Data>) {
      kernels::piece_loops<Data>().centre(from, rows, dim_, lane.pivot.data(), lane.offset.data());
    } else {
      shift = lane.shift.data();
    }
    loops.squared({from, dim_, rows, dim_, shift}, 0, rows, product.y, product.cols, {&product.factor, false},
                  lane.w.data());
  }
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::add_joints(Lane& lane, const Product& product) const {
  if (lane.joint_count == 0) return;
  const auto& loops = kernels::strip_loops<Scalar, Scalar>();
  loops.squared({lane.joints.data(), dim_, lane.joint_count, dim_}, 0, lane.joint_count, product.y, product.cols,
                {&product.factor, false}, lane.w.data());
  lane.joint_count = 0;
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::move_sums(Lane& lane, const Product& product) const {
  kernels::piece_loops<Scalar>().move(lane.w.data(), product.unit, lane.w.size(), lane.sums.data());
  lane.rows_since_moved = 0;
}

// Lanes are joined to each other as pieces are, in their order.
template <Storage Scalar, Storage Data>
RunningMean RowLanes<Scalar, Data>::means_together(RunningMean Lane::*running) const {
  RunningMean all;
  Eigen::RowVectorXd apart;
  for (const Lane& lane : lanes_) {
    const RunningMean& own = lane.*running;
    if (own.count == 0) continue;
    const double weight = all.join(own.count, own.mean + (lane.origin - origin()), apart);
    all.scatter += own.scatter + lane.squares.sum() + weight * apart.squaredNorm();
  }
  return all;
}

template <Storage Scalar, Storage Data>
void RowLanes<Scalar, Data>::add_sums(const ConstBlockView<Scalar>& y, const Product& product, Block<double>& sum) {
  if (product.cols == 0) return;
  const auto& loops = kernels::strip_loops<Scalar, Data>();
  RunningMean all;
  Eigen::RowVectorXd apart;
  for (Lane& lane : lanes_) {
    if (lane.running.count == 0) continue;
    const double weight = all.join(lane.running.count, lane.running.mean + (lane.origin - origin()), apart);
    add_joints(lane, product);
    move_sums(lane, product);
    const Eigen::RowVectorXd along = weight * (apart * y.template cast<double>());
    for (Index first = 0; first < product.cols;) {
      const Index width = loops.widths.next(product.cols - first), cols = std::min(width, product.cols - first);
      const double* slab = lane.sums.data() + first * dim_;
      for (Index i = 0; i < dim_; ++i)
        for (Index j = 0; j < cols; ++j) sum(i, first + j) += slab[i * width + j] + apart(i) * along(first + j);
      first += width;
    }
  }
}

template class RowLanes<float, float>;
template class RowLanes<double, double>;
template class RowLanes<double, float>;

}  // namespace itspace
