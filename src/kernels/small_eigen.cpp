// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_eigen.hpp"

#include "kernels/instruction_sets.hpp"
#include "kernels/scratch.hpp"
#include "kernels/small_dense.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/small_eigen.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

constexpr Index lanes = static_cast<Index>(HWY_LANES(double));
constexpr double eps = std::numeric_limits<double>::epsilon();

constexpr Index padded(Index n) {
  return (n + lanes - 1) / lanes * lanes;
}
HWY_INLINE Vector load(const double* from) {
  return hn::Load(Tag(), from);
}
HWY_INLINE void store(Vector value, double* to) {
  hn::Store(value, Tag(), to);
}
HWY_INLINE Vector number(double value) {
  return hn::Set(Tag(), value);
}

// Over [begin, end), both multiples of `lanes`.
HWY_INLINE double dot(const double* x, const double* y, Index begin, Index end) {
  Vector sum = hn::Zero(Tag());
  for (Index i = begin; i < end; i += lanes) sum = hn::MulAdd(load(x + i), load(y + i), sum);
  return hn::GetLane(hn::SumOfLanes(Tag(), sum));
}

// Reflections I - tau v v', of which the vector k is zero up to row k.
struct Reflections {
  double *vectors, *tau;
  Index stride;
  double* vector(Index k) const { return vectors + k * stride; }
};

// The update of one reflection, A - v w' - w v', is made when the next one reads A: one sweep for both. Cols columns
// from j on, and sum += A x over them.
template <int Cols>
HWY_INLINE void update_and_multiply(double* a, Index stride, Index begin, Index j, const double* v, const double* w,
                                    const double* x, double* sum) {
  Vector vj[Cols], wj[Cols], xj[Cols];
#pragma GCC unroll 4
  for (int c = 0; c < Cols; ++c) vj[c] = number(v[j + c]), wj[c] = number(w[j + c]), xj[c] = number(x[j + c]);
  for (Index i = begin; i < stride; i += lanes) {
    const Vector vi = load(v + i), wi = load(w + i);
    Vector total = load(sum + i);
#pragma GCC unroll 4
    for (int c = 0; c < Cols; ++c) {
      double* at = a + (j + c) * stride + i;
      const Vector value = hn::NegMulAdd(wi, vj[c], hn::NegMulAdd(vi, wj[c], load(at)));
      store(value, at);
      total = hn::MulAdd(value, xj[c], total);
    }
    store(total, sum + i);
  }
}

// to = values, with zeros up to row k, from `begin` on; returns its square.
HWY_INLINE double copy_below(const double* values, Index k, Index begin, Index end, double* to) {
  const Vector first =
      hn::IfThenZeroElse(hn::FirstN(Tag(), static_cast<std::size_t>(k + 1 - begin)), load(values + begin));
  store(first, to + begin);
  Vector square = hn::Mul(first, first), other = hn::Zero(Tag());
  Index i = begin + lanes;
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    const Vector one = load(values + i), two = load(values + i + lanes);
    store(one, to + i);
    store(two, to + i + lanes);
    square = hn::MulAdd(one, one, square);
    other = hn::MulAdd(two, two, other);
  }
  if (i < end) {
    const Vector last = load(values + i);
    store(last, to + i);
    other = hn::MulAdd(last, last, other);
  }
  return hn::GetLane(hn::SumOfLanes(Tag(), hn::Add(square, other)));
}
HWY_INLINE void clear(double* values, Index begin, Index end) {
  for (Index i = begin; i < end; i += lanes) store(hn::Zero(Tag()), values + i);
}

