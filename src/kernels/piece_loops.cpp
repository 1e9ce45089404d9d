// SPDX-License-Identifier: Apache-2.0
#include "kernels/piece_loops.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/piece_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/double_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

constexpr Index together = 8;  // rows whose sum is taken before it is added to the others

// visit(first, count) for runs of columns whose sums stay in the first-level cache while row after row goes by.
template <class Visit>
HWY_INLINE void for_tiles(Index cols, const Visit& visit) {
  constexpr Index tile = 1024;
  for (Index first = 0; first < cols; first += tile) visit(first, std::min(tile, cols - first));
}

// sums += the rows less the pivot, in double.
template <class Data>
HWY_INLINE void add_in_double(const Data* HWY_RESTRICT rows, Index count, Index stride, const Data* HWY_RESTRICT pivot,
                              Index cols, double* HWY_RESTRICT sums) {
  Index j = 0;
  for (; j + lanes <= cols; j += lanes) {
    const Vector origin = load(pivot + j);
    Vector sum = hn::Zero(Tag());
    for (Index i = 0; i < count; ++i) sum = hn::Add(sum, hn::Sub(load(rows + i * stride + j), origin));
    store(hn::Add(load(sums + j), sum), sums + j);
  }
  for (; j < cols; ++j) {
    double sum = 0;
    for (Index i = 0; i < count; ++i) sum += static_cast<double>(rows[i * stride + j]) - static_cast<double>(pivot[j]);
    sums[j] += sum;
  }
}

// The same for eight rows of float, in float until their sum is known.
HWY_INLINE void add_in_float(const float* HWY_RESTRICT rows, Index stride, const float* HWY_RESTRICT pivot, Index cols,
                             double* HWY_RESTRICT sums) {
  const hn::Rebind<float, Tag> tag;  // as many as a vector has doubles
  Index j = 0;
  for (; j + lanes <= cols; j += lanes) {
    const auto origin = hn::LoadU(tag, pivot + j);
    auto sum = hn::Sub(hn::LoadU(tag, rows + j), origin);
#pragma GCC unroll 8
    for (Index i = 1; i < together; ++i) sum = hn::Add(sum, hn::Sub(hn::LoadU(tag, rows + i * stride + j), origin));
    store(hn::Add(load(sums + j), hn::PromoteTo(Tag(), sum)), sums + j);
  }
  for (; j < cols; ++j) {
    float sum = rows[j] - pivot[j];
    for (Index i = 1; i < together; ++i) sum += rows[i * stride + j] - pivot[j];
    sums[j] += static_cast<double>(sum);
  }
}

template <class Data>
void add(const Data* rows, Index count, Index cols, const Data* pivots, bool in_double, double* sums) {
  for_tiles(cols, [&](Index first, Index width) HWY_ATTR {
    const Data* pivot = pivots + first;
    for (Index i = 0; i < count; i += together) {
      const Data* from = rows + i * cols + first;
      const Index there = std::min(together, count - i);
      if constexpr (std::is_same_v<Data, float>)
        if (!in_double && there == together) {
          add_in_float(from, cols, pivot, width, sums + first);
          continue;
        }
      add_in_double(from, there, cols, pivot, width, sums + first);
    }
  });
}

template <class Data>
void add_squares(const Data* rows, Index count, Index cols, const Data* pivot, const double* offset, double* squares) {
  for_tiles(cols, [&](Index first, Index width) HWY_ATTR {
    for (Index i = 0; i < count; ++i) {
      const Data* HWY_RESTRICT row = rows + i * cols + first;
      double* HWY_RESTRICT to = squares + first;
      Index j = 0;
      for (; j + lanes <= width; j += lanes) {
        const Vector apart = hn::Sub(hn::Sub(load(row + j), load(pivot + first + j)), load(offset + first + j));
        store(hn::Add(load(to + j), hn::Mul(apart, apart)), to + j);
      }
      for (; j < width; ++j) {
        const double apart = static_cast<double>(row[j]) - static_cast<double>(pivot[first + j]) - offset[first + j];
        to[j] += apart * apart;
      }
    }
  });
}

template <class Data>
void centre(Data* rows, Index count, Index cols, const Data* pivot, const Data* offset) {
  const hn::ScalableTag<Data> tag;
  constexpr auto width = static_cast<Index>(HWY_LANES(Data));
  for (Index i = 0; i < count; ++i) {
    Data* HWY_RESTRICT row = rows + i * cols;
    Index j = 0;
    for (; j + width <= cols; j += width)
      hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(tag, row + j), hn::LoadU(tag, pivot + j)), hn::LoadU(tag, offset + j)), tag,
                 row + j);
    for (; j < cols; ++j) row[j] = (row[j] - pivot[j]) - offset[j];
  }
}

template <class Data>
void move(Data* HWY_RESTRICT from, double factor, Index count, double* HWY_RESTRICT to) {
  const Vector factors = hn::Set(Tag(), factor);
  Index j = 0;
  for (; j + lanes <= count; j += lanes) store(hn::Add(load(to + j), hn::Mul(factors, load(from + j))), to + j);
  for (; j < count; ++j) to[j] += factor * static_cast<double>(from[j]);
  std::fill_n(from, count, Data(0));
}

template <class Data>
const PieceLoops<Data>& loops_here() {
  static constexpr PieceLoops<Data> loops{add<Data>, add_squares<Data>, centre<Data>, move<Data>};
  return loops;
}

}  // namespace

const PieceLoops<float>& float_piece_loops() {
  return loops_here<float>();
}
const PieceLoops<double>& double_piece_loops() {
  return loops_here<double>();
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(float_piece_loops);
HWY_EXPORT(double_piece_loops);

template <>
const PieceLoops<float>& piece_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(float_piece_loops)();
}
template <>
const PieceLoops<double>& piece_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(double_piece_loops)();
}

}  // namespace itspace::kernels
#endif
