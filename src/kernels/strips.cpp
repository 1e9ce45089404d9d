// SPDX-License-Identifier: Apache-2.0
#include "kernels/strips.hpp"

#include "kernels/instruction_sets.hpp"
#include "kernels/scratch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/strips.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/strip_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {

template <class Scalar>
void pack(const ConstBlockView<Scalar>& from, Index begin, Index end, Scalar* slabs) {
  for_each_slab<Scalar>(from.cols(), [&](auto shape, Index first) HWY_ATTR {
    constexpr Index width = decltype(shape)::width;
    const Index used = std::min(width, from.cols() - first);
    Scalar* to = slabs + first * from.rows() + begin * width;
    for (Index i = begin; i < end; ++i, to += width) {
      std::copy_n(from.data() + i * from.outerStride() + first, used, to);
      std::fill(to + used, to + width, Scalar(0));
    }
  });
}

template <class Scalar>
void unpack_sum(const SlabSum<Scalar>* terms, Index count, Index begin, Index end, Scalar old_scale,
                BlockView<Scalar> to) {
  for_each_slab<Scalar>(to.cols(), [&](auto shape, Index first) HWY_ATTR {
    using Shape = decltype(shape);
    const typename Shape::template TagOf<Scalar> tag;
    constexpr Index lanes = Shape::lanes, width = Shape::width;
    const Index used = std::min(width, to.cols() - first);
    for (Index i = begin; i < end; ++i) {
      Scalar* row = to.data() + i * to.outerStride() + first;
      for (Index j = 0; j < used; j += lanes) {
        const auto values_of = [&](const SlabSum<Scalar>& term) HWY_ATTR {
          return hn::LoadU(tag, term.slabs + first * term.rows + (i - term.first_row) * width + j);
        };
        auto sum = values_of(terms[0]);
        for (Index t = 1; t < count; ++t) sum = hn::Add(sum, values_of(terms[t]));
        if (old_scale == Scalar(0) && j + lanes <= used) {
          hn::StoreU(sum, tag, row + j);
          continue;
        }
        alignas(64) Scalar values[static_cast<std::size_t>(lanes)];
        hn::StoreU(sum, tag, values);
        for (Index c = 0; c < std::min(lanes, used - j); ++c)
          row[j + c] = old_scale == Scalar(0) ? values[c] : old_scale * row[j + c] + values[c];
      }
    }
  });
}

// The block on the diagonal, whole, from its upper triangle: w += it times y, both from their row `row` on.
template <class Scalar, class Data>
HWY_INLINE void add_diagonal_block(const WideRows<Scalar, Data>& a, Index row, Index rows,
                                   const SymmetricTile<Scalar>& t, Index cols) {
  alignas(64) Scalar block[strip_rows * strip_rows] = {};
  for (Index i = 0; i < rows; ++i)
    for (Index k = i; k < rows; ++k)
      block[i * strip_rows + k] = block[k * strip_rows + i] =
          static_cast<Scalar>(a.data[(row + i) * a.stride + row + k]);
  for_each_slab<Scalar>(cols, [&](auto shape, Index first) HWY_ATTR {
    constexpr Index width = decltype(shape)::width;
    alignas(64) Scalar sums[slab_values<Scalar>] = {};
    strip_dots<decltype(shape)>(Strip<Scalar>{block, strip_rows}, t.y + first * a.count + row * width, rows, sums);
    Scalar* to = t.w_top + first * (t.bottom - t.top) + (row - t.top) * width;
    for (Index i = 0; i < rows * width; ++i) to[i] += sums[i];
  });
}

template <class Scalar, class Data>
void symmetric(const WideRows<Scalar, Data>& a, const SymmetricTile<Scalar>& t, Index cols) {
  StripBuffer<Scalar> buffer;
  const Index step = tile_cols_for<Scalar>(slab_widths<Scalar>.padded(cols));
  const bool diagonal = t.top == t.left;
  for (Index tile = t.left; tile < t.right; tile += step) {
    const Index tile_end = std::min(t.right, tile + step);
    for (Index row = t.top; row < (diagonal ? std::min(t.bottom, tile_end) : t.bottom); row += strip_rows) {
      const Index rows = std::min(strip_rows, a.count - row);
      if (diagonal && row >= tile) add_diagonal_block(a, row, rows, t, cols);
      const Index left = diagonal ? std::max(tile, row + strip_rows) : tile;
      if (left >= tile_end) continue;
      const auto add = [&](const auto& strip) HWY_ATTR {
        for_each_slab<Scalar>(cols, [&](auto shape, Index first) HWY_ATTR {
          constexpr Index width = decltype(shape)::width;
          const Scalar* y = t.y + first * a.count;
          strip_both<decltype(shape)>(strip, y + left * width, y + row * width, tile_end - left,
                                      t.w_left + first * (t.right - t.left) + (left - t.left) * width,
                                      t.w_top + first * (t.bottom - t.top) + (row - t.top) * width);
        });
      };
      // Each value serves twice as many products here as in the other loops: it is converted on the way.
      if (may_stay(a, rows)) {
        add(strip_as_it_lies(a, row, left));
      } else {
        add(copied_strip(a, row, rows, left, tile_end, buffer.values));
      }
    }
  }
}

