// SPDX-License-Identifier: Apache-2.0
//
// Products of tall blocks that end in a small matrix or multiply by one, over the same strips as those with wide
// matrices, and in double.
#include "kernels/instruction_sets.hpp"
#include "kernels/pool.hpp"
#include "kernels/strips.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/small_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/strip_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {

// Rows whose sums stay in registers before they are added to the rest. With so many columns of `a` and a slab they stay
// in the caches next to the processor.
constexpr Index chunk_rows = 64, chunk_cols = 64;

// Rows in double: where they lie, `stride` apart.
struct DoubleRows {
  const double* data;
  Index stride;
};

// `count` columns of some rows, in double and followed by zeros up to `width`: as they lie, or in `buffer`.
template <class Scalar>
HWY_INLINE DoubleRows in_double(const ConstBlockView<Scalar>& block, const Range& rows, Index first, Index count,
                                Index width, double* HWY_RESTRICT buffer) {
  const Scalar* HWY_RESTRICT from = block.data() + rows.begin * block.outerStride() + first;
  if constexpr (std::same_as<Scalar, double>)
    if (count == width) return {from, block.outerStride()};
  double* HWY_RESTRICT to = buffer;
  for (Index i = rows.begin; i < rows.end; ++i, from += block.outerStride(), to += width) {
    copy_row<double>(from, nullptr, count, to);
    std::fill_n(to + count, width - count, 0.0);
  }
  return {buffer, width};
}

// out(k) += sum_i a(i, k) b(i) for Cols columns of a and the columns of a slab.
template <int Cols, class Shape>
HWY_NOINLINE void add_gram(DoubleRows a, DoubleRows b, Index rows, double* HWY_RESTRICT out) {
  const typename Shape::template TagOf<double> tag;
  using Vector = typename Shape::template VectorOf<double>;
  constexpr int vectors = Shape::vectors;
  constexpr Index lanes = Shape::lanes, width = Shape::width;
  Vector sums[Cols][vectors];
#pragma GCC unroll 16
  for (int k = 0; k < Cols; ++k)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[k][v] = hn::Zero(tag);
  const double *HWY_RESTRICT of_a = a.data, *HWY_RESTRICT of_b = b.data;
  for (Index i = 0; i < rows; ++i, of_a += a.stride, of_b += b.stride) {
    Vector row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) row[v] = hn::LoadU(tag, of_b + v * lanes);
#pragma GCC unroll 16
    for (int k = 0; k < Cols; ++k) {
      const Vector value = hn::Set(tag, of_a[k]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[k][v] = hn::MulAdd(value, row[v], sums[k][v]);
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < Cols; ++k)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      double* to = out + k * width + v * lanes;
      hn::StoreU(hn::Add(hn::LoadU(tag, to), sums[k][v]), tag, to);
    }
}

// As many columns of a as there are registers for, then what is left of them by halves: visit(Cols, first).
template <int Cols, class Visit>
HWY_INLINE void for_each_group(Index from, Index to, const Visit& visit) {
  for (; from + Cols <= to; from += Cols) visit(std::integral_constant<int, Cols>(), from);
  if constexpr (Cols > 1) for_each_group<Cols / 2>(from, to, visit);
}

template <class Scalar>
void gram(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, Index begin, Index end, Index diagonal,
          double* out) {
  alignas(64) double of_a[chunk_rows * chunk_cols], of_b[chunk_rows * most_cols];
  DoubleRows slabs[most_cols];
  for (Index row = begin; row < end; row += chunk_rows) {
    const Range rows{row, std::min(end, row + chunk_rows)};
    for_each_slab<double>(b.cols(), [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      slabs[first] = in_double(b, rows, first, std::min(width, b.cols() - first), width, of_b + first * chunk_rows);
    });
    for (Index at = 0; at < a.cols(); at += chunk_cols) {
      const Index cols = std::min(a.cols() - at, chunk_cols);
      const DoubleRows left = in_double(a, rows, at, cols, cols, of_a);
      for_each_slab<double>(b.cols(), [&](auto shape, Index first) HWY_ATTR {
        using Shape = decltype(shape);
        constexpr Index width = Shape::width;
        const Index count = std::min(cols, diagonal + first + width - at);
        if (count <= 0) return;
        for_each_group<sums_in_registers / Shape::vectors>(0, count, [&](auto group, Index k) HWY_ATTR {
          add_gram<decltype(group)::value, Shape>({left.data + k, left.stride}, slabs[first], rows.end - rows.begin,
                                                  out + first * a.cols() + (at + k) * width);
        });
      });
    }
  }
}

