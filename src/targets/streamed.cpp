// SPDX-License-Identifier: Apache-2.0
#include <itspace/streamed.hpp>

#include "core/feature_moments.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/pool.hpp"
#include "targets/chunk_relay.hpp"
#include "targets/row_lanes.hpp"
#include "targets/running_mean.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>

namespace itspace {
namespace {

// A chunk is large enough that what is done once for each (d x r in double) is little beside it, and no larger: then
// it is still in a cache when it is computed with.
constexpr std::uint64_t usual_chunk_bytes = std::uint64_t(8) << 20;
constexpr Index usual_rows = 64, fewest_rows = 8;

template <Storage Data>
constexpr std::uint64_t row_bytes(Index dim) {
  return static_cast<std::uint64_t>(dim) * sizeof(Data);
}

// Beside the rows themselves: the means of both chunks, of all rows and of the first sweep, and the origin, in double.
std::uint64_t mean_bytes(Index dim) {
  return 5 * static_cast<std::uint64_t>(dim) * sizeof(double);
}

template <Storage Data>
Index rows_of_a_chunk(Index dim, std::uint64_t memory) {
  const std::uint64_t held = (memory - mean_bytes(dim)) / (2 * row_bytes<Data>(dim));
  const std::uint64_t usual =
      std::max(usual_chunk_bytes / row_bytes<Data>(dim), static_cast<std::uint64_t>(usual_rows));
  // Whole strips of the kernels, so that all chunks but the last have none left over.
  return static_cast<Index>(std::min(held, usual)) / fewest_rows * fewest_rows;
}

template <Storage Data>
std::uint64_t bytes_of_chunks(Index dim, Index chunk_rows) {
  return mean_bytes(dim) + 2 * static_cast<std::uint64_t>(chunk_rows) * row_bytes<Data>(dim);
}

}  // namespace

template <Storage Scalar, Storage Data>
struct StreamedFeatures<Scalar, Data>::State {
  State(std::shared_ptr<RowSource<Data>> rows, std::uint64_t memory)
      : source(std::move(rows)),
        dim(source->cols()),
        relay(rows_of_a_chunk<Data>(dim, memory), dim),
        lanes(dim),
        memory_of_lanes(memory - bytes_of_chunks<Data>(dim, relay.chunk_rows())),
        shift(1, dim),
        apart_and_delta(dim, 2) {}

  std::mutex one_sweep;
  std::shared_ptr<RowSource<Data>> source;
  Index dim;
  ChunkRelay<Data> relay;
  RowLanes<Scalar, Data> lanes;
  std::uint64_t memory_of_lanes;
  Index sweeps = 0;
  RunningMean first;  // what the first sweep gathered
  // Its mean in two parts, the first row and the rest, whose sum is rounded.
  Eigen::RowVectorXd first_row, mean_less_first_row;
  // Of a sweep.
  Block<Scalar> shift, apart_and_delta, product;
  Block<double> sum;
  Eigen::RowVectorXd apart;

  void gather();
  void sweep(const ConstBlockView<Scalar>& y, BlockView<Scalar> out);
  RunningMean sweep_by_relay(bool first_sweep, const ConstBlockView<Scalar>& y);
  void add(const Chunk<Data>& chunk, double weight, const ConstBlockView<Scalar>& y);
  void check(const RunningMean& now, bool by_lanes);
};

template <Storage Scalar, Storage Data>
StreamedFeatures<Scalar, Data>::StreamedFeatures(std::shared_ptr<RowSource<Data>> rows, std::uint64_t memory) {
  require(rows != nullptr, "there is no source of rows; give one");
  const Index dim = rows->cols();
  require(dim >= 1, "the rows have ", dim, " values; each row must hold at least one");
  require(memory >= least_memory(dim), "the memory for chunks is ", memory, " bytes, and two chunks of ", fewest_rows,
          " rows of ", dim, " values need ", least_memory(dim), "; allow at least that");
  state_ = std::make_shared<State>(std::move(rows), memory);
}

template <Storage Scalar, Storage Data>
std::uint64_t StreamedFeatures<Scalar, Data>::least_memory(Index dim) {
  return bytes_of_chunks<Data>(dim, fewest_rows);
}

template <Storage Scalar, Storage Data>
Index StreamedFeatures<Scalar, Data>::dim() const {
  return state_->dim;
}

template <Storage Scalar, Storage Data>
Index StreamedFeatures<Scalar, Data>::chunk_rows() const {
  return state_->relay.chunk_rows();
}

template <Storage Scalar, Storage Data>
Index StreamedFeatures<Scalar, Data>::sweeps() const {
  const std::lock_guard lock(state_->one_sweep);
  return state_->sweeps;
}

template <Storage Scalar, Storage Data>
double StreamedFeatures<Scalar, Data>::trace() const {
  const std::lock_guard lock(state_->one_sweep);
  state_->gather();
  return state_->first.scatter / static_cast<double>(state_->first.count - 1);
}

template <Storage Scalar, Storage Data>
Vector StreamedFeatures<Scalar, Data>::mean() const {
  const std::lock_guard lock(state_->one_sweep);
  state_->gather();
  return state_->first.mean.transpose();
}

template <Storage Scalar, Storage Data>
Vector StreamedFeatures<Scalar, Data>::mean_less(const Vector& origin) const {
  const std::lock_guard lock(state_->one_sweep);
  state_->gather();
  return (state_->first_row.transpose() - origin) + state_->mean_less_first_row.transpose();
}

template <Storage Scalar, Storage Data>
Index StreamedFeatures<Scalar, Data>::samples() const {
  const std::lock_guard lock(state_->one_sweep);
  state_->gather();
  return state_->first.count;
}

template <Storage Scalar, Storage Data>
void StreamedFeatures<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  if (out.size() == 0) return;
  const std::lock_guard lock(state_->one_sweep);
  state_->sweep(y, out);
}

