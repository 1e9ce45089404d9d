// SPDX-License-Identifier: Apache-2.0
#include "targets/stream_rows.hpp"

#include "core/basis.hpp"
#include "core/lapack.hpp"
#include "kernels/stacked_rows.hpp"
#include "kernels/stream_loops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace itspace {

using kernels::Range;
using kernels::run_parts;

namespace {

constexpr Index tile = 64;  // columns at a time

template <Storage Scalar>
Index rows_of(std::span<const ScaledRows<Scalar>> pieces) {
  Index rows = 0;
  for (const auto& piece : pieces) rows += piece.rows.rows();
  return rows;
}

// work(rows, sums) adds a value for each column to sums that are the thread's own; finish(j, sum) is told those of all.
// Threads share the rows here, and not the columns: memory that nobody has read yet is read fastest in long runs.
template <class Work, class Finish>
void add_up_rows(Index rows, Index cols, const Work& work, const Finish& finish) {
  constexpr double of_a_value = 8;
  constexpr Index line = 8;  // values: no two threads add to the same
  const Index parts =
      std::min(rows, kernels::parts_for(of_a_value * static_cast<double>(rows) * static_cast<double>(cols)));
  const Index stride = (cols + line - 1) / line * line;
  double* sums = kernels::thread_scratch<double, kernels::Scratch::partial_sums>(parts * stride);
  run_parts(parts, [&](Index part) {
    std::fill_n(sums + part * stride, cols, 0.0);
    work(kernels::part_of(rows, parts, part), sums + part * stride);
  });
  for_columns(parts, cols, [&](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) {
      double sum = sums[j];
      for (Index p = 1; p < parts; ++p) sum += sums[p * stride + j];
      finish(j, sum);
    }
  });
}

// Which rows make which direction.
template <Storage Scalar>
std::vector<kernels::AddedRow<Scalar>> directions_of(std::span<const ScaledRows<Scalar>> pieces, Index known,
                                                     Index count, double size, const Random& random) {
  // At least a third of the directions, and all that have no known row, look for what is new.
  const Index pure = std::min(known, count - std::min(count, std::max<Index>(4, count / 3)));
  std::vector<kernels::AddedRow<Scalar>> all;
  all.reserve(static_cast<std::size_t>(rows_of(pieces)));
  Index number = 0;
  for (const auto& piece : pieces) {
    const auto factor = static_cast<Scalar>(piece.factor / size);
    for (Index i = 0; i < piece.rows.rows(); ++i, ++number) {
      const Index fresh = number - known;
      const Index to = fresh < 0 ? number : pure + (known - pure + fresh) % (count - pure);
      if (to >= count) continue;
      const bool negative = fresh >= 0 && (random.bits(static_cast<std::uint64_t>(fresh)) & 1) != 0;
      all.push_back({piece.rows.data() + i * piece.rows.outerStride(), to, negative ? -factor : factor});
    }
  }
  return all;
}

// Columns [begin, end) of all the directions, a row of `out` for each column.
template <Storage Scalar>
void add_up(const std::vector<kernels::AddedRow<Scalar>>& directions, Index count, const Range& columns, Scalar* out,
            Index stride) {
  const auto& loops = kernels::stream_loops<Scalar>();
  Scalar* sums = kernels::thread_scratch<Scalar, kernels::Scratch::rows_aside>(count * tile);
  for (Index first = columns.begin; first < columns.end; first += tile) {
    const Index width = std::min(tile, columns.end - first);
    std::fill_n(sums, count * tile, Scalar(0));
    loops.add(directions.data(), static_cast<Index>(directions.size()), first, first + width, sums, tile);
    loops.transpose(sums, tile, count, width, 1.0, out + (first - columns.begin) * stride, stride);
  }
}

// The sums of squares of columns [first, first + width).
template <Storage Scalar>
std::array<double, tile> squares_of(const ConstBlockView<Scalar>& rows, Index first, Index width) {
  const auto& loops = kernels::stream_loops<Scalar>();
  std::array<double, tile> squares{};
  for (Index i = 0; i < rows.rows(); ++i)
    loops.add_squares(rows.data() + i * rows.outerStride() + first, width, squares.data());
  return squares;
}

// Rounding may have given a column more than `most`; it is scaled back.
template <Storage Scalar>
void keep_columns_within(const double* most, const Range& columns, BlockView<Scalar> rows) {
  for (Index first = columns.begin; first < columns.end; first += tile) {
    const Index width = std::min(tile, columns.end - first);
    const std::array<double, tile> squares = squares_of<Scalar>(rows, first, width);
    for (Index j = 0; j < width; ++j) {
      const double taken = squares[static_cast<std::size_t>(j)], limit = most[first + j];
      if (taken > limit) rows.col(first + j) *= static_cast<Scalar>(std::sqrt(limit / taken));
    }
  }
}

}  // namespace

