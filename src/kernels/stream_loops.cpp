// SPDX-License-Identifier: Apache-2.0
#include "kernels/stream_loops.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stream_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/double_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

// Asks for values of a row that is to come: what a thread has of a row is a few lines, and those of the next lie pages
// further on, where the processor does not look for them by itself.
template <bool Written, class Scalar>
HWY_INLINE void ask_for(const Scalar* row, Index count) {
  constexpr Index line = 64 / static_cast<Index>(sizeof(Scalar));
  for (Index j = 0; j < count; j += line) __builtin_prefetch(row + j, Written ? 1 : 0, 2);
}

// How many rows ahead, for rows of so many values: about as many lines as are under way at once.
template <class Scalar>
constexpr Index rows_ahead(Index values) {
  constexpr Index bytes_ahead = 4096;
  return std::clamp(bytes_ahead / (values * static_cast<Index>(sizeof(Scalar))), Index(1), Index(16));
}

// visit(j) for whole vectors of `count` values; rest(j) for those after them, one at a time.
template <class Visit, class Rest>
HWY_INLINE void for_vectors(Index count, const Visit& visit, const Rest& rest) {
  Index j = 0;
  for (; j + lanes <= count; j += lanes) visit(j);
  for (; j < count; ++j) rest(j);
}

// The row as it is, and what it adds to the sums.
template <class Scalar>
void copy_row(const Scalar* HWY_RESTRICT row, const double* HWY_RESTRICT origin, double share, Index count,
              Scalar* HWY_RESTRICT to, double* HWY_RESTRICT sums) {
  const Vector shares = hn::Set(Tag(), share);
  std::copy_n(row, count, to);
  for_vectors(
      count,
      [&](Index j) HWY_ATTR {
        store(hn::Add(load(sums + j), hn::Mul(shares, hn::Sub(load(row + j), load(origin + j)))), sums + j);
      },
      [&](Index j) HWY_ATTR { sums[j] += share * (static_cast<double>(row[j]) - origin[j]); });
}

template <class Scalar>
void centre_row(Scalar* HWY_RESTRICT row, const double* HWY_RESTRICT mean, double root, Index count,
                double* HWY_RESTRICT squares) {
  const Vector roots = hn::Set(Tag(), root);
  for_vectors(
      count,
      [&](Index j) HWY_ATTR {
        store(hn::Mul(hn::Sub(load(row + j), load(mean + j)), roots), row + j);
        const Vector stored = load(row + j);
        store(hn::Add(load(squares + j), hn::Mul(stored, stored)), squares + j);
      },
      [&](Index j) HWY_ATTR {
        row[j] = static_cast<Scalar>((static_cast<double>(row[j]) - mean[j]) * root);
        squares[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
      });
}

// Rows are read once, and moved where they were copied to. Sums are the thread's own until they are done: lines that
// two threads add to would go back and forth with every row.
template <class Scalar>
void centre(const CentreRows<Scalar>& request, Index begin, Index end) {
  constexpr Index width = 512;  // of the rows that are in cache when they are read again
  alignas(64) double origin[width], mean[width], squares[width];
  for (Index first = begin; first < end; first += width) {
    const Index count = std::min(width, end - first), ahead = rows_ahead<Scalar>(count);
    std::fill_n(mean, count, 0.0);
    std::fill_n(squares, count, 0.0);
    // About the first row: the mean of equal values is that value to the last bit.
    std::copy_n(request.rows[0] + first, count, origin);
    for (Index i = 0; i < request.count; ++i) {
      if (const Index next = i + ahead; next < request.count) {
        ask_for<false>(request.rows[next] + first, count);
        ask_for<true>(request.centred + next * request.stride + first, count);
      }
      copy_row(request.rows[i] + first, origin, request.shares[i], count, request.centred + i * request.stride + first,
               mean);
    }
    for (Index j = 0; j < count; ++j) mean[j] = origin[j] + mean[j] / request.total;
    for (Index i = 0; i < request.count; ++i) {
      if (const Index next = i + ahead; next < request.count)
        ask_for<true>(request.centred + next * request.stride + first, count);
      centre_row(request.centred + i * request.stride + first, mean, request.roots[i], count, squares);
    }
    std::copy_n(mean, count, request.mean + first);
    std::copy_n(squares, count, request.squares + first);
  }
}

template <class Scalar>
void add_row(const Scalar* HWY_RESTRICT from, Scalar factor, Index count, Scalar* HWY_RESTRICT to) {
  for (Index j = 0; j < count; ++j) to[j] += factor * from[j];
}

template <class Scalar>
void add(const AddedRow<Scalar>* rows, Index count, Index begin, Index end, Scalar* sums, Index stride) {
  const Index ahead = rows_ahead<Scalar>(end - begin);
  for (Index i = 0; i < count; ++i) {
    if (i + ahead < count) ask_for<false>(rows[i + ahead].row + begin, end - begin);
    add_row(rows[i].row + begin, rows[i].factor, end - begin, sums + rows[i].to * stride);
  }
}

template <class Scalar>
void add_squares(const Scalar* HWY_RESTRICT from, Index count, double* HWY_RESTRICT to) {
  for_vectors(
      count,
      [&](Index j) HWY_ATTR {
        const Vector value = load(from + j);
        store(hn::Add(load(to + j), hn::Mul(value, value)), to + j);
      },
      [&](Index j) HWY_ATTR { to[j] += static_cast<double>(from[j]) * static_cast<double>(from[j]); });
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
