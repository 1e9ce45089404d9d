// SPDX-License-Identifier: Apache-2.0
//
// Strips, and the three small loops over their rows that all products are made of, for one instruction set; included
// anew for each (Highway's manner: no include guard, but one for each target).
#if defined(ITSPACE_KERNELS_STRIP_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ITSPACE_KERNELS_STRIP_VECTORS_INL
#undef ITSPACE_KERNELS_STRIP_VECTORS_INL
#else
#define ITSPACE_KERNELS_STRIP_VECTORS_INL
#endif

#include "kernels/strips.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <concepts>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Vector registers: 32 of AVX-512 and NEON, else 16.
inline constexpr bool many_registers = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON;
inline constexpr int most_vectors = many_registers ? 4 : 2;
// Half a vector of AVX-512 is half the work on processors that make a whole one in two halves, and no more on others.
inline constexpr bool has_halves = HWY_TARGET <= HWY_AVX3;
template <class Scalar>
inline constexpr SlabWidths slab_widths{static_cast<Index>(HWY_LANES(Scalar)), most_vectors, has_halves};

// The shape of a slab, as a type.
template <int Vectors, Index Lanes>
struct Slab {
  static constexpr int vectors = Vectors;
  static constexpr Index lanes = Lanes, width = Vectors * Lanes;
  template <class Scalar>
  using TagOf = hn::CappedTag<Scalar, static_cast<std::size_t>(Lanes)>;
  template <class Scalar>
  using VectorOf = hn::Vec<TagOf<Scalar>>;
};
// Rows whose sums over `vectors` columns are kept in registers.
inline constexpr int sums_in_registers = many_registers ? 16 : 8;
constexpr int rows_at_once(int vectors) {
  const int rows = sums_in_registers / vectors;
  return rows < static_cast<int>(strip_rows) ? rows : static_cast<int>(strip_rows);
}

// Columns of a strip at a time: the parts of y and w that belong to them stay in the first-level cache while strip
// after strip goes by.
constexpr Index fewest_tile_cols = 64, most_tile_cols = 256;
template <class Scalar>
Index tile_cols_for(Index padded) {
  constexpr Index cached = 16384 / static_cast<Index>(sizeof(Scalar));
  return std::clamp(cached / padded / fewest_tile_cols * fewest_tile_cols, fewest_tile_cols, most_tile_cols);
}

// Strips that a tile of y or w serves in turn; their products are kept aside.
constexpr Index group_strips = 4, group_rows = group_strips * strip_rows;
constexpr Index most_cols = most_strip_columns;

// Values of the widest slab over a strip.
template <class Scalar>
inline constexpr Index slab_values = strip_rows* most_vectors* static_cast<Index>(HWY_LANES(Scalar));

// The rows after a strip, which are asked for while it is multiplied (null: they are in cache), in bytes: of another
// type than the strip where it is a copy.
struct RowsAhead {
  const char* data = nullptr;
  Index stride = 0, value = 0;

  template <class Data>
  static HWY_INLINE RowsAhead at(const Data* data, Index stride) {
    constexpr auto value = static_cast<Index>(sizeof(Data));
    return {reinterpret_cast<const char*>(data), stride * value, value};
  }
};

// Rows of a strip that is to be multiplied: where they lie, and what comes after.
template <class Scalar>
struct Strip {
  const Scalar* data;
  Index stride;
  RowsAhead next = {};

  HWY_INLINE Strip from_row(Index i) const {
    return {data + i * stride, stride, {next.data ? next.data + i * next.stride : nullptr, next.stride, next.value}};
  }
};

// Value (i, k) of rows that lie `stride` apart, of which `a` is the first and `a4` the fifth, both moved to column k:
// few enough addresses for the registers that there are.
template <class Scalar>
HWY_INLINE Scalar value_of_row(const Scalar* a, const Scalar* a4, Index stride, int i) {
  const Scalar* from = i < 4 ? a : a4;
  return from[(i & 3) * stride];
}

// visit(k) for the columns of a strip, cache line by cache line, each line of the next strip asked for in time.
template <int Rows, class Scalar, class Visit>
HWY_INLINE void for_each_column(const Strip<Scalar>& strip, Index count, Visit visit) {
  constexpr Index line = 64 / static_cast<Index>(sizeof(Scalar));
  for (Index k = 0; k < count;) {
    if (strip.next.data != nullptr) {
      const char* line_ahead = strip.next.data + k * strip.next.value;
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) __builtin_prefetch(line_ahead + i * strip.next.stride, 0, 2);
    }
    for (const Index end = std::min(count, k + line); k < end; ++k) visit(k);
  }
}

