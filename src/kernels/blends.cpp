// SPDX-License-Identifier: Apache-2.0
#include "kernels/blends.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blends.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/double_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

constexpr int vectors = static_cast<int>(blend_sums / lanes);
static_assert(blend_sums % lanes == 0);

template <class Scalar>
void norms(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, Index begin, Index end, double* squares,
           double* differences) {
  Vector square[vectors], difference[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    square[v] = load(squares + v * lanes);
    difference[v] = load(differences + v * lanes);
  }
  const Index cols = y.cols(), whole = cols / blend_sums * blend_sums;
  for (Index i = begin; i < end; ++i) {
    const Scalar* yi = y.data() + i * y.outerStride();
    const Scalar* bi = b.data() + i * b.outerStride();
    const auto add = [&](const Scalar* y_at, const Scalar* b_at) HWY_ATTR {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const Vector value = load(b_at + v * lanes), apart = hn::Sub(value, load(y_at + v * lanes));
        square[v] = hn::Add(square[v], hn::Mul(value, value));
        difference[v] = hn::Add(difference[v], hn::Mul(apart, apart));
      }
    };
    for (Index j = 0; j < whole; j += blend_sums) add(yi + j, bi + j);
    if (whole == cols) continue;
    Scalar y_rest[blend_sums] = {}, b_rest[blend_sums] = {};  // zeros add nothing
    std::copy(yi + whole, yi + cols, y_rest);
    std::copy(bi + whole, bi + cols, b_rest);
    add(y_rest, b_rest);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    store(square[v], squares + v * lanes);
    store(difference[v], differences + v * lanes);
  }
}

// A few columns at a time, their sums in registers.
template <class Scalar>
void column_squares(const ConstBlockView<Scalar>& a, Index begin, Index end, double* sums) {
  Index j = 0;
  for (; j + blend_sums <= a.cols(); j += blend_sums) {
    Vector square[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) square[v] = load(sums + j + v * lanes);
    for (Index i = begin; i < end; ++i) {
      const Scalar* row = a.data() + i * a.outerStride() + j;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const Vector value = load(row + v * lanes);
        square[v] = hn::Add(square[v], hn::Mul(value, value));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store(square[v], sums + j + v * lanes);
  }
  for (Index i = begin; i < end; ++i) {
    const Scalar* row = a.data() + i * a.outerStride();
    for (Index rest = j; rest < a.cols(); ++rest)
      sums[rest] += static_cast<double>(row[rest]) * static_cast<double>(row[rest]);
  }
}

template <class Scalar>
void blend(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha, Index begin, Index end,
           BlockView<Scalar> out) {
  const Vector of_y = hn::Set(Tag(), 1 - alpha), of_b = hn::Set(Tag(), alpha);
  const Index cols = y.cols();
  for (Index i = begin; i < end; ++i) {
    const Scalar* yi = y.data() + i * y.outerStride();
    const Scalar* bi = b.data() + i * b.outerStride();
    Scalar* to = out.data() + i * out.outerStride();
    Index j = 0;
    for (; j + lanes <= cols; j += lanes)
      store(hn::Add(hn::Mul(of_y, load(yi + j)), hn::Mul(of_b, load(bi + j))), to + j);
    for (; j < cols; ++j)
      to[j] = static_cast<Scalar>((1 - alpha) * static_cast<double>(yi[j]) + alpha * static_cast<double>(bi[j]));
  }
}

template <class Scalar>
void subtract_scaled(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, const double* factors,
                     Index begin, Index end, BlockView<Scalar> out) {
  const Index cols = a.cols();
  for (Index i = begin; i < end; ++i) {
    const Scalar* ai = a.data() + i * a.outerStride();
    const Scalar* bi = b.data() + i * b.outerStride();
    Scalar* to = out.data() + i * out.outerStride();
    Index j = 0;
    for (; j + lanes <= cols; j += lanes)
      store(hn::Sub(load(ai + j), hn::Mul(load(bi + j), load(factors + j))), to + j);
    for (; j < cols; ++j)
      to[j] = static_cast<Scalar>(static_cast<double>(ai[j]) - static_cast<double>(bi[j]) * factors[j]);
  }
}

template <class Scalar>
const BlendLoops<Scalar>& loops_here() {
  static constexpr BlendLoops<Scalar> loops{norms<Scalar>, column_squares<Scalar>, blend<Scalar>,
                                            subtract_scaled<Scalar>};
  return loops;
}
const BlendLoops<float>& float_loops() {
  return loops_here<float>();
}
const BlendLoops<double>& double_loops() {
  return loops_here<double>();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(float_loops);
HWY_EXPORT(double_loops);

template <>
const BlendLoops<float>& blend_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(float_loops)();
}
template <>
const BlendLoops<double>& blend_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(double_loops)();
}

}  // namespace itspace::kernels
#endif