// Products of a group of strips, in slabs.
template <class Scalar>
struct GroupProducts {
  alignas(64) Scalar values[group_rows * most_cols];
};

// products = a(rows [row, row + rows)) y. `ahead`: rows to ask for meanwhile, if others than those after each strip.
template <class Scalar, class Data>
HWY_INLINE void group_dots(const WideRows<Scalar, Data>& a, Index row, Index rows, const Scalar* y, Index cols,
                           Index step, StripBuffer<Scalar>& buffer, GroupProducts<Scalar>& products,
                           const RowsAhead& ahead = {}) {
  const Index padded = slab_widths<Scalar>.padded(cols);
  std::fill_n(products.values, group_rows * padded, Scalar(0));
  for (Index left = 0; left < a.cols; left += step) {
    const Index right = std::min(a.cols, left + step);
    for (Index at = 0; at < rows; at += strip_rows) {
      Strip<Scalar> strip = strip_of(a, row + at, std::min(strip_rows, rows - at), left, right, buffer.values);
      if (ahead.data != nullptr)
        strip.next = {ahead.data + at * ahead.stride + left * ahead.value, ahead.stride, ahead.value};
      for_each_slab<Scalar>(cols, [&](auto shape, Index first) HWY_ATTR {
        constexpr Index width = decltype(shape)::width;
        strip_dots<decltype(shape)>(strip, y + first * a.cols + left * width, right - left,
                                    products.values + first * group_rows + at * width);
      });
    }
  }
}

// Rows [row, row + rows) converted and shifted, for both products of a group.
template <class Scalar, class Data>
WideRows<Scalar, Scalar> copied_group(const WideRows<Scalar, Data>& a, Index row, Index rows, Index stride,
                                      Scalar* HWY_RESTRICT to) {
  for (Index i = 0; i < rows; ++i) copy_row(a.data + (row + i) * a.stride, a.shift, a.cols, to + i * stride);
  return {to, stride, rows, a.cols};
}

// w += a(rows [row, row + rows), columns [left, right))' products.
template <class Scalar, class Data>
HWY_INLINE void group_outer(const WideRows<Scalar, Data>& a, Index row, Index rows, Index left, Index right,
                            const GroupProducts<Scalar>& products, Index cols, Index step, StripBuffer<Scalar>& buffer,
                            Scalar* w) {
  for (; left < right; left += step) {
    const Index tile_end = std::min(right, left + step);
    for (Index at = 0; at < rows; at += strip_rows) {
      const Strip<Scalar> strip = strip_of(a, row + at, std::min(strip_rows, rows - at), left, tile_end, buffer.values);
      for_each_slab<Scalar>(cols, [&](auto shape, Index first) HWY_ATTR {
        constexpr Index width = decltype(shape)::width;
        strip_outer<decltype(shape)>(strip, products.values + first * group_rows + at * width, tile_end - left,
                                     w + first * a.cols + left * width);
      });
    }
  }
}

template <class Scalar, class Data>
void times(const WideRows<Scalar, Data>& a, Index begin, Index end, const Scalar* y, Scalar alpha, Scalar beta,
           BlockView<Scalar> out) {
  StripBuffer<Scalar> buffer;
  GroupProducts<Scalar> products;
  const Index step = tile_cols_for<Scalar>(slab_widths<Scalar>.padded(out.cols()));
  for (Index row = begin; row < end; row += group_rows) {
    const Index rows = std::min(group_rows, end - row);
    group_dots(a, row, rows, y, out.cols(), step, buffer, products);
    for_each_slab<Scalar>(out.cols(), [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      const Index used = std::min(width, out.cols() - first);
      for (Index i = 0; i < rows; ++i) {
        Scalar* HWY_RESTRICT to = out.data() + (row + i) * out.outerStride() + first;
        const Scalar* HWY_RESTRICT from = products.values + first * group_rows + i * width;
        if (beta == Scalar(0)) {
          for (Index j = 0; j < used; ++j) to[j] = alpha * from[j];
        } else {
          for (Index j = 0; j < used; ++j) to[j] = beta * to[j] + alpha * from[j];
        }
      }
    });
  }
}

