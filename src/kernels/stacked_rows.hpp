// SPDX-License-Identifier: Apache-2.0
//
// Products with the rows of several matrices as if they lay below each other, each row times a factor. Threads share
// the columns: each has some of them to itself in every sweep, so that what it reads of the rows, and of blocks that
// have a row for each of their columns, is what it read or wrote before. What they exchange is as long as the rows are
// many, and not as the columns are.
#pragma once

#include "kernels/product_parts.hpp"

#include <span>

namespace itspace::kernels {

template <Storage Scalar, Storage Data = Scalar>
struct RowsPiece {
  ConstBlockView<Data> rows;
  RowFactors factors;
  const Scalar* shift = nullptr;  // taken off each row
};

template <Storage Scalar, Storage Data>
using RowsPieces = std::span<const RowsPiece<Scalar, Data>>;

template <Storage Scalar, Storage Data>
Index rows_of(RowsPieces<Scalar, Data> pieces) {
  Index rows = 0;
  for (const auto& piece : pieces) rows += piece.rows.rows();
  return rows;
}

// c = (sum_i f_i^2 (a_i - s)(a_i - s)' + diag) b over the rows a_i of all pieces. `diagonal` may be null.
template <Storage Scalar, Storage Data = Scalar>
void squared_gemm(std::type_identity_t<RowsPieces<Scalar, Data>> pieces, const double* diagonal,
                  const ConstBlockView<Scalar>& b, BlockView<Scalar> c);

// visit(piece, first, rows, place) for rows [begin, end) of all: `rows` of the piece from its row `first` on, which are
// at `place` of those that were asked for.
template <Storage Scalar, Storage Data, class Visit>
void for_each_run(RowsPieces<Scalar, Data> pieces, Index begin, Index end, const Visit& visit) {
  Index above = 0;
  for (const auto& piece : pieces) {
    const Index first = std::max(begin - above, Index(0)), last = std::min(end - above, piece.rows.rows());
    if (first < last) visit(piece, first, last - first, above + first - begin);
    above += piece.rows.rows();
  }
}

// The columns of a part: whole cache lines.
inline constexpr Index fewest_columns_of_a_part = 16;
inline Range columns_of_part(Index cols, Index parts, Index part) {
  return part_of(cols, parts, part, fewest_columns_of_a_part);
}

// Some rows of a piece, and of these some columns.
template <Storage Scalar, Storage Data>
WideRows<Scalar, Data> part_of_piece(const RowsPiece<Scalar, Data>& piece, Index first, Index rows,
                                     const Range& columns) {
  return {piece.rows.data() + first * piece.rows.outerStride() + columns.begin, piece.rows.outerStride(), rows,
          columns.end - columns.begin, piece.shift != nullptr ? piece.shift + columns.begin : nullptr};
}

// One thread's share of a product, without factors: products = rows [begin, end), these columns, times y, a block of
// `cols` columns in slabs that has these rows alone. The products lie row by row.
template <Storage Scalar, Storage Data>
void times_columns(const StripLoops<Scalar, Data>& loops, RowsPieces<Scalar, Data> pieces, Index begin, Index end,
                   const Range& columns, const Scalar* y, Index cols, Scalar* products) {
  if (columns.begin == columns.end) {
    std::fill_n(products, (end - begin) * cols, Scalar(0));
    return;
  }
  for_each_run(pieces, begin, end, [&](const auto& piece, Index first, Index rows, Index place) {
    loops.times(part_of_piece(piece, first, rows, columns), 0, rows, y, Scalar(1), Scalar(0),
                BlockView<Scalar>(products + place * cols, rows, cols, cols));
  });
}

// Rows [first, last) of the products of those from `begin` on: shares of `count` parts, each `stride` values after the
// one before, added up in order, and each row times its factor, so many times. (One at a time: the square may be out of
// float's range where the product is not.)
template <Storage Scalar, Storage Data>
void add_up_scaled(RowsPieces<Scalar, Data> pieces, Index begin, Index first, Index last, const Scalar* shares,
                   Index count, Index stride, int times, BlockView<Scalar> out) {
  const Index cols = out.cols();
  for_each_run(pieces, begin + first, begin + last, [&](const auto& piece, Index row, Index rows, Index place) {
    for (Index i = 0; i < rows; ++i) {
      const Scalar* from = shares + (first + place + i) * cols;
      Scalar* to = out.data() + (first + place + i) * out.outerStride();
      std::copy_n(from, cols, to);
      for (Index p = 1; p < count; ++p)
        for (Index j = 0; j < cols; ++j) to[j] += from[p * stride + j];
      const auto factor = static_cast<Scalar>(piece.factors(row + i));
      for (int t = 0; t < times; ++t)
        for (Index j = 0; j < cols; ++j) to[j] *= factor;
    }
  });
}

}  // namespace itspace::kernels
