// SPDX-License-Identifier: Apache-2.0
#include "targets/stream_rows.hpp"

#include "core/basis.hpp"
#include "core/lapack.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace itspace {

using kernels::Op;
using kernels::part_of;
using kernels::Range;
using kernels::run_parts;

namespace {

// Columns are cut, never rows: sums over rows are then the same whatever the number of threads.
constexpr Index tile = 64;

// Parts of a sweep that does a few operations with each value.
Index parts_of_columns(Index rows, Index cols) {
  constexpr double work_of_a_value = 8;
  const double work = work_of_a_value * static_cast<double>(rows) * static_cast<double>(cols);
  return std::min(kernels::parts_for(work), (cols + tile - 1) / tile);
}

template <Storage Scalar>
Index rows_of(std::span<const ScaledRows<Scalar>> pieces) {
  Index rows = 0;
  for (const auto& piece : pieces) rows += piece.rows.rows();
  return rows;
}

// Q' (d x count), divided by `size`.
template <Storage Scalar>
Block<Scalar> directions_of(std::span<const ScaledRows<Scalar>> pieces, Index known, Index count, double size,
                            const Random& random) {
  const Index d = pieces.front().rows.cols();
  // At least a third of the directions, and all that have no known row, look for what is new.
  const Index pure = std::min(known, count - std::min(count, std::max<Index>(4, count / 3)));
  Block<Scalar> directions(d, count);
  const Index parts = parts_of_columns(rows_of(pieces), d);
  run_parts(parts, [&](Index part) {
    const Range range = part_of(d, parts, part, tile);
    Scalar* sums = kernels::thread_scratch<Scalar, kernels::Scratch::rows_aside>(count * tile);
    for (Index first = range.begin; first < range.end; first += tile) {
      const Index width = std::min(tile, range.end - first);
      std::fill_n(sums, count * tile, Scalar(0));
      Index number = 0;
      for (const auto& piece : pieces) {
        const auto factor = static_cast<Scalar>(piece.factor / size);
        for (Index i = 0; i < piece.rows.rows(); ++i, ++number) {
          const Index fresh = number - known;
          const Index to = fresh < 0 ? number : pure + (known - pure + fresh) % (count - pure);
          if (to >= count) continue;
          const bool negative = fresh >= 0 && (random.bits(static_cast<std::uint64_t>(fresh)) & 1) != 0;
          const Scalar sign = negative ? -factor : factor;
          const Scalar* row = piece.rows.data() + i * piece.rows.outerStride() + first;
          Scalar* sum = sums + to * tile;
          for (Index j = 0; j < width; ++j) sum[j] += sign * row[j];
        }
      }
      for (Index j = 0; j < width; ++j)
        for (Index k = 0; k < count; ++k) directions(first + j, k) = sums[k * tile + j];
    }
  });
  return directions;
}

// factor a', a tile of the columns of the result at a time.
template <Storage Scalar>
Block<Scalar> transposed_times(const ConstBlockView<Scalar>& a, double factor) {
  Block<Scalar> out(a.cols(), a.rows());
  const Index parts = parts_of_columns(a.cols(), a.rows());
  run_parts(parts, [&](Index part) {
    const Range range = part_of(a.rows(), parts, part, tile);
    for (Index first = range.begin; first < range.end; first += tile) {
      const Index end = std::min(first + tile, range.end);
      for (Index i = 0; i < out.rows(); ++i)
        for (Index j = first; j < end; ++j) out(i, j) = static_cast<Scalar>(factor * static_cast<double>(a(j, i)));
    }
  });
  return out;
}

}  // namespace

template <Storage Scalar>
CentredRows<Scalar> centred_about_mean(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& shares) {
  const Index d = batch.cols();
  std::vector<Index> counted;
  for (Index i = 0; i < batch.rows(); ++i)
    if (shares.size() == 0 || shares(i) > 0) counted.push_back(i);
  const auto count = static_cast<Index>(counted.size());
  Eigen::VectorXd counted_shares = Eigen::VectorXd::Ones(count);
  if (shares.size() > 0) counted_shares = shares(counted);
  const Eigen::VectorXd roots = counted_shares.cwiseSqrt();
  const double total = counted_shares.sum();
  CentredRows<Scalar> out{Block<Scalar>(count, d), Eigen::VectorXd::Zero(d), Eigen::VectorXd::Zero(d)};
  const Index parts = parts_of_columns(count, d);
  run_parts(parts, [&](Index part) {
    const Range range = part_of(d, parts, part, tile);
    constexpr Index width = 8 * tile;  // of the rows that are in cache when they are read again
    for (Index first = range.begin; first < range.end; first += width) {
      const Index end = std::min(first + width, range.end);
      const auto row_of = [&](Index i) {
        return batch.data() + counted[static_cast<std::size_t>(i)] * batch.outerStride();
      };
      // About the first row: the mean of equal values is that value to the last bit.
      const Scalar* origin = row_of(0);
      double* mean = out.mean.data();
      double* squares = out.squares.data();
      for (Index i = 1; i < count; ++i) {
        const Scalar* row = row_of(i);
        const double share = counted_shares(i);
        for (Index j = first; j < end; ++j)
          mean[j] += share * (static_cast<double>(row[j]) - static_cast<double>(origin[j]));
      }
      for (Index j = first; j < end; ++j) mean[j] = static_cast<double>(origin[j]) + mean[j] / total;
      for (Index i = 0; i < count; ++i) {
        const Scalar* row = row_of(i);
        Scalar* to = out.rows.data() + i * d;
        const double root = roots(i);
        for (Index j = first; j < end; ++j) {
          to[j] = static_cast<Scalar>((static_cast<double>(row[j]) - mean[j]) * root);
          squares[j] += static_cast<double>(to[j]) * static_cast<double>(to[j]);
        }
      }
    }
  });
  return out;
}

template <Storage Scalar>
Block<Scalar> leading_rows(std::span<const ScaledRows<Scalar>> pieces, Index known, Index kept, double size,
                           const Random& random) {
  const Index m = rows_of(pieces), d = pieces.front().rows.cols();
  const Index count = std::min({kept, m, d});
  const Block<Scalar> directions = directions_of(pieces, known, count, size, random);
  Block<Scalar> products(m, count), orthonormal(m, count), found(d, count);
  Index first = 0;
  for (const auto& piece : pieces) {
    if (piece.rows.rows() == 0) continue;
    kernels::gemm<Scalar>(Op::plain, static_cast<Scalar>(piece.factor / size), piece.rows, directions, Scalar(0),
                          products.middleRows(first, piece.rows.rows()));
    first += piece.rows.rows();
  }
  HostSpace<Scalar> space;
  Basis basis;
  make_basis(space, products, orthonormal, basis);
  require_converged(basis.finite, "the leading directions of a batch");
  first = 0;
  for (const auto& piece : pieces) {
    if (piece.rows.rows() == 0) continue;
    kernels::gemm<Scalar>(Op::transposed, static_cast<Scalar>(piece.factor / size), piece.rows,
                          orthonormal.block(first, 0, piece.rows.rows(), basis.cols), Scalar(first > 0 ? 1 : 0),
                          found.leftCols(basis.cols));
    first += piece.rows.rows();
  }
  return transposed_times<Scalar>(found.leftCols(basis.cols), size);
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
                                              const Random&);                                                     \
  template Block<Scalar> stacked<Scalar>(std::span<const ScaledRows<Scalar>>);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