// a (n x n, both triangles, columns `reflections.stride` apart and zero beyond n) = Q T Q', T with the diagonal d and e
// beside it. `work` has four columns.
void make_tridiagonal(Index n, double* a, double* work, double* d, double* e, const Reflections& reflections) {
  const Index stride = reflections.stride;
  double *w = work, *sum = work + stride, *nothing = work + 2 * stride;
  const double* v = nothing;  // the reflection before
  clear(work, 0, 3 * stride);
  for (Index k = 0; k < n; ++k) {
    update_and_multiply<1>(a, stride, k / lanes * lanes, k, v, w, nothing, sum);
    const double* column = a + k * stride;
    d[k] = column[k];
    if (k + 1 == n) break;
    double* x = reflections.vector(k);
    const Index begin = (k + 1) / lanes * lanes;
    const double square = copy_below(column, k, begin, stride, x);
    const double first = x[k + 1], rest = square - first * first;
    clear(sum, begin, stride);
    // What is left of the column is zero, or nearly.
    constexpr double least = 1e-280;
    const bool is_nothing = k + 2 == n || !(rest > eps * eps * 1e-3 * square) || !(square > least);
    const double length = std::sqrt(square);
    e[k] = is_nothing ? first : std::copysign(length, -first);
    const double tau = is_nothing ? 0 : 1 / (length * (length + std::abs(first)));  // 2/(x'x)
    reflections.tau[k] = tau;
    if (is_nothing && k + 2 < n) clear(x, begin, stride);  // it is left out
    if (!is_nothing) x[k + 1] = first - e[k];
    const double* by = is_nothing ? nothing : x;
    Index j = k + 1;
    for (; j + 4 <= n; j += 4) update_and_multiply<4>(a, stride, begin, j, v, w, by, sum);
    for (; j < n; ++j) update_and_multiply<1>(a, stride, begin, j, v, w, by, sum);
    v = by;
    // w = tau sum - half x, without the rows up to k, where sum is of no use.
    const Vector scale = number(tau), half = number(0.5 * tau * tau * dot(sum, by, begin, stride));
    for (Index i = begin; i < stride; i += lanes)
      store(hn::NegMulAdd(half, load(by + i), hn::Mul(scale, load(sum + i))), w + i);
    for (Index i = begin; i <= k; ++i) w[i] = 0;
  }
}

// T - at for each lane of Vectors vectors: how many eigenvalues are below `at`, and the last of the leading minors p,
// to interpolate between. The signs of the minors change so often, p_i = (d_i - at) p_{i-1} - e_{i-1}^2 p_{i-2}. They
// are brought back to size now and then; `units` says how often, p being minor times 1e100^units.
template <int Vectors>
struct Minors {
  alignas(64) double at[Vectors * lanes];
  alignas(64) double below[Vectors * lanes];
  alignas(64) double minor[Vectors * lanes];
  alignas(64) double units[Vectors * lanes];
};