template <class Scalar, class Data>
void transposed(const WideRows<Scalar, Data>& a, Index begin, Index end, Index left, Index right, Scalar alpha,
                const ConstBlockView<Scalar>& p, Scalar* w) {
  StripBuffer<Scalar> buffer;
  GroupProducts<Scalar> products;
  const Index padded = slab_widths<Scalar>.padded(p.cols());
  const Index step = tile_cols_for<Scalar>(padded);
  for (Index row = begin; row < end; row += group_rows) {
    const Index rows = std::min(group_rows, end - row);
    std::fill_n(products.values, group_rows * padded, Scalar(0));
    for_each_slab<Scalar>(p.cols(), [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      const Index used = std::min(width, p.cols() - first);
      for (Index i = 0; i < rows; ++i) {
        const Scalar* HWY_RESTRICT from = p.data() + (row + i) * p.outerStride() + first;
        Scalar* HWY_RESTRICT to = products.values + first * group_rows + i * width;
        for (Index j = 0; j < used; ++j) to[j] = alpha * from[j];
      }
    });
    group_outer(a, row, rows, left, right, products, p.cols(), step, buffer, w);
  }
}

template <class Scalar, class Data>
void squared(const WideRows<Scalar, Data>& a, Index begin, Index end, const Scalar* y, Index cols,
             const RowFactors& factors, Scalar* w) {
  StripBuffer<Scalar> buffer;
  GroupProducts<Scalar> products;
  const Index step = tile_cols_for<Scalar>(slab_widths<Scalar>.padded(cols));
  // Rows that are still in the second-level cache when they are read again.
  constexpr Index cached = (Index(1) << 20) / static_cast<Index>(sizeof(Data));
  const bool copies = a.shift != nullptr || !std::same_as<Scalar, Data>;
  const Index most_rows = copies ? group_rows / 2 : group_rows;
  const Index at_once = std::clamp(cached / a.cols / strip_rows * strip_rows, strip_rows, most_rows);
  // The copies' rows are an odd number of cache lines apart.
  constexpr Index line = 64 / static_cast<Index>(sizeof(Scalar));
  const Index stride = ((a.cols + line - 1) / line | 1) * line;
  const bool copied = copies && at_once * stride <= cached;
  Scalar* const aside = copied ? thread_scratch<Scalar, Scratch::rows_aside>(at_once * stride) : nullptr;
  for (Index row = begin; row < end; row += at_once) {
    const Index rows = std::min(at_once, end - row);
    WideRows<Scalar, Scalar> group{};
    if (copied) {
      group = copied_group(a, row, rows, stride, aside);
      const Index next = row + at_once;
      const RowsAhead ahead = next + at_once <= end ? RowsAhead::at(a.data + next * a.stride, a.stride) : RowsAhead();
      group_dots(group, 0, rows, y, cols, step, buffer, products, ahead);
    } else {
      group_dots(a, row, rows, y, cols, step, buffer, products);
    }
    for_each_slab<Scalar>(cols, [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      for (Index i = 0; i < rows; ++i) {
        // One factor at a time: the square may be out of float's range where the product is not.
        const auto factor = static_cast<Scalar>(factors(row + i));
        Scalar* p = products.values + first * group_rows + i * width;
        for (Index j = 0; j < width; ++j) p[j] = p[j] * factor * factor;
      }
    });
    if (copied) {
      group_outer(group, 0, rows, 0, a.cols, products, cols, step, buffer, w);
    } else {
      group_outer(a, row, rows, 0, a.cols, products, cols, step, buffer, w);
    }
  }
}

