// SPDX-License-Identifier: Apache-2.0
//
// Sweeps over tall blocks that end in a few sums, or multiply by small matrices.
#include "kernels/step_sweeps.hpp"

#include "kernels/blends.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"
#include "kernels/small_sweeps.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace itspace::kernels {
namespace {

constexpr Index most_columns = most_strip_columns;

// The sums of the parts, in order, in those of the first.
void add_up_parts(double* sums, Index parts, Index count) {
  for (Index p = 1; p < parts; ++p)
    for (Index i = 0; i < count; ++i) sums[i] += sums[p * count + i];
}

BlendNorms norms_of(const double* sums) {
  BlendNorms norms;
  for (Index i = 0; i < blend_sums; ++i) {
    norms.b_squared += sums[i];
    norms.difference_squared += sums[blend_sums + i];
  }
  return norms;
}

// `count` sums over rows, which work(range, sums) adds to; parts are added up in order.
template <class Work>
const double* add_up(Index rows, Index cols, Index count, const Work& work) {
  const Index parts = parts_for_block(rows, cols);
  double* sums = thread_scratch<double, Scratch::partial_sums>(parts * count);
  run_parts(parts, [&](Index part) {
    double* own = sums + part * count;
    std::fill_n(own, count, 0.0);
    work(part_of(rows, parts, part), own);
  });
  add_up_parts(sums, parts, count);
  return sums;
}

// m by slabs, as the loops take it.
void pack_slabs(const Eigen::Ref<const Small>& m, const SlabWidths& widths, double* slabs) {
  for (Index at = 0; at < m.cols();) {
    const Index width = widths.next(m.cols() - at);
    for (Index i = 0; i < m.rows(); ++i)
      for (Index j = 0; j < width; ++j) slabs[at * m.rows() + i * width + j] = at + j < m.cols() ? m(i, at + j) : 0.0;
    at += width;
  }
}

// Columns of a wide m that are taken together: fewer of a triangle, for less of its zeros.
constexpr Index wide_group = 64, triangle_group = 32;

// The rows of m up to the last that is not zero in columns [at, at + count): of a triangle, part of them.
Index rows_above_zeros(const Small& m, Index at, Index count) {
  Index rows = m.rows();
  while (rows > 1 && (m.row(rows - 1).segment(at, count).array() == 0).all()) --rows;
  return rows;
}

// A group of columns after the other, on rows that are put aside first: `out` may be `a`.
template <Storage Scalar>
void wide_multiply(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out, Write write) {
  constexpr Index rows_at_once = 4 * strip_rows;
  struct Group {
    Index at, count, rows;
    const double* slabs;
  };
  const auto& loops = small_loops<Scalar>();
  double* slabs = thread_scratch<double, Scratch::small_matrix>(m.rows() * (m.cols() + wide_group));
  const Index group_cols = rows_above_zeros(m, 0, triangle_group) < m.rows() ? triangle_group : wide_group;
  std::vector<Group> groups(static_cast<std::size_t>((m.cols() + group_cols - 1) / group_cols));
  run_parts(std::ssize(groups), threads_for_entries(m.size()), [&](Index number) {
    const Index at = number * group_cols, count = std::min(group_cols, m.cols() - at);
    const Index rows = rows_above_zeros(m, at, count);
    double* own = slabs + at * m.rows();
    pack_slabs(m.block(0, at, rows, count), loops.widths, own);
    groups[static_cast<std::size_t>(number)] = {at, count, rows, own};
  });
  double work = 0;
  for (const Group& group : groups) work += static_cast<double>(group.rows * group.count);
  const Index parts = parts_for(static_cast<double>(a.rows()) * work);
  run_parts(parts, [&](Index part) {
    const Range range = part_of(a.rows(), parts, part, strip_rows);
    Scalar* aside = thread_scratch<Scalar, Scratch::rows_aside>(rows_at_once * a.cols());
    for (Index row = range.begin; row < range.end; row += rows_at_once) {
      const Index rows = std::min(rows_at_once, range.end - row);
      for (Index i = 0; i < rows; ++i)
        std::copy_n(a.data() + (row + i) * a.outerStride(), a.cols(), aside + i * a.cols());
      for (const Group& group : groups)
        loops.multiply({aside, rows, group.rows, a.cols()}, group.slabs, 0, rows, write == Write::add,
                       out.block(row, group.at, rows, group.count));
    }
  });
}

// out = a m, or out += a m, and then after(part, rows) for the rows of each part; how many parts there were.
template <Storage Scalar, class After>
Index multiply_rows(const ConstBlockView<Scalar>& a, const Small& m, Write write, BlockView<Scalar> out,
                    const After& after) {
  const auto& loops = small_loops<Scalar>();
  double* slabs = thread_scratch<double, Scratch::small_matrix>(m.rows() * loops.widths.padded(m.cols()));
  pack_slabs(m, loops.widths, slabs);
  const Index parts = std::max(parts_for(static_cast<double>(a.rows()) * static_cast<double>(m.size())),
                               parts_for_block(a.rows(), a.cols()));
  run_parts(parts, [&](Index part) {
    const Range range = part_of(a.rows(), parts, part, strip_rows);
    if (range.begin < range.end) loops.multiply(a, slabs, range.begin, range.end, write == Write::add, out);
    after(part, range);
  });
  return parts;
}

}  // namespace