template <int Vectors>
HWY_INLINE void find_minors(Index n, const double* d, const double* e_squared, Minors<Vectors>& out) {
  constexpr Index together = 8;  // eight of them grow or shrink by less than 1e150
  const hn::RebindToUnsigned<Tag> bits;
  const Vector large = number(1e100), small = number(1e-100), one = number(1);
  Vector before[Vectors], p[Vectors], at[Vectors], units[Vectors];
  hn::VFromD<decltype(bits)> changes[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    at[v] = load(out.at + v * lanes);
    before[v] = units[v] = hn::Zero(Tag());
    p[v] = one;
    changes[v] = hn::Zero(bits);
  }
  for (Index first = 0; first < n; first += together) {
    for (Index i = first; i < std::min(n, first + together); ++i) {
      const Vector di = number(d[i]), ei = number(i > 0 ? e_squared[i - 1] : 0.0);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const Vector next = hn::MulSub(hn::Sub(di, at[v]), p[v], hn::Mul(ei, before[v]));
        changes[v] = hn::Add(changes[v], hn::ShiftRight<63>(hn::BitCast(bits, hn::Xor(next, p[v]))));
        before[v] = p[v];
        p[v] = next;
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vector size = hn::Max(hn::Abs(p[v]), hn::Abs(before[v]));
      const auto too_large = hn::Gt(size, large), too_small = hn::Lt(size, small);
      const Vector scale = hn::IfThenElse(too_large, small, hn::IfThenElse(too_small, large, one));
      units[v] = hn::Add(units[v], hn::Sub(hn::IfThenElseZero(too_small, one), hn::IfThenElseZero(too_large, one)));
      p[v] = hn::Mul(p[v], scale);
      before[v] = hn::Mul(before[v], scale);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    store(hn::ConvertTo(Tag(), hn::BitCast(hn::RebindToSigned<Tag>(), changes[v])), out.below + v * lanes);
    store(p[v], out.minor + v * lanes);
    store(units[v], out.units + v * lanes);
  }
}

// An interval for each lane: `wanted` eigenvalues are below the one that it holds. What is known at its ends: 1 + how
// many are below, and the minor; 0 where it was not found.
template <int Vectors>
struct Intervals {
  alignas(64) double low[Vectors * lanes], high[Vectors * lanes];
  alignas(64) double low_below[Vectors * lanes], high_below[Vectors * lanes];
  alignas(64) double low_minor[Vectors * lanes], high_minor[Vectors * lanes];
  alignas(64) double low_units[Vectors * lanes], high_units[Vectors * lanes];
  alignas(64) double wanted[Vectors * lanes];
};

// Lanes that share an interval cut it together, until each has its own. They are in order, and so are the cuts.
template <int Vectors>
HWY_INLINE void separate(Index n, const double* d, const double* e_squared, Intervals<Vectors>& own) {
  constexpr Index all = Vectors * lanes;
  constexpr int most_rounds = 6;
  Minors<Vectors> cuts;
  for (int round = 0; round < most_rounds; ++round) {
    bool shared = false;
    for (Index i = 0; i < all;) {
      Index end = i + 1;
      while (end < all && own.low[end] == own.low[i]) ++end;
      const double apart = (own.high[i] - own.low[i]) / static_cast<double>(end - i + 1);
      shared |= end > i + 1;
      for (const Index begin = i; i < end; ++i)
        cuts.at[i] = own.high[begin] - static_cast<double>(i - begin + 1) * apart;
    }
    if (!shared) break;
    find_minors<Vectors>(n, d, e_squared, cuts);
    // From above: the first cut with no more eigenvalues below than a lane wants is its lower end.
    for (Index i = 0, j = 0; i < all; ++i) {
      while (j < all && cuts.below[j] > own.wanted[i]) ++j;
      if (j < all && cuts.at[j] > own.low[i]) {
        own.low[i] = cuts.at[j];
        own.low_below[i] = 1 + cuts.below[j];
        own.low_minor[i] = cuts.minor[j];
        own.low_units[i] = cuts.units[j];
      }
      if (j > 0 && cuts.at[j - 1] < own.high[i]) {
        own.high[i] = cuts.at[j - 1];
        own.high_below[i] = 1 + cuts.below[j - 1];
        own.high_minor[i] = cuts.minor[j - 1];
        own.high_units[i] = cuts.units[j - 1];
      }
    }
  }
}

// Eigenvalues first, first + 1, ... of T in descending order, a lane for each, to the last bits of [low, high]: where
// an interval holds one alone, and the minor is as good as monotone over the last three cuts, the next one is where the
// parabola through them is zero, elsewhere the middle (Chandrupatla 1997).
template <int Vectors>
HWY_INLINE void find_values(Index n, const double* d, const double* e_squared, double lowest, double highest,
                            Index first, double* values) {
  constexpr Index all = Vectors * lanes;
  constexpr int most_cuts = 100;
  Intervals<Vectors> own;
  for (Index i = 0; i < all; ++i) {
    own.low[i] = lowest;
    own.high[i] = highest;
    own.low_below[i] = own.high_below[i] = own.low_units[i] = own.high_units[i] = 0;
    own.low_minor[i] = own.high_minor[i] = 0;
    own.wanted[i] = static_cast<double>(std::max<Index>(0, n - 1 - first - i));
  }
  separate<Vectors>(n, d, e_squared, own);
  const double fine = eps * (highest - lowest);
  const Vector one = number(1), unit = number(1e100), inverse_unit = number(1e-100);
  // The last cut, that on the other side of the eigenvalue, and the one that was given up.
  Vector x[Vectors], other[Vectors], third[Vectors], p[Vectors], other_p[Vectors], third_p[Vectors], units[Vectors],
      other_units[Vectors], third_units[Vectors], below[Vectors], other_below[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const Index at = v * lanes;
    x[v] = load(own.low + at), p[v] = load(own.low_minor + at), units[v] = load(own.low_units + at);
    other[v] = load(own.high + at), other_p[v] = load(own.high_minor + at), other_units[v] = load(own.high_units + at);
    below[v] = load(own.low_below + at), other_below[v] = load(own.high_below + at);
    third[v] = other[v], third_p[v] = other_p[v], third_units[v] = other_units[v];
  }
  Minors<Vectors> cuts;
  for (int cut = 0; cut < most_cuts; ++cut) {
    bool done = true;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vector width = hn::Sub(other[v], x[v]), least = hn::Div(number(0.5 * fine), hn::Abs(width));
      done = done && hn::AllTrue(Tag(), hn::Le(hn::Abs(width), number(fine)));
      // All minors in the unit of the last, where they differ by one at most.
      const auto in_unit = [&](Vector minor, Vector more) HWY_ATTR {
        return hn::Mul(minor, hn::IfThenElse(hn::Gt(more, hn::Zero(Tag())), inverse_unit,
                                             hn::IfThenElse(hn::Lt(more, hn::Zero(Tag())), unit, one)));
      };
      const Vector more = hn::Sub(other_units[v], units[v]), third_more = hn::Sub(third_units[v], units[v]);
      const Vector f = p[v], other_f = in_unit(other_p[v], more), third_f = in_unit(third_p[v], third_more);
      const Vector to_other = hn::Sub(f, other_f), to_third = hn::Sub(third_f, f), across = hn::Sub(third_f, other_f);
      const Vector xi = hn::Div(hn::Sub(x[v], other[v]), hn::Sub(third[v], other[v])), phi = hn::Div(to_other, across);
      const Vector psi = hn::Sub(one, phi);
      const auto monotone = hn::And(hn::Lt(hn::Mul(phi, phi), xi), hn::Lt(hn::Mul(psi, psi), hn::Sub(one, xi)));
      const auto alone = hn::And(hn::Eq(hn::Abs(hn::Sub(other_below[v], below[v])), one),
                                 hn::Gt(hn::Min(other_below[v], below[v]), hn::Zero(Tag())));
      const auto close = hn::Le(hn::Max(hn::Abs(more), hn::Abs(third_more)), one);
      const Vector by_other = hn::Mul(hn::Div(f, to_other), hn::Div(third_f, across));
      const Vector by_third =
          hn::Mul(hn::Div(hn::Sub(third[v], x[v]), width), hn::Mul(hn::Div(f, to_third), hn::Div(other_f, across)));
      const Vector share = hn::Max(least, hn::Min(hn::Sub(one, least), hn::Add(by_other, by_third)));
      const Vector chosen = hn::MulAdd(share, width, x[v]), middle = hn::Mul(number(0.5), hn::Add(x[v], other[v]));
      const auto inside = hn::And(hn::Gt(chosen, hn::Min(x[v], other[v])), hn::Lt(chosen, hn::Max(x[v], other[v])));
      store(hn::IfThenElse(hn::And(hn::And(monotone, alone), hn::And(close, inside)), chosen, middle),
            cuts.at + v * lanes);
    }
    if (done) break;
    find_minors<Vectors>(n, d, e_squared, cuts);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Index at = v * lanes;
      const Vector found = load(cuts.below + at);
      // The cut replaces the last one where it is on the same side.
      const auto is_low = hn::Le(found, load(own.wanted + at)), was_low = hn::Lt(x[v], other[v]);
      const auto same = hn::Not(hn::Xor(is_low, was_low));
      const auto move = [&](Vector& last, Vector& beyond, Vector& left, Vector now) HWY_ATTR {
        left = hn::IfThenElse(same, last, beyond);
        beyond = hn::IfThenElse(same, beyond, last);
        last = now;
      };
      Vector left_below = other_below[v];
      move(x[v], other[v], third[v], load(cuts.at + at));
      move(p[v], other_p[v], third_p[v], load(cuts.minor + at));
      move(units[v], other_units[v], third_units[v], load(cuts.units + at));
      move(below[v], other_below[v], left_below, hn::Add(one, found));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) store(hn::Mul(number(0.5), hn::Add(x[v], other[v])), values + first + v * lanes);
}

