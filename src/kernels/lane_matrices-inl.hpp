// SPDX-License-Identifier: Apache-2.0
//
// Small matrices in lanes, in either arrangement of lanes.hpp, and what is done with them: products, Cholesky factors,
// inverses and norms. For one instruction set; included anew for each (Highway's manner: no include guard, but one for
// each target).
#if defined(ITSPACE_KERNELS_LANE_MATRICES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ITSPACE_KERNELS_LANE_MATRICES_INL
#undef ITSPACE_KERNELS_LANE_MATRICES_INL
#else
#define ITSPACE_KERNELS_LANE_MATRICES_INL
#endif

#include "kernels/lanes.hpp"
#include "kernels/scratch.hpp"

#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

constexpr Index lanes = static_cast<Index>(HWY_LANES(double));
constexpr std::size_t most_lanes = 8, most_columns = static_cast<std::size_t>(most_lane_columns);
static_assert(lanes <= static_cast<Index>(most_lanes));

HWY_INLINE Vector load(const double* from) {
  return hn::Load(Tag(), from);
}
HWY_INLINE void store(Vector value, double* to) {
  hn::Store(value, Tag(), to);
}
HWY_INLINE Vector number(double value) {
  return hn::Set(Tag(), value);
}

// What the two arrangements differ in. In both a row of a matrix is a number of chunks, each a vector: of one column of
// all problems, or of several columns of one problem. A single entry, or a number of a problem, is a vector too.
struct SideBySide {
  static constexpr Index problems = lanes;
  static HWY_INLINE Index chunks(Index n) { return n; }
  static HWY_INLINE Index chunk_of(Index j) { return j; }
  static HWY_INLINE Vector get(const double* row, Index j) { return load(row + j * lanes); }
  static HWY_INLINE void set(double* row, Index j, Vector value) { store(value, row + j * lanes); }
  static HWY_INLINE Vector numbers(const double* of_problems) { return load(of_problems); }
  static HWY_INLINE void put_numbers(Vector value, double* of_problems) { store(value, of_problems); }
};
struct Alone {
  static constexpr Index problems = 1;
  static HWY_INLINE Index chunks(Index n) { return (n + lanes - 1) / lanes; }
  static HWY_INLINE Index chunk_of(Index j) { return j / lanes; }
  static HWY_INLINE Vector get(const double* row, Index j) { return number(row[j]); }
  static HWY_INLINE void set(double* row, Index j, Vector value) { row[j] = hn::GetLane(value); }
  static HWY_INLINE Vector numbers(const double* of_problems) { return number(*of_problems); }
  static HWY_INLINE void put_numbers(Vector value, double* of_problems) { *of_problems = hn::GetLane(value); }
};

// An n x n matrix of each problem, or a row of n values; columns beyond n are zero.
template <class Places, class Double>
struct Rows {
  Double* data;
  Index n;

  HWY_INLINE Index chunks() const { return Places::chunks(n); }
  HWY_INLINE Double* row(Index i) const { return data + i * chunks() * lanes; }
  HWY_INLINE Vector chunk(Index i, Index c) const { return load(row(i) + c * lanes); }
  HWY_INLINE void set_chunk(Index i, Index c, Vector value) const { store(value, row(i) + c * lanes); }
  HWY_INLINE Vector get(Index i, Index j) const { return Places::get(row(i), j); }
  HWY_INLINE void set(Index i, Index j, Vector value) const { Places::set(row(i), j, value); }
  HWY_INLINE void copy(const Rows<Places, const double>& from) const {
    std::copy_n(from.data, n * chunks() * lanes, data);
  }
  operator Rows<Places, const double>() const { return {data, n}; }  // NOLINT(google-explicit-constructor)
};
template <class Places>
using In = Rows<Places, const double>;
template <class Places>
using Out = Rows<Places, double>;

enum class Op { plain, transposed };