template <Storage Scalar, Storage Data>
void StreamedFeatures<Scalar, Data>::State::gather() {
  const Block<Scalar> none(dim, 0);
  Block<Scalar> out(dim, 0);
  if (sweeps == 0) sweep(none, out);
}

template <Storage Scalar, Storage Data>
void StreamedFeatures<Scalar, Data>::State::sweep(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) {
  const bool first_sweep = sweeps == 0;
  sum.resize(dim, y.cols());
  sum.setZero();
  const Index lane_count = source->reads_anywhere() ? lanes.count_for(y.cols(), memory_of_lanes) : 0;
  if (lane_count > 0) source->restart();
  RunningMean now =
      lane_count > 0 ? lanes.sweep(*source, lane_count, first_sweep, y, sum) : sweep_by_relay(first_sweep, y);
  const Eigen::RowVectorXd& origin = lane_count > 0 ? lanes.origin() : relay.origin();
  if (first_sweep) {
    check_features(now.count, dim, {}, {.features = "the stream"});
    first_row = origin;
    mean_less_first_row = now.mean;
  }
  if (now.count > 0) now.mean += origin;
  if (first_sweep) {
    first = std::move(now);
  } else {
    check(now, lane_count > 0);
  }
  ++sweeps;
  const double scale = 1 / static_cast<double>(first.count - 1);
  for (Index i = 0; i < dim; ++i) out.row(i) = (scale * sum.row(i)).template cast<Scalar>();
}

template <Storage Scalar, Storage Data>
RunningMean StreamedFeatures<Scalar, Data>::State::sweep_by_relay(bool first_sweep, const ConstBlockView<Scalar>& y) {
  RunningMean now;
  product.resize(dim, y.cols());
  relay.sweep(*source, first_sweep, [&](const Chunk<Data>& chunk) {
    const double weight = now.join(chunk.count, chunk.mean, apart);
    now.scatter += chunk.scatter + weight * apart.squaredNorm();
    if (y.cols() > 0) add(chunk, weight, y);
  });
  return now;
}

// sum += P_c + weight (m_c - m)(m_c - m)'y, where the rows of P_c are shifted by m_c rounded to Scalar, and what that
// leaves of m_c, delta, is taken off: - n_c delta delta'y.
template <Storage Scalar, Storage Data>
void StreamedFeatures<Scalar, Data>::State::add(const Chunk<Data>& chunk, double weight,
                                                const ConstBlockView<Scalar>& y) {
  shift = (relay.origin() + chunk.mean).template cast<Scalar>();
  apart_and_delta.col(0) = apart.transpose().template cast<Scalar>();
  apart_and_delta.col(1) =
      (chunk.mean - (shift.template cast<double>() - relay.origin())).transpose().template cast<Scalar>();
  // Rows are scaled down by about the root of their number, so that sums of squares stay in range; by a power of two,
  // which rounds nothing.
  const auto size = static_cast<unsigned long>(relay.chunk_rows());
  const int half = static_cast<int>(std::bit_width(size)) / 2;
  const double factor = std::ldexp(1.0, -half), unit = std::ldexp(1.0, 2 * half);
  kernels::squared_gemm<Scalar, Data>(chunk.rows.topRows(chunk.count), shift.data(), {&factor, false}, y, product);
  Small along;  // y'[apart, delta]
  const GramRequest<ConstBlockView<Scalar>> request[] = {{y, apart_and_delta, along}};
  kernels::grams<Scalar>(request);
  const Eigen::RowVectorXd by_apart = weight * along.col(0).transpose(),
                           by_delta = static_cast<double>(chunk.count) * along.col(1).transpose();
  const Index parts = kernels::parts_for(4.0 * static_cast<double>(sum.size()));
  kernels::run_parts(parts, [&](Index part) {
    const kernels::Range range = kernels::part_of(dim, parts, part);
    for (Index i = range.begin; i < range.end; ++i)
      sum.row(i) += unit * product.row(i).template cast<double>() +
                    static_cast<double>(apart_and_delta(i, 0)) * by_apart -
                    static_cast<double>(apart_and_delta(i, 1)) * by_delta;
  });
}

// The rows may come in another order than before, but they must be the same ones.
template <Storage Scalar, Storage Data>
void StreamedFeatures<Scalar, Data>::State::check(const RunningMean& now, bool by_lanes) {
  if (now.count != first.count)
    throw std::runtime_error(text("the stream gave ", first.count, " rows in its first sweep and ", now.count,
                                  " in this one; a source must give the same rows each time it is restarted"));
  // Lanes add up the mean in the type of the data.
  const double rounding = std::max(1e-8, by_lanes ? 16.0 * std::numeric_limits<Data>::epsilon() : 0.0);
  const double size = first.mean.norm() + std::sqrt(first.scatter / static_cast<double>(first.count));
  if (!((now.mean - first.mean).norm() <= rounding * size))
    throw std::runtime_error(
        text("the mean of the stream has moved by ", (now.mean - first.mean).norm(),
             " since its first sweep; a source must give the same rows each time it is restarted"));
}

template class StreamedFeatures<float>;
template class StreamedFeatures<double>;
template class StreamedFeatures<double, float>;

}  // namespace itspace