// The vectors of T for the values of the lanes, one row of `z` after the other (`stride` apart): T - value is factored
// from above, with pivots p, and from below, with pivots q; where p_k + q_k - (d_k - value) is least, both leave a
// vector with z_k = 1 and that residual. `from_above` and `from_below` have n x Vectors x lanes values.
template <int Vectors>
HWY_INLINE void make_vectors(Index n, const double* d, const double* e, const double* values, double* from_above,
                             double* from_below, double* z, Index stride) {
  constexpr Index wide = Vectors * lanes;
  // Smaller pivots are rounding of 1.
  const Vector least = number(1e-20), minus_one = number(-1);
  const auto safe = [&](Vector pivot) HWY_ATTR {
    return hn::IfThenElse(hn::Lt(hn::Abs(pivot), least), hn::CopySign(least, pivot), pivot);
  };
  Vector value[Vectors], pivot[Vectors], best[Vectors], at[Vectors], entry[Vectors], square[Vectors];
  // In the rows of z meanwhile: p_k - (d_k - value).
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    value[v] = load(values + v * lanes);
    pivot[v] = safe(hn::Sub(number(d[0]), value[v]));
    store(hn::Zero(Tag()), z + v * lanes);
  }
  for (Index i = 0; i + 1 < n; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vector ratio = hn::Div(number(e[i]), pivot[v]);
      store(ratio, from_above + i * wide + v * lanes);
      const Vector excess = hn::Mul(minus_one, hn::Mul(number(e[i]), ratio));
      store(excess, z + (i + 1) * stride + v * lanes);
      pivot[v] = safe(hn::Add(hn::Sub(number(d[i + 1]), value[v]), excess));
    }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    best[v] = hn::Abs(pivot[v]);
    at[v] = number(static_cast<double>(n - 1));
    pivot[v] = safe(hn::Sub(number(d[n - 1]), value[v]));
  }
  for (Index i = n - 2; i >= 0; --i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vector ratio = hn::Div(number(e[i]), pivot[v]);
      store(ratio, from_below + i * wide + v * lanes);
      pivot[v] = safe(hn::NegMulAdd(number(e[i]), ratio, hn::Sub(number(d[i]), value[v])));
      const Vector left = hn::Abs(hn::Add(pivot[v], load(z + i * stride + v * lanes)));
      const auto better = hn::Lt(left, best[v]);
      best[v] = hn::IfThenElse(better, left, best[v]);
      at[v] = hn::IfThenElse(better, number(static_cast<double>(i)), at[v]);
    }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) entry[v] = square[v] = hn::Zero(Tag());
  for (Index i = n - 1; i >= 0; --i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      if (i + 1 < n) entry[v] = hn::Mul(minus_one, hn::Mul(load(from_above + i * wide + v * lanes), entry[v]));
      entry[v] = hn::IfThenElse(hn::Eq(number(static_cast<double>(i)), at[v]), number(1), entry[v]);
      square[v] = hn::MulAdd(entry[v], entry[v], square[v]);
      store(entry[v], z + i * stride + v * lanes);
    }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) entry[v] = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      double* here = z + i * stride + v * lanes;
      const auto below = hn::Gt(number(static_cast<double>(i)), at[v]);
      if (i > 0) entry[v] = hn::Mul(minus_one, hn::Mul(load(from_below + (i - 1) * wide + v * lanes), entry[v]));
      entry[v] = hn::IfThenElse(below, entry[v], load(here));
      square[v] = hn::Add(square[v], hn::IfThenElseZero(below, hn::Mul(entry[v], entry[v])));
      store(entry[v], here);
    }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) square[v] = hn::Div(number(1), hn::Sqrt(square[v]));
  for (Index i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      double* here = z + i * stride + v * lanes;
      store(hn::Mul(square[v], load(here)), here);
    }
}