template <Storage Scalar>
CentredRows<Scalar> centred_about_mean(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& shares) {
  const Index d = batch.cols();
  std::vector<const Scalar*> rows;
  std::vector<double> counted, roots;
  rows.reserve(static_cast<std::size_t>(batch.rows()));
  counted.reserve(rows.capacity());
  roots.reserve(rows.capacity());
  double total = 0;
  for (Index i = 0; i < batch.rows(); ++i) {
    const double share = shares.size() > 0 ? shares(i) : 1.0;
    if (!(share > 0)) continue;
    rows.push_back(batch.data() + i * batch.outerStride());
    counted.push_back(share);
    roots.push_back(std::sqrt(share));
    total += share;
  }
  const auto count = static_cast<Index>(rows.size());
  CentredRows<Scalar> out{Block<Scalar>(count, d), Vector(d), Vector(d)};
  const kernels::CentredBatch<Scalar> all{rows.data(), counted.data(), roots.data(), d, out.rows.data()};
  const auto& loops = kernels::stream_loops<Scalar>();
  add_up_rows(
      count, d, [&](const Range& range, double* sums) { loops.copy(all, range.begin, range.end, sums); },
      [&](Index j, double sum) { out.mean(j) = static_cast<double>(rows.front()[j]) + sum / total; });
  add_up_rows(
      count, d,
      [&](const Range& range, double* squares) { loops.centre(all, range.begin, range.end, out.mean.data(), squares); },
      [&](Index j, double square) { out.squares(j) = square; });
  return out;
}

template <Storage Scalar>
void keep_within(const Eigen::VectorXd& most, Block<Scalar>& rows) {
  for_columns(rows.rows(), rows.cols(), [&](Index begin, Index end) {
    keep_columns_within<Scalar>(most.data(), {begin, end}, rows);
  });
}

template <Storage Scalar>
Block<Scalar> leading_rows(std::span<const ScaledRows<Scalar>> pieces, Index known, Index kept, double size,
                           const Eigen::VectorXd& most, const Random& random) {
  const auto& loops = kernels::strip_loops<Scalar, Scalar>();
  const auto& stream_loops = kernels::stream_loops<Scalar>();
  const Index m = rows_of(pieces), d = pieces.front().rows.cols();
  const Index count = std::min({kept, m, d});
  std::vector<double> factors;
  std::vector<kernels::RowsPiece<Scalar>> stack;
  factors.reserve(pieces.size());
  for (const auto& piece : pieces) {
    factors.push_back(piece.factor / size);
    stack.push_back({piece.rows, {&factors.back(), false}});
  }
  const kernels::RowsPieces<Scalar, Scalar> all(stack);
  constexpr Index at_once = kernels::most_columns, fewest_columns = kernels::fewest_columns_of_a_part;
  const Index parts =
      std::min(kernels::parts_for(kernels::work_of(m, d, count)), (d + fewest_columns - 1) / fewest_columns);

  // products = rows Q', each thread what its columns add to it.
  const std::vector<kernels::AddedRow<Scalar>> directions = directions_of(pieces, known, count, size, random);
  Block<Scalar> products(m, count), orthonormal(m, count);
  Scalar* shares = kernels::thread_scratch<Scalar, kernels::Scratch::group_products>(parts * m * count);
  run_parts(parts, [&](Index part) {
    const Range columns = kernels::columns_of_part(d, parts, part);
    const Index width = columns.end - columns.begin;
    Scalar* own = kernels::thread_scratch<Scalar, kernels::Scratch::feature_chunk>(width * count);
    add_up(directions, count, columns, own, count);
    for (Index at = 0; at < count; at += at_once) {
      const Index cols = std::min(at_once, count - at);
      const Scalar* y = own;
      if (!loops.widths.is_one_slab(count)) {
        Scalar* slabs = kernels::thread_scratch<Scalar, kernels::Scratch::slabs>(width * loops.widths.padded(cols));
        loops.pack(ConstBlockView<Scalar>(own + at, width, cols, count), 0, width, slabs);
        y = slabs;
      }
      kernels::times_columns(loops, all, 0, m, columns, y, cols, shares + (part * count + at) * m);
    }
  });
  run_parts(std::min(parts, m), [&](Index part) {
    const Range rows = kernels::part_of(m, std::min(parts, m), part);
    for (Index at = 0; at < count; at += at_once) {
      const Index cols = std::min(at_once, count - at);
      kernels::add_up_scaled<Scalar, Scalar>(all, 0, rows.begin, rows.end, shares + at * m, parts, m * count, 1,
                                             products.middleCols(at, cols));
    }
  });
  HostSpace<Scalar> space;
  Basis basis;
  make_basis(space, products, orthonormal, basis);
  require_converged(basis.finite, "the leading directions of a batch");

  Block<Scalar> found(basis.cols, d);
  run_parts(parts, [&](Index part) {
    const Range columns = kernels::columns_of_part(d, parts, part);
    const Index width = columns.end - columns.begin;
    if (width == 0) return;
    for (Index at = 0; at < basis.cols; at += at_once) {
      const Index cols = std::min(at_once, basis.cols - at), padded = loops.widths.padded(cols);
      Scalar* sums = kernels::thread_scratch<Scalar, kernels::Scratch::slabs>(width * padded);
      std::fill_n(sums, width * padded, Scalar(0));
      kernels::for_each_run(all, 0, m, [&](const auto& piece, Index first, Index rows, Index place) {
        loops.transposed(kernels::part_of_piece(piece, first, rows, columns), 0, rows, 0, width,
                         static_cast<Scalar>(piece.factors(first)), orthonormal.block(place, at, rows, cols), sums);
      });
      for (Index slab = 0; slab < cols;) {
        const Index of_slab = loops.widths.next(cols - slab);
        stream_loops.transpose(sums + slab * width, of_slab, width, std::min(of_slab, cols - slab), size,
                               found.data() + (at + slab) * d + columns.begin, d);
        slab += of_slab;
      }
    }
    keep_columns_within<Scalar>(most.data(), columns, found);
  });
  return found;
}

