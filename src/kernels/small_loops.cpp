// SPDX-License-Identifier: Apache-2.0
//
// Products of tall blocks that end in a small matrix or multiply by one, over the same strips as those with wide
// matrices, and in double.
#include "kernels/instruction_sets.hpp"
#include "kernels/strips.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/small_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/strip_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {

template <class Scalar>
void gram(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, Index begin, Index end, Index diagonal,
          double* out) {
  StripBuffer<double> buffer;
  const WideRows<double, Scalar> left{a.data(), a.outerStride(), a.rows(), a.cols()};
  for (Index row = begin; row < end; row += strip_rows) {
    const Index rows = std::min(strip_rows, end - row);
    for (Index at = 0; at < a.cols(); at += most_tile_cols) {
      const Index tile_end = std::min(a.cols(), at + most_tile_cols);
      const Strip<double> strip = strip_of(left, row, rows, at, tile_end, buffer.values);
      for_each_slab<double>(b.cols(), [&](auto shape, Index first) HWY_ATTR {
        constexpr Index width = decltype(shape)::width;
        const Index used = std::min(width, b.cols() - first);
        const Index count = std::min(tile_end, diagonal + first + width) - at;
        if (count <= 0) return;
        double* to_slab = out + first * a.cols() + at * width;
        if constexpr (std::same_as<Scalar, double>)
          if (b.outerStride() == width && used == width && rows == strip_rows) {  // as it lies
            strip_outer<decltype(shape)>(strip, b.data() + row * width, count, to_slab);
            return;
          }
        alignas(64) double factors[slab_values<double>];
        for (Index i = 0; i < strip_rows; ++i) {
          double* HWY_RESTRICT to = factors + i * width;
          const Scalar* HWY_RESTRICT from = b.data() + (row + i) * b.outerStride() + first;
          if (i < rows && used == width) {  // a count that the compiler knows
            for (Index j = 0; j < width; ++j) to[j] = static_cast<double>(from[j]);
          } else {
            for (Index j = 0; j < width; ++j) to[j] = i < rows && j < used ? static_cast<double>(from[j]) : 0.0;
          }
        }
        strip_outer<decltype(shape)>(strip, factors, count, to_slab);
      });
    }
  }
}

// `out` is made aside, a strip at a time: it may lie where `a` does.
template <class Scalar>
void multiply(const ConstBlockView<Scalar>& a, const double* m, Index begin, Index end, bool add,
              BlockView<Scalar> out) {
  StripBuffer<double> buffer;
  alignas(64) double made[strip_rows * most_cols];
  const WideRows<double, Scalar> rows_of_a{a.data(), a.outerStride(), a.rows(), a.cols()};
  const Index values = strip_rows * slab_widths<double>.padded(out.cols());
  for (Index row = begin; row < end; row += strip_rows) {
    const Index rows = std::min(strip_rows, end - row);
    std::fill_n(made, values, 0.0);
    for (Index at = 0; at < a.cols(); at += most_tile_cols) {
      const Index tile_end = std::min(a.cols(), at + most_tile_cols);
      const Strip<double> strip = strip_of(rows_of_a, row, rows, at, tile_end, buffer.values);
      for_each_slab<double>(out.cols(), [&](auto shape, Index first) HWY_ATTR {
        constexpr Index width = decltype(shape)::width;
        strip_dots<decltype(shape)>(strip, m + first * a.cols() + at * width, tile_end - at, made + first * strip_rows);
      });
    }
    for_each_slab<double>(out.cols(), [&](auto shape, Index first) HWY_ATTR {
      constexpr Index width = decltype(shape)::width;
      const Index used = std::min(width, out.cols() - first);
      for (Index i = 0; i < rows; ++i) {
        Scalar* HWY_RESTRICT to = out.data() + (row + i) * out.outerStride() + first;
        const double* HWY_RESTRICT sums = made + first * strip_rows + i * width;
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
