// SPDX-License-Identifier: Apache-2.0
#include "kernels/stream_loops.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stream_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

template <class Scalar>
void add_differences(const Scalar* HWY_RESTRICT row, const Scalar* HWY_RESTRICT origin, double share, Index begin,
                     Index end, double* HWY_RESTRICT sums) {
  for (Index j = begin; j < end; ++j) sums[j] += share * (static_cast<double>(row[j]) - static_cast<double>(origin[j]));
}

template <class Scalar>
void centre_row(const Scalar* HWY_RESTRICT row, const double* HWY_RESTRICT mean, double root, Index begin, Index end,
                Scalar* HWY_RESTRICT to, double* HWY_RESTRICT squares) {
  for (Index j = begin; j < end; ++j) {
    const auto value = static_cast<Scalar>((static_cast<double>(row[j]) - mean[j]) * root);
    to[j] = value;
    squares[j] += static_cast<double>(value) * static_cast<double>(value);
  }
}

template <class Scalar>
void centre(const CentreRows<Scalar>& request, Index begin, Index end) {
  constexpr Index width = 512;  // of the rows that are in cache when they are read again
  for (Index first = begin; first < end; first += width) {
    const Index last = std::min(first + width, end);
    // About the first row: the mean of equal values is that value to the last bit.
    const Scalar* origin = request.rows[0];
    for (Index i = 1; i < request.count; ++i)
      add_differences(request.rows[i], origin, request.shares[i], first, last, request.mean);
    for (Index j = first; j < last; ++j)
      request.mean[j] = static_cast<double>(origin[j]) + request.mean[j] / request.total;
    for (Index i = 0; i < request.count; ++i)
      centre_row(request.rows[i], request.mean, request.roots[i], first, last, request.centred + i * request.stride,
                 request.squares);
  }
}

template <class Scalar>
void add(const Scalar* HWY_RESTRICT from, Scalar factor, Index count, Scalar* HWY_RESTRICT to) {
  for (Index j = 0; j < count; ++j) to[j] += factor * from[j];
}

template <class Scalar>
void add_squares(const Scalar* HWY_RESTRICT from, Index count, double* HWY_RESTRICT to) {
  for (Index j = 0; j < count; ++j) to[j] += static_cast<double>(from[j]) * static_cast<double>(from[j]);
}

template <class Scalar>
void transpose(const Scalar* HWY_RESTRICT from, Index from_stride, Index rows, Index cols, double factor,
               Scalar* HWY_RESTRICT to, Index to_stride) {
  constexpr Index tile = 16;  // lines that are written, and read again for the next column
  for (Index first = 0; first < rows; first += tile) {
    const Index count = std::min(tile, rows - first);
    for (Index j = 0; j < cols; ++j) {
      const Scalar* HWY_RESTRICT column = from + first * from_stride + j;
      Scalar* HWY_RESTRICT row = to + j * to_stride + first;
      if (count == tile) {  // a count that the compiler knows
        for (Index i = 0; i < tile; ++i)
          row[i] = static_cast<Scalar>(factor * static_cast<double>(column[i * from_stride]));
      } else {
        for (Index i = 0; i < count; ++i)
          row[i] = static_cast<Scalar>(factor * static_cast<double>(column[i * from_stride]));
      }
    }
  }
}

template <class Scalar>
const StreamLoops<Scalar>& loops_here() {
  static constexpr StreamLoops<Scalar> loops{centre<Scalar>, add<Scalar>, add_squares<Scalar>, transpose<Scalar>};
  return loops;
}
const StreamLoops<float>& float_loops() {
  return loops_here<float>();
}
const StreamLoops<double>& double_loops() {
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
const StreamLoops<float>& stream_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(float_loops)();
}
template <>
const StreamLoops<double>& stream_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(double_loops)();
}

}  // namespace itspace::kernels
#endif
