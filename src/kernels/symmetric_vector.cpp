// SPDX-License-Identifier: Apache-2.0
#include "kernels/symmetric_vector.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/symmetric_vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/double_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {

// `Cols` columns from `first` on. The values beside the diagonal one by one, what is below them by vectors.
template <int Cols>
void add_columns(const double* a, Index stride, Index n, Index first, const double* HWY_RESTRICT x,
                 double* HWY_RESTRICT y) {
  const double* column[Cols];
  Vector of_x[Cols], sums[Cols];
#pragma GCC unroll 8
  for (int c = 0; c < Cols; ++c) {
    column[c] = a + (first + c) * stride;
    of_x[c] = hn::Set(Tag(), x[first + c]);
    sums[c] = hn::Zero(Tag());
  }
  const auto add_row = [&](int c, Index i) {
    y[i] += column[c][i] * x[first + c];
    if (i != first + c) y[first + c] += column[c][i] * x[i];
  };
  const Index below = std::min(n, first + Cols);
  for (int c = 0; c < Cols; ++c)
    for (Index i = first + c; i < below; ++i) add_row(c, i);
  Index i = below;
  for (; i + lanes <= n; i += lanes) {
    const Vector xi = load(x + i);
    Vector yi = load(y + i);
#pragma GCC unroll 8
    for (int c = 0; c < Cols; ++c) {
      const Vector value = load(column[c] + i);
      yi = hn::MulAdd(value, of_x[c], yi);
      sums[c] = hn::MulAdd(value, xi, sums[c]);
    }
    store(yi, y + i);
  }
  for (; i < n; ++i)
    for (int c = 0; c < Cols; ++c) add_row(c, i);
#pragma GCC unroll 8
  for (int c = 0; c < Cols; ++c) y[first + c] += hn::GetLane(hn::SumOfLanes(Tag(), sums[c]));
}

void add_all(const double* a, Index stride, Index n, Index begin, Index end, const double* x, double* y) {
  constexpr int together = 4;
  for (; begin + together <= end; begin += together) add_columns<together>(a, stride, n, begin, x, y);
  for (; begin < end; ++begin) add_columns<1>(a, stride, n, begin, x, y);
}

}  // namespace

void add_symmetric_columns_here(const double* a, Index stride, Index n, Index begin, Index end, const double* x,
                                double* y) {
  add_all(a, stride, n, begin, end, x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(add_symmetric_columns_here);

void add_symmetric_columns(const double* a, Index stride, Index n, Index begin, Index end, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(add_symmetric_columns_here)(a, stride, n, begin, end, x, y);
}

}  // namespace itspace::kernels
#endif