// The largest entry of Tz - z diag(values), over all rows. NaN counts as infinite.
HWY_INLINE double largest_residual(Index n, const double* d, const double* e, const double* values, const double* z,
                                   Index stride) {
  Vector largest = hn::Zero(Tag());
  auto strange = hn::Lt(largest, largest);
  for (Index c = 0; c < stride; c += lanes)
    for (Index i = 0; i < n; ++i) {
      const double* row = z + i * stride + c;
      Vector left = hn::Mul(hn::Sub(number(d[i]), load(values + c)), load(row));
      if (i > 0) left = hn::MulAdd(number(e[i - 1]), load(row - stride), left);
      if (i + 1 < n) left = hn::MulAdd(number(e[i]), load(row + stride), left);
      strange = hn::Or(strange, hn::IsNaN(left));
      largest = hn::Max(largest, hn::Abs(left));
    }
  if (!hn::AllFalse(Tag(), strange)) return std::numeric_limits<double>::infinity();
  return hn::GetLane(hn::MaxOfLanes(Tag(), largest));
}

// z <- (I - tau v v') z for Vectors vectors of columns of z, whose rows lie `stride` apart.
template <int Vectors>
HWY_INLINE void reflect(Index n, const Reflections& reflections, Index k, double* z, Index stride) {
  const double* v = reflections.vector(k);
  Vector sum[Vectors];
#pragma GCC unroll 4
  for (int c = 0; c < Vectors; ++c) sum[c] = hn::Zero(Tag());
  for (Index i = k + 1; i < n; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < Vectors; ++c) sum[c] = hn::MulAdd(number(v[i]), load(z + i * stride + c * lanes), sum[c]);
#pragma GCC unroll 4
  for (int c = 0; c < Vectors; ++c) sum[c] = hn::Mul(number(reflections.tau[k]), sum[c]);
  for (Index i = k + 1; i < n; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < Vectors; ++c) {
      double* at = z + i * stride + c * lanes;
      store(hn::NegMulAdd(number(v[i]), sum[c], load(at)), at);
    }
}