Index parts_for_block(Index rows, Index cols) {
  constexpr double work_of_a_value = 30;
  return parts_for(work_of_a_value * static_cast<double>(rows) * static_cast<double>(cols));
}

template <Storage Scalar>
void multiply(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out, Write write) {
  if (out.size() == 0) return;
  if (m.rows() == 0) {
    if (write == Write::assign) out.setZero();
    return;
  }
  if (m.cols() > most_columns) {
    wide_multiply<Scalar>(a, m, out, write);
    return;
  }
  multiply_rows<Scalar>(a, m, write, out, [](Index, const Range&) {});
}

template <Storage Scalar>
void multiply_roughly(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out) {
  constexpr Index fewest = 48;
  if (std::same_as<Scalar, double> || m.cols() < fewest || m.rows() == 0) {
    multiply<Scalar>(a, m, out, Write::assign);
    return;
  }
  const BlockView<Scalar> converted = scratch_block<Scalar, Scratch::converted_matrix>(m.rows(), m.cols());
  for_column_groups(m.rows(), m.cols(), [&](Index, const Range& columns) {
    const Index count = columns.end - columns.begin;
    BlockView<Scalar>(converted).middleCols(columns.begin, count) =
        m.middleCols(columns.begin, count).template cast<Scalar>();
  });
  gemm<Scalar>(Op::plain, Scalar(1), a, ConstBlockView<Scalar>(converted), Scalar(0), out);
}

template <Storage Scalar>
BlendNorms multiply_and_norms(const ConstBlockView<Scalar>& a, const Small& m, const ConstBlockView<Scalar>& y,
                              BlockView<Scalar> out) {
  if (out.size() == 0 || m.rows() == 0 || m.cols() > most_columns) {
    multiply<Scalar>(a, m, out, Write::assign);
    return blend_norms<Scalar>(y, out);
  }
  const auto& loops = blend_loops<Scalar>();
  double* sums = thread_scratch<double, Scratch::partial_sums>(most_parts * 2 * blend_sums);
  const Index parts = multiply_rows<Scalar>(a, m, Write::assign, out, [&](Index part, const Range& range) {
    double* own = sums + part * 2 * blend_sums;
    std::fill_n(own, 2 * blend_sums, 0.0);
    loops.norms(y, out, range.begin, range.end, own, own + blend_sums);
  });
  add_up_parts(sums, parts, 2 * blend_sums);
  return norms_of(sums);
}

