// SPDX-License-Identifier: Apache-2.0
//
// What one thread does of a blend of two tall blocks, and of the norms that a step needs of them. In double, eight sums
// side by side and without fused operations: the same bits on every instruction set.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

inline constexpr Index blend_sums = 8;

template <Storage Scalar>
struct BlendLoops {
  // squares(l) += sum b^2, differences(l) += sum (b - y)^2 over rows [begin, end); l: the column modulo blend_sums.
  void (*norms)(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, Index begin, Index end,
                double* squares, double* differences);
  // sums(j) += sum_i a_ij^2 over rows [begin, end).
  void (*column_squares)(const ConstBlockView<Scalar>& a, Index begin, Index end, double* sums);
  // out = (1 - alpha) y + alpha b over rows [begin, end).
  void (*blend)(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha, Index begin, Index end,
                BlockView<Scalar> out);
  // out = a - b diag(factors) over rows [begin, end).
  void (*subtract_scaled)(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, const double* factors,
                          Index begin, Index end, BlockView<Scalar> out);
};

// For the instruction set of this machine.
template <Storage Scalar>
const BlendLoops<Scalar>& blend_loops();

}  // namespace itspace::kernels