// The reflections `k` and then k - 1, in two sweeps instead of four: with s = v_k'z, what the second one sees is
// v_{k-1}'z - tau_k (v_{k-1}'v_k) s.
template <int Vectors>
HWY_INLINE void reflect_twice(Index n, const Reflections& reflections, Index k, double* z, Index stride) {
  const double *v = reflections.vector(k), *w = reflections.vector(k - 1);
  Vector of_v[Vectors], of_w[Vectors];
  const Vector across = number(dot(v, w, (k + 1) / lanes * lanes, reflections.stride));
#pragma GCC unroll 4
  for (int c = 0; c < Vectors; ++c) {
    of_v[c] = hn::Zero(Tag());
    of_w[c] = hn::Mul(number(w[k]), load(z + k * stride + c * lanes));  // where v is zero
  }
  for (Index i = k + 1; i < n; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < Vectors; ++c) {
      const Vector at = load(z + i * stride + c * lanes);
      of_v[c] = hn::MulAdd(number(v[i]), at, of_v[c]);
      of_w[c] = hn::MulAdd(number(w[i]), at, of_w[c]);
    }
#pragma GCC unroll 4
  for (int c = 0; c < Vectors; ++c) {
    of_v[c] = hn::Mul(number(reflections.tau[k]), of_v[c]);
    of_w[c] = hn::Mul(number(reflections.tau[k - 1]), hn::NegMulAdd(across, of_v[c], of_w[c]));
    double* at = z + k * stride + c * lanes;
    store(hn::NegMulAdd(number(w[k]), of_w[c], load(at)), at);
  }
  for (Index i = k + 1; i < n; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < Vectors; ++c) {
      double* at = z + i * stride + c * lanes;
      store(hn::NegMulAdd(number(w[i]), of_w[c], hn::NegMulAdd(number(v[i]), of_v[c], load(at))), at);
    }
}

// All reflections, from the last to the first. Those that were left out are zero, and so is their tau.
template <int Vectors>
HWY_INLINE void reflect_back(Index n, const Reflections& reflections, double* z, Index stride) {
  Index k = n - 3;
  for (; k >= 1; k -= 2) reflect_twice<Vectors>(n, reflections, k, z, stride);
  if (k == 0) reflect<Vectors>(n, reflections, k, z, stride);
}

// visit.template operator()<Vectors>(first) for the columns [0, count), four vectors at a time.
template <class Visit>
HWY_INLINE void for_vectors(Index count, const Visit& visit) {
  Index first = 0;
  for (; first + 3 * lanes < count; first += 4 * lanes) visit.template operator()<4>(first);
  if (first + 2 * lanes < count) {
    visit.template operator()<3>(first);
  } else if (first + lanes < count) {
    visit.template operator()<2>(first);
  } else if (first < count) {
    visit.template operator()<1>(first);
  }
}

