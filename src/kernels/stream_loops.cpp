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
template <class Scalar>
HWY_INLINE void ask_for(const Scalar* row, Index count) {
  constexpr Index line = 64 / static_cast<Index>(sizeof(Scalar));
  for (Index j = 0; j < count; j += line) __builtin_prefetch(row + j, 0, 2);
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
void copy_row(const Scalar* HWY_RESTRICT row, const Scalar* HWY_RESTRICT origin, double share, Index count,
              Scalar* HWY_RESTRICT to, double* HWY_RESTRICT sums) {
  const Vector shares = hn::Set(Tag(), share);
  std::copy_n(row, count, to);
  for_vectors(
      count,
      [&](Index j) HWY_ATTR {
        store(hn::Add(load(sums + j), hn::Mul(shares, hn::Sub(load(row + j), load(origin + j)))), sums + j);
      },
      [&](Index j) HWY_ATTR { sums[j] += share * (static_cast<double>(row[j]) - static_cast<double>(origin[j])); });
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

// visit(first, count) for runs of columns whose sums stay in the first-level cache while row after row goes by.
template <class Visit>
HWY_INLINE void for_tiles(Index cols, const Visit& visit) {
  constexpr Index tile = 1024;
  for (Index first = 0; first < cols; first += tile) visit(first, std::min(tile, cols - first));
}

template <class Scalar>
void copy(const CentredBatch<Scalar>& batch, Index begin, Index end, double* sums) {
  for_tiles(batch.cols, [&](Index first, Index count) HWY_ATTR {
    for (Index i = begin; i < end; ++i) {
      if (i + 1 < end) ask_for(batch.rows[i + 1] + first, count);
      copy_row(batch.rows[i] + first, batch.rows[0] + first, batch.shares[i], count,
               batch.centred + i * batch.cols + first, sums + first);
    }
  });
}

template <class Scalar>
void centre(const CentredBatch<Scalar>& batch, Index begin, Index end, const double* mean, double* squares) {
  for_tiles(batch.cols, [&](Index first, Index count) HWY_ATTR {
    for (Index i = begin; i < end; ++i)
      centre_row(batch.centred + i * batch.cols + first, mean + first, batch.roots[i], count, squares + first);
  });
}

template <class Scalar>
void add_row(const Scalar* HWY_RESTRICT from, Scalar factor, Index count, Scalar* HWY_RESTRICT to) {
  for (Index j = 0; j < count; ++j) to[j] += factor * from[j];
}

template <class Scalar>
void add(const AddedRow<Scalar>* rows, Index count, Index begin, Index end, Scalar* sums, Index stride) {
  const Index ahead = rows_ahead<Scalar>(end - begin);
  for (Index i = 0; i < count; ++i) {
    if (i + ahead < count) ask_for(rows[i + ahead].row + begin, end - begin);
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
  static constexpr StreamLoops<Scalar> loops{copy<Scalar>, centre<Scalar>, add<Scalar>, add_squares<Scalar>,
                                             transpose<Scalar>};
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