template <Storage Scalar>
void gather_parts(std::span<const PartOfStream<Scalar>> parts, double weight, double unit, WholeStream<Scalar> whole) {
  const Index d = whole.means.cols();
  const double* origin = parts.front().mean;
  for_columns(whole.means.rows(), d, [&](Index begin, Index end) {
    for (Index first = begin; first < end; first += tile) {
      const Index width = std::min(tile, end - first);
      // About the first of them: where the mean is large, its digits are not spent on the differences.
      std::array<double, tile> beyond{};
      for (const auto& part : parts)
        for (Index j = 0; j < width; ++j)
          beyond[static_cast<std::size_t>(j)] += part.weight / weight * (part.mean[first + j] - origin[first + j]);
      double *variances = whole.variances + first, *diagonal = whole.diagonal + (whole.diagonal != nullptr ? first : 0);
      std::fill_n(variances, width, 0.0);
      if (diagonal != nullptr) std::fill_n(diagonal, width, 0.0);
      for (Index j = 0; j < width; ++j) whole.mean[first + j] = origin[first + j] + beyond[static_cast<std::size_t>(j)];
      Scalar* to = whole.means.data() + first;
      for (const auto& part : parts) {
        const double of_rows = part.discount * unit, of_mean = part.weight * unit;
        for (Index j = 0; j < width; ++j) {
          const double apart = part.mean[first + j] - origin[first + j] - beyond[static_cast<std::size_t>(j)];
          to[j] = static_cast<Scalar>(apart);
          variances[j] += of_rows * part.variances[first + j] + of_mean * (apart * apart);
        }
        to += whole.means.outerStride();
        if (part.rows == nullptr) continue;
        const std::array<double, tile> taken = squares_of<Scalar>(*part.rows, first, width);
        for (Index j = 0; j < width; ++j)
          diagonal[j] += of_rows * std::max(0.0, part.variances[first + j] - taken[static_cast<std::size_t>(j)]);
      }
    }
  });
}

template <Storage Scalar>
Block<Scalar> stacked(std::span<const ScaledRows<Scalar>> pieces) {
  Block<Scalar> rows(rows_of(pieces), pieces.front().rows.cols());
  Index first = 0;
  for (const auto& piece : pieces) {
    rows.middleRows(first, piece.rows.rows()) = piece.rows * static_cast<Scalar>(piece.factor);
    first += piece.rows.rows();
  }
  return rows;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                               \
  template CentredRows<Scalar> centred_about_mean<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&); \
  template Block<Scalar> leading_rows<Scalar>(std::span<const ScaledRows<Scalar>>, Index, Index, double,          \
                                              const Eigen::VectorXd&, const Random&);                             \
  template void keep_within<Scalar>(const Eigen::VectorXd&, Block<Scalar>&);                                      \
  template void gather_parts<Scalar>(std::span<const PartOfStream<Scalar>>, double, double, WholeStream<Scalar>); \
  template Block<Scalar> stacked<Scalar>(std::span<const ScaledRows<Scalar>>);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