// The rows of z (count x n by columns) become orthonormal, the first ones turned least. False where they are nearly
// dependent.
bool orthonormalise(Index n, Index count, double* z, Index stride, double* work) {
  double *gram = work, *inverse = work + count * count, *turned = inverse + count * count;
  small_product({.rows = count,
                 .cols = count,
                 .inner = n,
                 .a = z,
                 .a_stride = stride,
                 .b = z,
                 .b_stride = stride,
                 .b_transposed = true,
                 .c = gram,
                 .c_stride = count});
  if (!small_cholesky(count, gram, count)) return false;
  small_lower_inverse(count, gram, count, inverse, count);
  double square = 0;
  for (Index i = 0; i < count * count; ++i) square += inverse[i] * inverse[i];
  if (!(square <= 4 * static_cast<double>(count))) return false;
  small_product({.rows = count,
                 .cols = n,
                 .inner = count,
                 .a = inverse,
                 .a_stride = count,
                 .b = z,
                 .b_stride = stride,
                 .b_transposed = false,
                 .c = turned,
                 .c_stride = count});
  for (Index i = 0; i < n; ++i) std::copy_n(turned + i * count, count, z + i * stride);
  return true;
}

bool pairs(Index n, Index count, const double* a, double* values, double* vectors) {
  const Index stride = padded(n), width = padded(count);
  const Index reflected = 2 * n * stride + 4 * stride, small = 4 * stride + 4 * lanes + width + 4 * lanes;
  const Index made = 8 * n * lanes + n * width, turned = 2 * count * count + n * count;
  double* next = thread_scratch<double, Scratch::eigenpairs>(reflected + small + made + turned + 8 * lanes);
  const auto room = [&](Index size) {
    double* begin = next;
    next += padded(size);
    return begin;
  };
  double *copy = room(n * stride), *work = room(4 * stride), *d = room(stride), *e = room(stride);
  const Reflections reflections{room(n * stride), room(stride), stride};
  double *e_squared = room(stride), *found = room(width + 4 * lanes), *z = room(n * width);
  double *from_above = room(4 * n * lanes), *from_below = room(4 * n * lanes), *aside = room(turned);
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < j; ++i) copy[i + j * stride] = a[j + i * n];
    std::copy_n(a + j * n + j, n - j, copy + j * stride + j);
    std::fill_n(copy + j * stride + n, stride - n, 0.0);
  }
  make_tridiagonal(n, copy, work, d, e, reflections);
  double low = std::numeric_limits<double>::infinity(), high = -low, norm = 0;
  for (Index i = 0; i < n; ++i) {
    const double radius = (i > 0 ? std::abs(e[i - 1]) : 0.0) + (i + 1 < n ? std::abs(e[i]) : 0.0);
    low = std::min(low, d[i] - radius);
    high = std::max(high, d[i] + radius);
    norm = std::max(norm, std::abs(d[i]) + radius);
  }
  if (!(norm > 0 && norm <= std::numeric_limits<double>::max())) return false;
  // To a norm of one, so that minors grow threefold at most; a zero beside the diagonal would end them all.
  const double scale = 1 / norm, beyond = 4 * eps;
  for (Index i = 0; i < n; ++i) {
    d[i] *= scale;
    if (i + 1 == n) break;
    e[i] *= scale;
    e_squared[i] = std::max(e[i] * e[i], 1e-36);
  }
  const double lowest = low * scale - beyond, highest = high * scale + beyond;
  for_vectors(count, [&]<int Vectors>(Index first) HWY_ATTR {
    find_values<Vectors>(n, d, e_squared, lowest, highest, first, found);
    make_vectors<Vectors>(n, d, e, found + first, from_above, from_below, z + first, width);
  });
  if (!orthonormalise(n, count, z, width, aside)) return false;
  for (Index i = 0; i < n && count < width; ++i) std::fill(z + i * width + count, z + (i + 1) * width, 0.0);
  const double most = 4 * static_cast<double>(n) * eps;
  if (!(largest_residual(n, d, e, found, z, width) <= most)) return false;
  for_vectors(count,
              [&]<int Vectors>(Index first) HWY_ATTR { reflect_back<Vectors>(n, reflections, z + first, width); });
  for (Index k = 0; k < count; ++k) {
    values[k] = norm * found[k];
    for (Index i = 0; i < n; ++i) vectors[i + k * n] = z[i * width + k];
  }
  return true;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(pairs);

bool leading_pairs(Index n, Index count, const double* a, double* values, double* vectors) {
  return HWY_DYNAMIC_DISPATCH(pairs)(n, count, a, values, vectors);
}

}  // namespace itspace::kernels
#endif