// Count rows and Cols chunks of op(a) b, in registers; k from `first` on.
template <Op op, int Count, int Cols, class P>
HWY_INLINE void tile(In<P> a, In<P> b, Index i, Index c, Index first, Out<P> out) {
  Vector sums[Count][Cols];
#pragma GCC unroll 4
  for (int r = 0; r < Count; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Cols; ++v) sums[r][v] = hn::Zero(Tag());
  for (Index k = first; k < b.n; ++k) {
    Vector right[Cols];
#pragma GCC unroll 4
    for (int v = 0; v < Cols; ++v) right[v] = b.chunk(k, c + v);
#pragma GCC unroll 4
    for (int r = 0; r < Count; ++r) {
      const Vector left = op == Op::plain ? a.get(i + r, k) : a.get(k, i + r);
#pragma GCC unroll 4
      for (int v = 0; v < Cols; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Count; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Cols; ++v) out.set_chunk(i + r, c + v, sums[r][v]);
}

template <Op op, int Count, class P>
HWY_INLINE void rows_of_product(In<P> a, In<P> b, Index i, Index first, Out<P> out) {
  const Index chunks = b.chunks();
  Index c = 0;
  for (; c + 4 <= chunks; c += 4) tile<op, Count, 4>(a, b, i, c, first, out);
  for (; c + 2 <= chunks; c += 2) tile<op, Count, 2>(a, b, i, c, first, out);
  for (; c < chunks; ++c) tile<op, Count, 1>(a, b, i, c, first, out);
}

enum class Left { full, upper };  // upper: op(a) has zeros below its diagonal

// out = op(a) b; out is neither.
template <Op op, class P>
HWY_INLINE void product(In<P> a, In<P> b, Out<P> out, Left left = Left::full) {
  const auto first = [&](Index i) { return left == Left::upper ? i : 0; };
  Index i = 0;
  for (; i + 4 <= b.n; i += 4) rows_of_product<op, 4>(a, b, i, first(i), out);
  for (; i < b.n; ++i) rows_of_product<op, 1>(a, b, i, first(i), out);
}
template <class P>
HWY_INLINE void times(In<P> a, In<P> b, Out<P> out, Left left = Left::full) {
  product<Op::plain, P>(a, b, out, left);
}
template <class P>
HWY_INLINE void transposed_times(In<P> a, In<P> b, Out<P> out) {
  product<Op::transposed, P>(a, b, out);
}

template <class P>
HWY_INLINE void transpose(In<P> a, Out<P> out) {
  for (Index i = 0; i < a.n; ++i)
    for (Index j = 0; j < a.n; ++j) out.set(j, i, a.get(i, j));
}

// The upper triangular U with U'U = a, of which the upper triangle is read. NaN where there is none.
template <class P>
HWY_INLINE void cholesky(In<P> a, Out<P> u) {
  const Index n = a.n, chunks = a.chunks();
  for (Index i = 0; i < n; ++i) {
    const Index first = P::chunk_of(i);  // chunks before it are zero
    for (Index c = 0; c < chunks; ++c) {
      Vector sum = c < first ? hn::Zero(Tag()) : a.chunk(i, c);
      if (c >= first)
        for (Index k = 0; k < i; ++k) sum = hn::NegMulAdd(u.get(k, i), u.chunk(k, c), sum);
      u.set_chunk(i, c, sum);
    }
    const Vector diagonal = hn::Sqrt(u.get(i, i));
    for (Index c = first; c < chunks; ++c) u.set_chunk(i, c, hn::Div(u.chunk(i, c), diagonal));
    u.set(i, i, diagonal);
    for (Index j = 0; j < i; ++j) u.set(i, j, hn::Zero(Tag()));
  }
}

// Rows of the inverse from the last one up: row i = (e_i - sum_{k > i} u_ik row k)/u_ii.
template <class P>
HWY_INLINE void invert_upper(In<P> u, Out<P> inverse) {
  const Index n = u.n, chunks = u.chunks();
  for (Index i = n - 1; i >= 0; --i) {
    const Vector scale = hn::Div(number(1), u.get(i, i));
    for (Index c = 0; c < chunks; ++c) {
      Vector sum = hn::Zero(Tag());
      for (Index k = i + 1; k < n; ++k) sum = hn::NegMulAdd(u.get(i, k), inverse.chunk(k, c), sum);
      inverse.set_chunk(i, c, hn::Mul(sum, scale));
    }
    inverse.set(i, i, scale);
  }
}

// Sums over rows first, then over columns: the same order in both arrangements.
template <class P, class Of>
HWY_INLINE Vector sum_of_entries(Index n, const Of& of) {
  alignas(64) double sums[most_columns * most_lanes];
  const Out<P> row{sums, n};
  for (Index c = 0; c < row.chunks(); ++c) {
    Vector sum = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) sum = hn::Add(sum, of(i, c));
    row.set_chunk(0, c, sum);
  }
  Vector sum = hn::Zero(Tag());
  for (Index j = 0; j < n; ++j) sum = hn::Add(sum, row.get(0, j));
  return sum;
}
template <class P>
HWY_INLINE Vector squared_norm(In<P> a) {
  return sum_of_entries<P>(a.n, [&](Index i, Index c) HWY_ATTR { return hn::Mul(a.chunk(i, c), a.chunk(i, c)); });
}
template <class P>
HWY_INLINE Vector norm(In<P> a) {
  return hn::Sqrt(squared_norm<P>(a));
}

// The matrices that the work needs room for: zeros, so that columns beyond n are.
template <class P>
class Room {
 public:
  Room(Index n, Index count) : n_(n) {
    const Index values = count * n * P::chunks(n) * lanes;
    next_ = thread_scratch<double, Scratch::lane_matrices>(values);
    std::fill_n(next_, values, 0.0);
  }
  Out<P> matrix() {
    const Out<P> made{next_, n_};
    next_ += n_ * P::chunks(n_) * lanes;
    return made;
  }

 private:
  Index n_;
  double* next_;
};

// A row of n values of each problem.
template <class P>
class Row {
 public:
  explicit Row(Index n) : chunks_(P::chunks(n)) { std::fill_n(values_, chunks_ * lanes, 0.0); }
  HWY_INLINE Vector chunk(Index c) const { return load(values_ + c * lanes); }
  HWY_INLINE void set_chunk(Index c, Vector value) { store(value, values_ + c * lanes); }
  HWY_INLINE Vector get(Index j) const { return P::get(values_, j); }
  HWY_INLINE void set(Index j, Vector value) { P::set(values_, j, value); }

 private:
  alignas(64) double values_[most_columns * most_lanes];
  Index chunks_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#endif