// p(i) += a(i, :) y, for Rows rows.
template <int Rows, class Shape, class Scalar>
HWY_NOINLINE void add_dots(const Strip<Scalar> strip, const Scalar* HWY_RESTRICT y, Index count,
                           Scalar* HWY_RESTRICT p) {
  const typename Shape::template TagOf<Scalar> tag;
  using Vector = typename Shape::template VectorOf<Scalar>;
  constexpr int vectors = Shape::vectors;
  constexpr Index lanes = Shape::lanes, width = Shape::width;
  Vector sums[Rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[i][v] = hn::Zero(tag);
  const Scalar* HWY_RESTRICT a = strip.data;
  const Scalar* HWY_RESTRICT a4 = a + 4 * strip.stride;
  for_each_column<Rows>(strip, count, [&](Index) HWY_ATTR {
    Vector yk[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) yk[v] = hn::LoadU(tag, y + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Vector value = hn::Set(tag, value_of_row(a, a4, strip.stride, i));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] = hn::MulAdd(value, yk[v], sums[i][v]);
    }
    ++a, ++a4, y += width;
  });
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Scalar* to = p + i * width + v * lanes;
      hn::StoreU(hn::Add(hn::LoadU(tag, to), sums[i][v]), tag, to);
    }
}

// w(k) += sum_i a(i, k) p(i), over Rows rows.
template <int Rows, class Shape, class Scalar>
HWY_NOINLINE void add_outer(const Strip<Scalar> strip, const Scalar* HWY_RESTRICT p, Index count,
                            Scalar* HWY_RESTRICT w) {
  const typename Shape::template TagOf<Scalar> tag;
  using Vector = typename Shape::template VectorOf<Scalar>;
  constexpr int vectors = Shape::vectors;
  constexpr Index lanes = Shape::lanes, width = Shape::width;
  Vector rows[Rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) rows[i][v] = hn::LoadU(tag, p + i * width + v * lanes);
  const Scalar* HWY_RESTRICT a = strip.data;
  const Scalar* HWY_RESTRICT a4 = a + 4 * strip.stride;
  for_each_column<Rows>(strip, count, [&](Index) HWY_ATTR {
    Vector sums[vectors];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Vector value = hn::Set(tag, value_of_row(a, a4, strip.stride, i));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        sums[v] = i == 0 ? hn::Mul(value, rows[i][v]) : hn::MulAdd(value, rows[i][v], sums[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) hn::StoreU(hn::Add(hn::LoadU(tag, w + v * lanes), sums[v]), tag, w + v * lanes);
    ++a, ++a4, w += width;
  });
}

// A value in all lanes, converted on the way where it is of another type.
template <class Tag, class Data>
HWY_INLINE hn::Vec<Tag> in_all_lanes(Tag tag, Data value) {
  if constexpr (std::same_as<hn::TFromD<Tag>, Data>) {
    return hn::Set(tag, value);
  } else {
    return hn::PromoteTo(tag, hn::Set(hn::Rebind<Data, Tag>(), value));
  }
}

// Both at once: p(i) += a(i, :) y and w(k) += sum_i a(i, k) q(i). Each value of a is loaded once.
template <int Rows, class Shape, class Scalar, class Data>
HWY_NOINLINE void add_both(const Strip<Data> strip, const Scalar* HWY_RESTRICT y, const Scalar* HWY_RESTRICT q,
                           Index count, Scalar* HWY_RESTRICT w, Scalar* HWY_RESTRICT p) {
  const typename Shape::template TagOf<Scalar> tag;
  using Vector = typename Shape::template VectorOf<Scalar>;
  constexpr int vectors = Shape::vectors;
  constexpr Index lanes = Shape::lanes, width = Shape::width;
  // The q(i) stay in registers where there is room for them beside the sums.
  constexpr bool keeps = Rows * vectors <= (many_registers ? 8 : 0);
  Vector sums[Rows][vectors], kept[Rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sums[i][v] = hn::Zero(tag);
      kept[i][v] = keeps ? hn::LoadU(tag, q + i * width + v * lanes) : hn::Zero(tag);
    }
  const Data* HWY_RESTRICT a = strip.data;
  const Data* HWY_RESTRICT a4 = a + 4 * strip.stride;
  for_each_column<Rows>(strip, count, [&](Index) HWY_ATTR {
    Vector yk[vectors], wk[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) yk[v] = hn::LoadU(tag, y + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Vector value = in_all_lanes(tag, value_of_row(a, a4, strip.stride, i));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const Vector qi = keeps ? kept[i][v] : hn::LoadU(tag, q + i * width + v * lanes);
        sums[i][v] = hn::MulAdd(value, yk[v], sums[i][v]);
        wk[v] = i == 0 ? hn::Mul(value, qi) : hn::MulAdd(value, qi, wk[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) hn::StoreU(hn::Add(hn::LoadU(tag, w + v * lanes), wk[v]), tag, w + v * lanes);
    ++a, ++a4, y += width, w += width;
  });
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Scalar* to = p + i * width + v * lanes;
      hn::StoreU(hn::Add(hn::LoadU(tag, to), sums[i][v]), tag, to);
    }
}

// visit(its shape) for a slab of that width.
template <class Scalar, class Visit>
HWY_INLINE void with_shape(Index width, Visit visit) {
  constexpr Index lanes = slab_widths<Scalar>.lanes;
  if constexpr (has_halves)
    if (width == lanes / 2) {
      visit(Slab<1, lanes / 2>());
      return;
    }
  if (width == lanes) {
    visit(Slab<1, lanes>());
  } else if (width == 2 * lanes) {
    visit(Slab<2, lanes>());
  } else {
    visit(Slab<most_vectors, lanes>());
  }
}

// visit(shape, first column) for each slab of a block of `cols` columns.
template <class Scalar, class Visit>
HWY_INLINE void for_each_slab(Index cols, Visit visit) {
  for (Index first = 0; first < cols;) {
    const Index width = slab_widths<Scalar>.next(cols - first);
    with_shape<Scalar>(width, [&](auto shape) HWY_ATTR { visit(shape, first); });
    first += width;
  }
}

// The three loops over a whole strip and a slab: rows a few at a time, as the registers allow.
template <class Shape, class Scalar>
HWY_INLINE void strip_dots(const Strip<Scalar>& strip, const Scalar* y, Index count, Scalar* p) {
  constexpr int rows = rows_at_once(Shape::vectors);
  for (Index i = 0; i < strip_rows; i += rows) add_dots<rows, Shape>(strip.from_row(i), y, count, p + i * Shape::width);
}
template <class Shape, class Scalar>
HWY_INLINE void strip_outer(const Strip<Scalar>& strip, const Scalar* p, Index count, Scalar* w) {
  constexpr int rows = rows_at_once(Shape::vectors);
  for (Index i = 0; i < strip_rows; i += rows)
    add_outer<rows, Shape>(strip.from_row(i), p + i * Shape::width, count, w);
}
template <class Shape, class Scalar, class Data>
HWY_INLINE void strip_both(const Strip<Data>& strip, const Scalar* y, const Scalar* q, Index count, Scalar* w,
                           Scalar* p) {
  constexpr int rows = rows_at_once(Shape::vectors);
  for (Index i = 0; i < strip_rows; i += rows)
    add_both<rows, Shape>(strip.from_row(i), y, q + i * Shape::width, count, w, p + i * Shape::width);
}

// A tile of a strip, copied.
template <class Scalar>
struct StripBuffer {
  alignas(64) Scalar values[strip_rows * most_tile_cols];
};

// The strip after the one at `row`, from column `left` on, where all of its rows are there.
template <class Scalar, class Data>
HWY_INLINE RowsAhead rows_ahead(const WideRows<Scalar, Data>& a, Index row, Index left) {
  if (row + 2 * strip_rows > a.count) return {};
  return RowsAhead::at(a.data + (row + strip_rows) * a.stride + left, a.stride);
}

// to = from - shift, or from where there is no shift, converted.
template <class Scalar, class Data>
HWY_INLINE void copy_row(const Data* HWY_RESTRICT from, const Scalar* HWY_RESTRICT shift, Index count,
                         Scalar* HWY_RESTRICT to) {
  if (shift != nullptr) {
    for (Index k = 0; k < count; ++k) to[k] = static_cast<Scalar>(from[k]) - shift[k];
    return;
  }
  Index k = 0;
  if constexpr (std::same_as<Scalar, double> && std::same_as<Data, float>) {  // short rows, too, by vectors
    const hn::ScalableTag<double> tag;
    const hn::Rebind<float, decltype(tag)> of_floats;
    constexpr Index lanes = slab_widths<double>.lanes;
    for (; k + lanes <= count; k += lanes) hn::StoreU(hn::PromoteTo(tag, hn::LoadU(of_floats, from + k)), tag, to + k);
  }
  for (; k < count; ++k) to[k] = static_cast<Scalar>(from[k]);
}

// Columns [left, right) of the strip of rows [row, row + rows), converted and shifted into `buffer`; rows that are not
// there are zero.
template <class Scalar, class Data>
HWY_INLINE Strip<Scalar> copied_strip(const WideRows<Scalar, Data>& a, Index row, Index rows, Index left, Index right,
                                      Scalar* HWY_RESTRICT buffer) {
  const Index count = right - left;
  for (Index i = 0; i < strip_rows; ++i) {
    Scalar* HWY_RESTRICT to = buffer + i * count;
    if (i >= rows) {
      std::fill_n(to, count, Scalar(0));
      continue;
    }
    copy_row(a.data + (row + i) * a.stride + left, a.shift ? a.shift + left : nullptr, count, to);
  }
  return {buffer, count, rows_ahead(a, row, left)};
}

template <class Scalar, class Data>
HWY_INLINE bool may_stay(const WideRows<Scalar, Data>& a, Index rows) {
  return a.shift == nullptr && rows == strip_rows;
}
template <class Scalar, class Data>
HWY_INLINE Strip<Data> strip_as_it_lies(const WideRows<Scalar, Data>& a, Index row, Index left) {
  return {a.data + row * a.stride + left, a.stride, rows_ahead(a, row, left)};
}

// As it lies where it can be.
template <class Scalar, class Data>
HWY_INLINE Strip<Scalar> strip_of(const WideRows<Scalar, Data>& a, Index row, Index rows, Index left, Index right,
                                  Scalar* buffer) {
  if constexpr (std::same_as<Scalar, Data>)
    if (may_stay(a, rows)) return strip_as_it_lies(a, row, left);
  return copied_strip(a, row, rows, left, right, buffer);
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#endif
