// SPDX-License-Identifier: Apache-2.0
//
// Products of wide matrices with tall blocks: how they are cut into parts for the threads.
#include "kernels/blas_products.hpp"
#include "kernels/product_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace itspace::kernels {
namespace {

template <Storage Scalar, Storage Data>
void times(Scalar alpha, const WideRows<Scalar, Data>& a, const ConstBlockView<Scalar>& b, Scalar beta,
           BlockView<Scalar>& c) {
  const auto& loops = strip_loops<Scalar, Data>();
  const Index parts = parts_for(work_of(a.count, a.cols, b.cols()));
  const Scalar* y = in_slabs(b, loops, parts);
  run_parts(parts, [&](Index part) {
    const Range range = part_of(a.count, parts, part, strip_rows);
    if (range.begin < range.end) loops.times(a, range.begin, range.end, y, alpha, beta, c);
  });
}

// Each part has columns of `a` to itself where there are enough of them, else rows.
template <Storage Scalar, Storage Data>
void transposed_times(Scalar alpha, const WideRows<Scalar, Data>& a, const ConstBlockView<Scalar>& b, Scalar beta,
                      BlockView<Scalar>& c) {
  constexpr Index fewest_columns = 64;  // of a part: whole cache lines, and enough of them to go on with
  const auto& loops = strip_loops<Scalar, Data>();
  const Index parts = parts_for(work_of(a.count, a.cols, b.cols()));
  if (a.cols < parts * fewest_columns) {
    sum_over_parts(loops, parts, beta, c, [&](Index part, Scalar* w) {
      const Range rows = part_of(a.count, parts, part, strip_rows);
      if (rows.begin < rows.end) loops.transposed(a, rows.begin, rows.end, 0, a.cols, alpha, b, w);
    });
    return;
  }
  const bool direct = beta == Scalar(0) && lies_as_a_slab(c, loops.widths);
  Scalar* w =
      direct ? c.data() : thread_scratch<Scalar, Scratch::partial_sums>(c.rows() * loops.widths.padded(c.cols()));
  if (!direct) std::fill_n(w, c.rows() * loops.widths.padded(c.cols()), Scalar(0));
  if (direct) c.setZero();
  run_parts(parts, [&](Index part) {
    const Range columns = part_of(a.cols, parts, part, fewest_columns / 4);
    if (columns.begin < columns.end) loops.transposed(a, 0, a.count, columns.begin, columns.end, alpha, b, w);
  });
  if (direct) return;
  run_parts(parts, [&](Index part) {
    const Range range = part_of(c.rows(), parts, part);
    const SlabSum<Scalar> whole{w, 0, c.rows()};
    loops.unpack_sum(&whole, 1, range.begin, range.end, beta, c);
  });
}

// The upper triangle in square tiles, several for each thread, so that none waits long for another. A tile adds to two
// blocks of rows of the product, each in memory of its own; these are added up in a fixed order, so the bits do not
// depend on who did which.
template <Storage Scalar, Storage Data>
void symmetric_by_tiles(const WideRows<Scalar, Data>& a, const Scalar* y, const StripLoops<Scalar, Data>& loops,
                        Index threads, BlockView<Scalar>& c) {
  constexpr Index most_blocks = 64, tiles_of_a_thread = 4;
  Index blocks = 2;  // of rows; blocks (blocks + 1)/2 tiles
  while (blocks < most_blocks && blocks * (blocks + 1) / 2 < tiles_of_a_thread * threads) ++blocks;
  const auto rows_of = [&](Index block) { return part_of(a.count, blocks, block, strip_rows); };
  const Index padded = loops.widths.padded(c.cols());
  // What tile (i, j), i <= j, adds to the rows of block i lies at (i, j); what it adds to those of block j at (j, i).
  Scalar* sums = thread_scratch<Scalar, Scratch::partial_sums>(blocks * a.count * padded);
  const auto sums_of = [&](Index block, Index other) {
    const Range rows = rows_of(block);
    return sums + (rows.begin * blocks + other * (rows.end - rows.begin)) * padded;
  };
  const Index off_diagonal = blocks * (blocks - 1) / 2;
  run_parts(off_diagonal + blocks, threads, [&](Index part) {
    // Those on the diagonal are half as much work, and come last.
    Index top = part - off_diagonal, left = top;
    if (part < off_diagonal)
      for (top = 0, left = part + 1; left >= blocks; ++top) left -= blocks - 2 - top;
    const Range rows = rows_of(top), columns = rows_of(left);
    Scalar *w_top = sums_of(top, left), *w_left = sums_of(left, top);
    std::fill_n(w_top, (rows.end - rows.begin) * padded, Scalar(0));
    if (top != left) std::fill_n(w_left, (columns.end - columns.begin) * padded, Scalar(0));
    if (rows.begin < rows.end && columns.begin < columns.end)
      loops.symmetric(a, {rows.begin, rows.end, columns.begin, columns.end, y, w_top, w_left}, c.cols());
  });
  run_parts(blocks, threads, [&](Index block) {
    const Range rows = rows_of(block);
    std::array<SlabSum<Scalar>, most_blocks> terms;
    for (Index other = 0; other < blocks; ++other)
      terms[static_cast<std::size_t>(other)] = {sums_of(block, other), rows.begin, rows.end - rows.begin};
    loops.unpack_sum(terms.data(), blocks, rows.begin, rows.end, Scalar(0), c);
  });
}

// Whether a symmetric matrix is read whole, row by row, instead of half of it by tiles. That asks each value for half
// as much, and needs no sums for the rows of others, nor a second sweep that adds these up: it takes less time where
// the matrix stays in the threads' caches; for blocks of so many columns that arithmetic is the limit, in the cache
// that all of them share. (Two machines, docs/benchmarks/threads.md.)
bool is_read_whole(Index values, std::size_t bytes_of_value, Index cols) {
  constexpr std::size_t own_cache = std::size_t(2) << 20, shared_cache = std::size_t(32) << 20;
  constexpr Index many_columns = 48;
  return static_cast<std::size_t>(values) * bytes_of_value <= (cols >= many_columns ? shared_cache : own_cache);
}

}  // namespace