// made(i) = a(i) m, or made(i) += a(i) m, for Rows rows, `count` columns of a, and the columns of a slab.
// (Of so few columns add_dots(), which asks for rows ahead and always adds, takes 1.2 to 1.45 times as long.)
template <int Rows, class Shape>
HWY_NOINLINE void row_products(DoubleRows a, Index count, const double* HWY_RESTRICT m, bool add,
                               double* HWY_RESTRICT made) {
  const typename Shape::template TagOf<double> tag;
  using Vector = typename Shape::template VectorOf<double>;
  constexpr int vectors = Shape::vectors;
  constexpr Index lanes = Shape::lanes, width = Shape::width;
  Vector sums[Rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[i][v] = add ? hn::LoadU(tag, made + i * width + v * lanes) : hn::Zero(tag);
  const double* HWY_RESTRICT row = a.data;
  const double* HWY_RESTRICT row4 = row + 4 * a.stride;
  for (Index k = 0; k < count; ++k, ++row, ++row4, m += width) {
    Vector of_m[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) of_m[v] = hn::LoadU(tag, m + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Vector value = hn::Set(tag, value_of_row(row, row4, a.stride, i));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] = hn::MulAdd(value, of_m[v], sums[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[i][v], tag, made + i * width + v * lanes);
}

// `out` is made aside, some rows at a time: it may lie where `a` does.
template <class Scalar>
void multiply(const ConstBlockView<Scalar>& a, const double* m, Index begin, Index end, bool add,
              BlockView<Scalar> out) {
  alignas(64) double of_a[chunk_rows * chunk_cols], made[chunk_rows * most_cols];
  constexpr Index most_at_once = chunk_rows * chunk_cols / strip_rows;
  const Index step = std::min(a.cols(), most_at_once);
  const Index together = std::min(chunk_rows, chunk_rows * chunk_cols / step / strip_rows * strip_rows);
  for (Index row = begin; row < end; row += together) {
    const Range rows{row, std::min(end, row + together)};
    const Index count = rows.end - rows.begin, padded = (count + strip_rows - 1) / strip_rows * strip_rows;
    for (Index at = 0; at < a.cols(); at += step) {
      const Index cols = std::min(a.cols() - at, step);
      DoubleRows left = in_double(a, rows, at, cols, cols, of_a);
      if (count < padded) {  // rows that are not there are zero
        if (left.data != of_a)
          for (Index i = 0; i < count; ++i) std::copy_n(left.data + i * left.stride, cols, of_a + i * cols);
        std::fill_n(of_a + count * cols, (padded - count) * cols, 0.0);
        left = {of_a, cols};
      }
      for_each_slab<double>(out.cols(), [&](auto shape, Index first) HWY_ATTR {
        using Shape = decltype(shape);
        constexpr Index width = Shape::width;
        constexpr int sums = rows_at_once(Shape::vectors);
        for (Index i = 0; i < padded; i += sums)
          row_products<sums, Shape>({left.data + i * left.stride, left.stride}, cols, m + first * a.cols() + at * width,
                                    at > 0, made + first * chunk_rows + i * width);
      });
    }
    for_each_slab<double>(out.cols(), [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      const Index used = std::min(width, out.cols() - first);
      for (Index i = rows.begin; i < rows.end; ++i) {
        Scalar* HWY_RESTRICT to = out.data() + i * out.outerStride() + first;
        const double* HWY_RESTRICT sums = made + first * chunk_rows + (i - row) * width;
        if (add) {
          for (Index j = 0; j < used; ++j) to[j] = static_cast<Scalar>(static_cast<double>(to[j]) + sums[j]);
        } else if (used == width) {
          for (Index j = 0; j < width; ++j) to[j] = static_cast<Scalar>(sums[j]);
        } else {
          for (Index j = 0; j < used; ++j) to[j] = static_cast<Scalar>(sums[j]);
        }
      }
    });
  }
}

template <class Scalar>
const SmallLoops<Scalar>& small_loops_here() {
  static constexpr SmallLoops<Scalar> loops{slab_widths<double>, gram<Scalar>, multiply<Scalar>};
  return loops;
}

const SmallLoops<float>& float_small() {
  return small_loops_here<float>();
}
const SmallLoops<double>& double_small() {
  return small_loops_here<double>();
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(float_small);
HWY_EXPORT(double_small);

template <>
const SmallLoops<float>& small_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(float_small)();
}
template <>
const SmallLoops<double>& small_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(double_small)();
}

}  // namespace itspace::kernels
#endif
