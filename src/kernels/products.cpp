// SPDX-License-Identifier: Apache-2.0
//
// Products of wide matrices with tall blocks: how they are cut into parts for the threads.
#include "kernels/blas_products.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace itspace::kernels {
namespace {

// Blocks of more columns than this go to BLAS: the wide matrix is no longer what costs.
constexpr Index most_columns = most_strip_columns;

double work_of(Index rows, Index cols, Index columns) {
  return static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(columns);
}

template <Storage Scalar, Storage Data>
WideRows<Scalar, Data> wide_rows(const ConstBlockView<Data>& a, const Scalar* shift = nullptr) {
  return {a.data(), a.outerStride(), a.rows(), a.cols(), shift};
}

template <class View>
bool lies_as_a_slab(const View& block, const SlabWidths& widths) {
  return block.outerStride() == block.cols() && widths.is_one_slab(block.cols());
}

// The block in slabs: itself where it is one, else a copy in scratch.
template <Storage Scalar, Storage Data>
const Scalar* in_slabs(const ConstBlockView<Scalar>& b, const StripLoops<Scalar, Data>& loops, Index parts) {
  if (lies_as_a_slab(b, loops.widths)) return b.data();
  Scalar* slabs = thread_scratch<Scalar, Scratch::slabs>(b.rows() * loops.widths.padded(b.cols()));
  run_parts(parts, [&](Index part) {
    const Range range = part_of(b.rows(), parts, part);
    loops.pack(b, range.begin, range.end, slabs);
  });
  return slabs;
}

// c = beta c + the sum over parts of what work(part, w) adds to a block w of its own, in slabs.
template <Storage Scalar, Storage Data, class Work>
void sum_over_parts(const StripLoops<Scalar, Data>& loops, Index parts, Scalar beta, BlockView<Scalar>& c,
                    const Work& work) {
  if (parts == 1 && beta == Scalar(0) && lies_as_a_slab(c, loops.widths)) {
    c.setZero();
    work(Index(0), c.data());
    return;
  }
  const Index size = c.rows() * loops.widths.padded(c.cols());
  Scalar* sums = thread_scratch<Scalar, Scratch::partial_sums>(parts * size);
  run_parts(parts, [&](Index part) {
    Scalar* own = sums + part * size;
    std::fill_n(own, size, Scalar(0));
    work(part, own);
  });
  std::array<SlabSum<Scalar>, most_parts> terms;
  for (Index p = 0; p < parts; ++p) terms[static_cast<std::size_t>(p)] = {sums + p * size, 0, c.rows()};
  run_parts(parts, [&](Index part) {
    const Range range = part_of(c.rows(), parts, part);
    loops.unpack_sum(terms.data(), parts, range.begin, range.end, beta, c);
  });
}

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

// sum_i f_i^2 a_i a_i' b where blocks of sums for each thread would be large beside `a` itself: each thread has columns
// of `a` to itself, and rows go by in groups that the caches of all threads together hold.
template <Storage Scalar, Storage Data>
void squared_by_columns(const WideRows<Scalar, Data>& a, const RowFactors& factors, const ConstBlockView<Scalar>& b,
                        BlockView<Scalar>& c, Index parts) {
  constexpr Index group_rows = 4 * strip_rows;
  const auto& loops = strip_loops<Scalar, Data>();
  const Index cols = b.cols(), padded = loops.widths.padded(cols), group_values = group_rows * cols;
  Scalar* slabs = thread_scratch<Scalar, Scratch::slabs>(a.cols * padded);
  Scalar* sums = thread_scratch<Scalar, Scratch::partial_sums>(a.cols * padded);
  Scalar* products = thread_scratch<Scalar, Scratch::group_products>(2 * parts * group_values);
  Scalar* scaled = products + parts * group_values;
  const auto columns_of = [&](Index part) { return part_of(a.cols, parts, part, 16); };
  const auto wide_of = [&](const Range& columns) {
    return WideRows<Scalar, Data>{a.data + columns.begin, a.stride, a.count, columns.end - columns.begin,
                                  a.shift != nullptr ? a.shift + columns.begin : nullptr};
  };
  run_parts(parts, [&](Index part) {
    const Range columns = columns_of(part);
    const Index count = columns.end - columns.begin;
    if (count == 0) return;
    loops.pack(b.middleRows(columns.begin, count), 0, count, slabs + columns.begin * padded);
    std::fill_n(sums + columns.begin * padded, count * padded, Scalar(0));
  });
  for (Index row = 0; row < a.count; row += group_rows) {
    const Index rows = std::min(group_rows, a.count - row);
    // Rows of the group, as if they were all: the blocks of products have no others.
    const auto group_of = [&](const Range& columns) {
      WideRows<Scalar, Data> group = wide_of(columns);
      group.data += row * a.stride;
      group.count = rows;
      return group;
    };
    run_parts(parts, [&](Index part) {
      const Range columns = columns_of(part);
      BlockView<Scalar> product(products + part * group_values, rows, cols, cols);
      if (columns.begin == columns.end) {
        product.setZero();
      } else {
        loops.times(group_of(columns), 0, rows, slabs + columns.begin * padded, Scalar(1), Scalar(0), product);
      }
    });
    run_parts(parts, [&](Index part) {
      const Range columns = columns_of(part);
      if (columns.begin == columns.end) return;
      Scalar* sum = scaled + part * group_values;
      std::copy_n(products, rows * cols, sum);
      for (Index p = 1; p < parts; ++p)
        for (Index i = 0; i < rows * cols; ++i) sum[i] += products[p * group_values + i];
      for (Index i = 0; i < rows; ++i) {
        const auto factor = static_cast<Scalar>(factors(row + i));
        for (Index j = 0; j < cols; ++j) sum[i * cols + j] = sum[i * cols + j] * factor * factor;
      }
      const auto group = group_of(columns);
      loops.transposed(group, 0, rows, 0, group.cols, Scalar(1), ConstBlockView<Scalar>(sum, rows, cols, cols),
                       sums + columns.begin * padded);
    });
  }
  run_parts(parts, [&](Index part) {
    const Range columns = columns_of(part);
    const Index count = columns.end - columns.begin;
    if (count == 0) return;
    const SlabSum<Scalar> own{sums + columns.begin * padded, 0, count};
    loops.unpack_sum(&own, 1, 0, count, Scalar(0), c.middleRows(columns.begin, count));
  });
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
  const auto& loops = strip_loops<Scalar, Data>();
  const WideRows<Scalar, Data> rows = wide_rows<Scalar, Data>(a);
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

template <Storage Scalar, Storage Data>
void squared_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const Scalar* shift, const RowFactors& factors,
                  const ConstBlockView<Scalar>& b, BlockView<Scalar> c) {
  if (c.size() == 0) return;
  const WideRows<Scalar, Data> rows = wide_rows<Scalar, Data>(a, shift);
  const Index parts = parts_for(2 * work_of(a.rows(), a.cols(), b.cols()));
  if (b.cols() > most_columns) {
    // A chunk of rows at a time, so that it is still in cache for the second product.
    constexpr Index chunk_values = Index(1) << 20;
    const Index step = std::clamp(chunk_values / a.cols(), strip_rows, Index(512));
    c.setZero();
    for (Index first = 0; first < a.rows(); first += step) {
      const ConstBlockView<Data> chunk = a.middleRows(first, std::min(step, a.rows() - first));
      BlockView<Scalar> inner = scratch_block<Scalar, Scratch::inner>(chunk.rows(), b.cols());
      blas_gemm<Scalar, Data>(Op::plain, Scalar(1), chunk, shift, b, Scalar(0), inner);
      for (Index i = 0; i < inner.rows(); ++i) {
        const auto factor = static_cast<Scalar>(factors(first + i));
        for (int twice = 0; twice < 2; ++twice) inner.row(i) *= factor;
      }
      blas_gemm<Scalar, Data>(Op::transposed, Scalar(1), chunk, shift, inner, Scalar(1), c);
    }
    return;
  }
  const auto& loops = strip_loops<Scalar, Data>();
  // Sums of its own for each thread: cheap to make, unless they are large beside the data.
  constexpr Index always_small = Index(1) << 20;
  const Index sums = parts * a.cols() * loops.widths.padded(b.cols());
  if (parts > 1 && sums > std::max(always_small, a.size() / 8)) {
    squared_by_columns(rows, factors, b, c, parts);
    return;
  }
  const Scalar* y = in_slabs(b, loops, parts);
  sum_over_parts(loops, parts, Scalar(0), c, [&](Index part, Scalar* w) {
    const Range range = part_of(a.rows(), parts, part, strip_rows);
    if (range.begin < range.end) loops.squared(rows, range.begin, range.end, y, b.cols(), factors, w);
  });
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
                                             const ConstBlockView<Scalar>&, BlockView<Scalar>);                      \
  template void squared_gemm<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&, const Scalar*,         \
                                           const RowFactors&, const ConstBlockView<Scalar>&, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