template <Storage Scalar, Storage Data>
void shifted_gemm(Op op_a, Scalar alpha, const std::type_identity_t<ConstBlockView<Data>>& a, const Scalar* shift,
                  const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar> c) {
  if (c.size() == 0) return;
  if (c.cols() > most_columns || a.size() == 0) {
    blas_gemm<Scalar, Data>(op_a, alpha, a, shift, b, beta, c);
  } else if (op_a == Op::plain) {
    times(alpha, wide_rows<Scalar, Data>(a, shift), b, beta, c);
  } else {
    transposed_times(alpha, wide_rows<Scalar, Data>(a, shift), b, beta, c);
  }
}

template <Storage Scalar, Storage Data>
void gemm(Op op_a, Scalar alpha, const std::type_identity_t<ConstBlockView<Data>>& a, const ConstBlockView<Scalar>& b,
          Scalar beta, BlockView<Scalar> c) {
  shifted_gemm<Scalar, Data>(op_a, alpha, a, nullptr, b, beta, c);
}

template <Storage Scalar, Storage Data>
void symmetric_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const ConstBlockView<Scalar>& b,
                    BlockView<Scalar> c) {
  if (c.size() == 0) return;
  if (c.cols() > most_columns) {
    blas_gemm<Scalar, Data>(Op::plain, Scalar(1), a, nullptr, b, Scalar(0), c);
    return;
  }
  const WideRows<Scalar, Data> rows = wide_rows<Scalar, Data>(a);
  if (is_read_whole(a.size(), sizeof(Data), b.cols())) {
    times(Scalar(1), rows, b, Scalar(0), c);
    return;
  }
  const auto& loops = strip_loops<Scalar, Data>();
  const Index parts = parts_for(work_of(a.rows(), a.cols(), b.cols()));
  const Scalar* y = in_slabs(b, loops, parts);
  if (parts == 1) {
    sum_over_parts(loops, parts, Scalar(0), c, [&](Index, Scalar* w) {
      loops.symmetric(rows, {0, a.rows(), 0, a.rows(), y, w, w}, b.cols());
    });
    return;
  }
  symmetric_by_tiles(rows, y, loops, parts, c);
}

template <Storage Scalar>
void map_rows(Scalar scale, const Scalar* from, const Scalar* to, const ConstBlockView<Scalar>& basis,
              const ConstBlockView<Scalar>& update, BlockView<Scalar> samples) {
  if (samples.size() == 0) return;
  const auto& loops = strip_loops<Scalar, Scalar>();
  // Several parts for each thread: each is a run of rows by itself.
  const Index threads = parts_for(2 * work_of(samples.rows(), samples.cols(), basis.cols() + 1));
  const Index parts = threads == 1 ? 1 : std::min(4 * threads, (samples.rows() + 31) / 32);
  const Scalar* in = in_slabs(basis, loops, 1);
  Scalar* out = thread_scratch<Scalar, Scratch::partial_sums>(update.rows() * loops.widths.padded(update.cols()));
  loops.pack(update, 0, update.rows(), out);
  const LowRankMap<Scalar> map{scale, from, to, in, out, basis.cols()};
  run_parts(parts, threads, [&](Index part) {
    const Range range = part_of(samples.rows(), parts, part, strip_rows);
    if (range.begin < range.end) loops.map(map, range.begin, range.end, samples);
  });
}
template void map_rows<float>(float, const float*, const float*, const ConstBlockView<float>&,
                              const ConstBlockView<float>&, BlockView<float>);
template void map_rows<double>(double, const double*, const double*, const ConstBlockView<double>&,
                               const ConstBlockView<double>&, BlockView<double>);

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                            \
  template void gemm<Scalar, Data>(Op, Scalar, const std::type_identity_t<ConstBlockView<Data>>&,                    \
                                   const ConstBlockView<Scalar>&, Scalar, BlockView<Scalar>);                        \
  template void shifted_gemm<Scalar, Data>(Op, Scalar, const std::type_identity_t<ConstBlockView<Data>>&,            \
                                           const Scalar*, const ConstBlockView<Scalar>&, Scalar, BlockView<Scalar>); \
  template void symmetric_gemm<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&,                      \
                                             const ConstBlockView<Scalar>&, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