// x(i) <- scale (x(i) - from) + to + p(i) update, for Rows rows and the columns of a slab of `update`.
template <int Rows, class Shape, class Scalar>
HWY_NOINLINE void move_rows(const LowRankMap<Scalar>& map, const Scalar* HWY_RESTRICT from,
                            const Scalar* HWY_RESTRICT to, const Scalar* HWY_RESTRICT update,
                            const Scalar* HWY_RESTRICT p, Index p_stride, Scalar* HWY_RESTRICT x, Index stride) {
  const typename Shape::template TagOf<Scalar> tag;
  using Vector = typename Shape::template VectorOf<Scalar>;
  constexpr int vectors = Shape::vectors;
  constexpr Index lanes = Shape::lanes, width = Shape::width;
  const Vector scale = hn::Set(tag, map.scale);
  Vector sums[Rows][vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    const Vector origin = hn::LoadU(tag, from + v * lanes), place = hn::LoadU(tag, to + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
      sums[i][v] = hn::MulAdd(scale, hn::Sub(hn::LoadU(tag, x + i * stride + v * lanes), origin), place);
  }
  const Scalar* HWY_RESTRICT p4 = p + 4 * p_stride;
  for (Index j = 0; j < map.rank; ++j, ++p, ++p4, update += width) {
    Vector row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) row[v] = hn::LoadU(tag, update + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Vector value = hn::Set(tag, value_of_row(p, p4, p_stride, i));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] = hn::MulAdd(value, row[v], sums[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[i][v], tag, x + i * stride + v * lanes);
}

template <class Scalar>
void map(const LowRankMap<Scalar>& map, Index begin, Index end, BlockView<Scalar> samples) {
  constexpr Index widest = most_vectors * slab_widths<Scalar>.lanes;
  StripBuffer<Scalar> buffer;
  GroupProducts<Scalar> products, by_rows;
  alignas(64) Scalar edge[(strip_rows + 2) * widest];
  const Index d = samples.cols(), stride = samples.outerStride();
  const WideRows<Scalar, Scalar> x{samples.data(), stride, samples.rows(), d, map.from};
  const Index step = tile_cols_for<Scalar>(slab_widths<Scalar>.padded(map.rank));
  for (Index row = begin; row < end; row += group_rows) {
    const Index rows = std::min(group_rows, end - row);
    group_dots(x, row, rows, map.basis, map.rank, step, buffer, products);
    // Out of slabs, and scaled. Rows that are not there have products of zero.
    for_each_slab<Scalar>(map.rank, [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      for (Index i = 0; i < group_rows; ++i)
        for (Index j = 0; j < std::min(width, map.rank - first); ++j)
          by_rows.values[i * map.rank + first + j] = map.scale * products.values[first * group_rows + i * width + j];
    });
    for_each_slab<Scalar>(d, [&](auto shape, Index first) HWY_ATTR {
      using Shape = decltype(shape);
      constexpr int rows_here = rows_at_once(Shape::vectors);
      constexpr Index width = Shape::width;
      const Scalar* update = map.update + first * map.rank;
      const Index used = std::min(width, d - first);
      for (Index i = 0; i < rows; i += rows_here) {
        Scalar* at = samples.data() + (row + i) * stride + first;
        const Scalar* p = by_rows.values + i * map.rank;
        if (used == width && i + rows_here <= rows) {
          move_rows<rows_here, Shape>(map, map.from + first, map.to + first, update, p, map.rank, at, stride);
          continue;
        }
        // The last rows and columns, by way of memory that is wide enough.
        const Index there = std::min<Index>(rows_here, rows - i);
        std::fill_n(edge, (strip_rows + 2) * width, Scalar(0));
        Scalar *from = edge + strip_rows * width, *to = from + width;
        std::copy_n(map.from + first, used, from);
        std::copy_n(map.to + first, used, to);
        for (Index k = 0; k < there; ++k) std::copy_n(at + k * stride, used, edge + k * width);
        move_rows<rows_here, Shape>(map, from, to, update, p, map.rank, edge, width);
        for (Index k = 0; k < there; ++k) std::copy_n(edge + k * width, used, at + k * stride);
      }
    });
  }
}

template <class Scalar, class Data>
const StripLoops<Scalar, Data>& strip_loops_here() {
  static constexpr StripLoops<Scalar, Data> loops{
      slab_widths<Scalar>,      pack<Scalar>,          unpack_sum<Scalar>, symmetric<Scalar, Data>, times<Scalar, Data>,
      transposed<Scalar, Data>, squared<Scalar, Data>, map<Scalar>};
  return loops;
}
const StripLoops<float, float>& float_loops() {
  return strip_loops_here<float, float>();
}
const StripLoops<double, double>& double_loops() {
  return strip_loops_here<double, double>();
}
const StripLoops<double, float>& mixed_loops() {
  return strip_loops_here<double, float>();
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(float_loops);
HWY_EXPORT(double_loops);
HWY_EXPORT(mixed_loops);

template <>
const StripLoops<float, float>& strip_loops<float, float>() {
  return HWY_DYNAMIC_DISPATCH(float_loops)();
}
template <>
const StripLoops<double, double>& strip_loops<double, double>() {
  return HWY_DYNAMIC_DISPATCH(double_loops)();
}
template <>
const StripLoops<double, float>& strip_loops<double, float>() {
  return HWY_DYNAMIC_DISPATCH(mixed_loops)();
}
std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const auto target : hwy::SupportedAndGeneratedTargets()) names.push_back(hwy::TargetName(target));
  return names;
}

UseInstructionSetForTests::UseInstructionSetForTests(std::size_t number) {
  hwy::SetSupportedTargetsForTest(hwy::SupportedAndGeneratedTargets().at(number));
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
UseInstructionSetForTests::~UseInstructionSetForTests() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace itspace::kernels
#endif
