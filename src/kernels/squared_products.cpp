// SPDX-License-Identifier: Apache-2.0
//
// Products with a matrix and its transpose, its rows read from memory once.
#include "kernels/blas_products.hpp"
#include "kernels/stacked_rows.hpp"

namespace itspace::kernels {
namespace {

// A chunk of rows at a time, so that it is still in cache for the second product.
template <Storage Scalar, Storage Data>
void add_squared_by_blas(const RowsPiece<Scalar, Data>& piece, const ConstBlockView<Scalar>& b, BlockView<Scalar>& c) {
  constexpr Index chunk_values = Index(1) << 20;
  const ConstBlockView<Data>& a = piece.rows;
  const Index step = std::clamp(chunk_values / a.cols(), strip_rows, Index(512));
  for (Index first = 0; first < a.rows(); first += step) {
    const ConstBlockView<Data> chunk = a.middleRows(first, std::min(step, a.rows() - first));
    BlockView<Scalar> inner = scratch_block<Scalar, Scratch::inner>(chunk.rows(), b.cols());
    blas_gemm<Scalar, Data>(Op::plain, Scalar(1), chunk, piece.shift, b, Scalar(0), inner);
    for (Index i = 0; i < inner.rows(); ++i) {
      const auto factor = static_cast<Scalar>(piece.factors(first + i));
      for (int twice = 0; twice < 2; ++twice) inner.row(i) *= factor;
    }
    blas_gemm<Scalar, Data>(Op::transposed, Scalar(1), chunk, piece.shift, inner, Scalar(1), c);
  }
}

// Rows [begin, end) of c += diag b.
template <Storage Scalar>
void add_diagonal(const double* diagonal, const ConstBlockView<Scalar>& b, Index begin, Index end,
                  BlockView<Scalar>& c) {
  if (diagonal == nullptr) return;
  for (Index i = begin; i < end; ++i) {
    const auto factor = static_cast<Scalar>(diagonal[i]);
    const Scalar* from = b.data() + i * b.outerStride();
    Scalar* to = c.data() + i * c.outerStride();
    for (Index j = 0; j < b.cols(); ++j) to[j] += factor * from[j];
  }
}

template <Storage Scalar, Storage Data>
void squared_by_rows(RowsPieces<Scalar, Data> pieces, const ConstBlockView<Scalar>& b, BlockView<Scalar>& c,
                     Index parts) {
  const auto& loops = strip_loops<Scalar, Data>();
  const Index rows = rows_of(pieces);
  const Scalar* y = in_slabs(b, loops, parts);
  sum_over_parts(loops, parts, Scalar(0), c, [&](Index part, Scalar* w) {
    const Range range = part_of(rows, parts, part, strip_rows);
    for_each_run(pieces, range.begin, range.end, [&](const auto& piece, Index first, Index count, Index) {
      const RowFactors factors{piece.factors.data + (piece.factors.one_for_each ? first : 0),
                               piece.factors.one_for_each};
      loops.squared(part_of_piece(piece, first, count, {0, b.rows()}), 0, count, y, b.cols(), factors, w);
    });
  });
}

// Rows go by in groups, so that the products of all threads are small beside their caches.
template <Storage Scalar, Storage Data>
void squared_by_columns(RowsPieces<Scalar, Data> pieces, const double* diagonal, const ConstBlockView<Scalar>& b,
                        BlockView<Scalar>& c, Index parts) {
  constexpr Index most_group_values = Index(1) << 15;
  const auto& loops = strip_loops<Scalar, Data>();
  const Index all = rows_of(pieces), d = b.rows(), cols = b.cols(), padded = loops.widths.padded(cols);
  const Index group_rows = std::min(all, std::max(Index(1), most_group_values / cols / strip_rows) * strip_rows);
  const Index group_values = group_rows * cols;
  const bool packed = lies_as_a_slab(b, loops.widths), direct = lies_as_a_slab(c, loops.widths);
  const Scalar* slabs = packed ? b.data() : thread_scratch<Scalar, Scratch::slabs>(d * padded);
  Scalar* sums = direct ? c.data() : thread_scratch<Scalar, Scratch::partial_sums>(d * padded);
  Scalar* shares = thread_scratch<Scalar, Scratch::group_products>((parts + 1) * group_values);
  Scalar* products = shares + parts * group_values;
  const auto end_of = [&](Index begin) { return std::min(all, begin + group_rows); };
  // The second product of a group, and the first of the next.
  const auto sweep = [&](Index before, Index next) {
    run_parts(parts, [&](Index part) {
      const Range columns = columns_of_part(d, parts, part);
      const Index count = columns.end - columns.begin;
      Scalar* own = sums + columns.begin * padded;
      if (next == 0 && count > 0) {
        if (!packed)
          loops.pack(b.middleRows(columns.begin, count), 0, count, const_cast<Scalar*>(slabs) + columns.begin * padded);
        std::fill_n(own, count * padded, Scalar(0));
      }
      if (next > 0 && count > 0)
        for_each_run(pieces, before, next, [&](const auto& piece, Index first, Index rows, Index place) {
          loops.transposed(part_of_piece(piece, first, rows, columns), 0, rows, 0, count, Scalar(1),
                           ConstBlockView<Scalar>(products + place * cols, rows, cols, cols), own);
        });
      if (next < all) {
        times_columns(loops, pieces, next, end_of(next), columns, slabs + columns.begin * padded, cols,
                      shares + part * group_values);
        return;
      }
      if (!direct && count > 0) {
        const SlabSum<Scalar> whole{own, 0, count};
        loops.unpack_sum(&whole, 1, 0, count, Scalar(0), c.middleRows(columns.begin, count));
      }
      add_diagonal(diagonal, b, columns.begin, columns.end, c);
    });
  };
  sweep(0, 0);
  for (Index begin = 0; begin < all; begin += group_rows) {
    const Index rows = end_of(begin) - begin;
    run_parts(parts, [&](Index part) {
      const Range range = part_of(rows, parts, part);
      add_up_scaled(pieces, begin, range.begin, range.end, shares, parts, group_values, 2,
                    BlockView<Scalar>(products, rows, cols, cols));
    });
    sweep(begin, begin + rows);
  }
}

}  // namespace

template <Storage Scalar, Storage Data>
void squared_gemm(std::type_identity_t<RowsPieces<Scalar, Data>> pieces, const double* diagonal,
                  const ConstBlockView<Scalar>& b, BlockView<Scalar> c) {
  if (c.size() == 0) return;
  const Index rows = rows_of(pieces), d = b.rows();
  if (rows == 0 || b.cols() > most_columns) {
    c.setZero();
    for (const auto& piece : pieces)
      if (piece.rows.rows() > 0) add_squared_by_blas(piece, b, c);
    add_diagonal(diagonal, b, 0, d, c);
    return;
  }
  const Index parts = parts_for(2 * work_of(rows, d, b.cols()));
  // Threads that share the rows have sums of all columns each, which are added up after: where these are not small
  // beside the data, threads share the columns, and add up products of all rows instead.
  constexpr Index small_beside = 4;
  if (parts > 1 && d >= parts * fewest_columns_of_a_part && small_beside * parts * b.cols() > rows) {
    squared_by_columns(pieces, diagonal, b, c, parts);
    return;
  }
  squared_by_rows(pieces, b, c, parts);
  if (diagonal == nullptr) return;
  run_parts(parts, [&](Index part) {
    const Range range = part_of(d, parts, part);
    add_diagonal(diagonal, b, range.begin, range.end, c);
  });
}

template <Storage Scalar, Storage Data>
void squared_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const Scalar* shift, const RowFactors& factors,
                  const ConstBlockView<Scalar>& b, BlockView<Scalar> c) {
  const RowsPiece<Scalar, Data> whole{a, factors, shift};
  squared_gemm<Scalar, Data>({&whole, 1}, nullptr, b, c);
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                    \
  template void squared_gemm<Scalar, Data>(std::type_identity_t<RowsPieces<Scalar, Data>>, const double*,    \
                                           const ConstBlockView<Scalar>&, BlockView<Scalar>);                \
  template void squared_gemm<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&, const Scalar*, \
                                           const RowFactors&, const ConstBlockView<Scalar>&, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