template <Storage Scalar>
bool all_finite(const ConstBlockView<Scalar>& a) {
  const double* strange = add_up(a.rows(), a.cols(), 1, [&](const Range& range, double* found) {
    for (Index i = range.begin; i < range.end; ++i) {
      const Scalar* row = a.data() + i * a.outerStride();
      // 0 x is 0 for numbers, and NaN for what is none; several sums, so that they are vectorised.
      std::array<Scalar, 16> sums{};
      Index j = 0;
      for (; j + 16 <= a.cols(); j += 16)
        for (Index lane = 0; lane < 16; ++lane) sums[static_cast<std::size_t>(lane)] += 0 * row[j + lane];
      for (; j < a.cols(); ++j) sums[0] += 0 * row[j];
      for (const Scalar sum : sums)
        if (!(sum == 0)) *found = 1;
    }
  });
  return *strange == 0;
}

template <Storage Scalar>
void column_squares(const ConstBlockView<Scalar>& a, SmallVector& out) {
  const auto& loops = blend_loops<Scalar>();
  const double* squares = add_up(a.rows(), a.cols(), a.cols(), [&](const Range& range, double* sum) {
    loops.column_squares(a, range.begin, range.end, sum);
  });
  out.resize(a.cols());
  std::copy_n(squares, a.cols(), out.data());
}

template <Storage Scalar>
BlendNorms blend_norms(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b) {
  const auto& loops = blend_loops<Scalar>();
  const double* sums = add_up(y.rows(), y.cols(), 2 * blend_sums, [&](const Range& range, double* own) {
    loops.norms(y, b, range.begin, range.end, own, own + blend_sums);
  });
  return norms_of(sums);
}

template <Storage Scalar>
void blend(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha, BlockView<Scalar> out) {
  const auto& loops = blend_loops<Scalar>();
  const Index parts = parts_for_block(y.rows(), y.cols());
  run_parts(parts, [&](Index part) {
    const Range range = part_of(y.rows(), parts, part);
    loops.blend(y, b, alpha, range.begin, range.end, out);
  });
}

template <Storage Scalar>
void subtract_scaled(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, const SmallVector& factors,
                     BlockView<Scalar> out) {
  const auto& loops = blend_loops<Scalar>();
  const Index parts = parts_for_block(a.rows(), a.cols());
  run_parts(parts, [&](Index part) {
    const Range range = part_of(a.rows(), parts, part);
    loops.subtract_scaled(a, b, factors.data(), range.begin, range.end, out);
  });
}

template <Storage Scalar>
void copy(const ConstBlockView<Scalar>& from, BlockView<Scalar> to) {
  const Index parts = parts_for_block(from.rows(), from.cols());
  run_parts(parts, [&](Index part) {
    const Range range = part_of(from.rows(), parts, part);
    for (Index i = range.begin; i < range.end; ++i)
      std::copy_n(from.data() + i * from.outerStride(), from.cols(), to.data() + i * to.outerStride());
  });
}

template <Storage Scalar>
void scale_columns(const SmallVector& factors, BlockView<Scalar> block) {
  const Index parts = parts_for_block(block.rows(), block.cols());
  run_parts(parts, [&](Index part) {
    const Range range = part_of(block.rows(), parts, part);
    for (Index i = range.begin; i < range.end; ++i) {
      Scalar* row = block.data() + i * block.outerStride();
      for (Index j = 0; j < block.cols(); ++j) row[j] = static_cast<Scalar>(static_cast<double>(row[j]) * factors(j));
    }
  });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                  \
  template void multiply(const ConstBlockView<Scalar>&, const Small&, BlockView<Scalar>, Write);                     \
  template void multiply_roughly(const ConstBlockView<Scalar>&, const Small&, BlockView<Scalar>);                    \
  template void column_squares(const ConstBlockView<Scalar>&, SmallVector&);                                         \
  template BlendNorms multiply_and_norms(const ConstBlockView<Scalar>&, const Small&, const ConstBlockView<Scalar>&, \
                                         BlockView<Scalar>);                                                         \
  template BlendNorms blend_norms(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);                     \
  template void blend(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double, BlockView<Scalar>);      \
  template bool all_finite(const ConstBlockView<Scalar>&);                                                           \
  template void subtract_scaled(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, const SmallVector&,    \
                                BlockView<Scalar>);                                                                  \
  template void copy(const ConstBlockView<Scalar>&, BlockView<Scalar>);                                              \
  template void scale_columns(const SmallVector&, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
