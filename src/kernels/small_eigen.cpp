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

// a (n x n, both triangles, columns `reflections.stride` apart and zero beyond n) = Q T Q', T with the diagonal d and e
// beside it. `work` has four columns.
void make_tridiagonal(Index n, double* a, double* work, double* d, double* e, const Reflections& reflections) {
  const Index stride = reflections.stride;
  double *v = work, *w = work + stride, *sum = work + 2 * stride, *nothing = work + 3 * stride;
  std::fill_n(work, 4 * stride, 0.0);
  for (Index k = 0; k < n; ++k) {
    update_and_multiply<1>(a, stride, k / lanes * lanes, k, v, w, nothing, sum);
    const double* column = a + k * stride;
    d[k] = column[k];
    if (k + 1 == n) break;
    double* x = reflections.vector(k);
    std::fill_n(x, k + 1, 0.0);
    std::copy(column + k + 1, column + stride, x + k + 1);
    const Index begin = (k + 1) / lanes * lanes;
    const double first = x[k + 1], square = dot(x, x, begin, stride), rest = square - first * first;
    // What is left of the column is zero, or nearly.
    constexpr double least = 1e-280;
    if (k + 2 == n || !(rest > eps * eps * 1e-3 * square) || !(square > least)) {
      e[k] = first;
      reflections.tau[k] = 0;
      if (k + 2 < n) {  // it is left out
        std::fill_n(x, stride, 0.0);
      }
      std::fill_n(sum, stride, 0.0);
      Index j = k + 1;
      for (; j + 4 <= n; j += 4) update_and_multiply<4>(a, stride, begin, j, v, w, nothing, sum);
      for (; j < n; ++j) update_and_multiply<1>(a, stride, begin, j, v, w, nothing, sum);
      std::fill_n(v, stride, 0.0);
      std::fill_n(w, stride, 0.0);
      continue;
    }
    const double length = std::sqrt(square);
    e[k] = first > 0 ? -length : length;
    x[k + 1] = first - e[k];
    const double tau = 1 / (length * (length + std::abs(first)));  // 2/(x'x)
    reflections.tau[k] = tau;
    std::fill_n(sum, stride, 0.0);
    Index j = k + 1;
    for (; j + 4 <= n; j += 4) update_and_multiply<4>(a, stride, begin, j, v, w, x, sum);
    for (; j < n; ++j) update_and_multiply<1>(a, stride, begin, j, v, w, x, sum);
    std::fill_n(sum, k + 1, 0.0);
    const double half = 0.5 * tau * tau * dot(sum, x, begin, stride);
    std::copy_n(x, stride, v);
    for (Index i = 0; i < begin; ++i) w[i] = 0;
    for (Index i = begin; i < stride; i += lanes)
      store(hn::NegMulAdd(number(half), load(x + i), hn::Mul(number(tau), load(sum + i))), w + i);
  }
}

// How many eigenvalues are below `at`, in each lane of Vectors vectors: the signs of the leading minors p change so
// often, p_i = (d_i - at) p_{i-1} - e_{i-1}^2 p_{i-2}. The minors are brought back to size now and then.
template <int Vectors>
HWY_INLINE void count_below(Index n, const double* d, const double* e_squared, const Vector* at, double* counts) {
  constexpr Index together = 4;
  const hn::RebindToUnsigned<Tag> bits;
  const Vector large = number(1e100), small = number(1e-100);
  Vector before[Vectors], p[Vectors];
  hn::VFromD<decltype(bits)> changes[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    before[v] = hn::Zero(Tag());
    p[v] = number(1);
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
      const Vector scale =
          hn::IfThenElse(hn::Gt(size, large), small, hn::IfThenElse(hn::Lt(size, small), large, number(1)));
      p[v] = hn::Mul(p[v], scale);
      before[v] = hn::Mul(before[v], scale);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v)
    store(hn::ConvertTo(Tag(), hn::BitCast(hn::RebindToSigned<Tag>(), changes[v])), counts + v * lanes);
}

// Eigenvalues first, first + 1, ... of T in descending order, a lane for each, to the last bits of [low, high].
template <int Vectors>
HWY_INLINE void bisect(Index n, const double* d, const double* e_squared, double low, double high, Index first,
                       double* values) {
  constexpr int halvings = 54;
  Vector lower[Vectors], upper[Vectors], wanted[Vectors];
  alignas(64) double numbers[Vectors * lanes];
  for (Index i = 0; i < Vectors * lanes; ++i) numbers[i] = static_cast<double>(std::max<Index>(0, n - 1 - first - i));
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    lower[v] = number(low);
    upper[v] = number(high);
    wanted[v] = load(numbers + v * lanes);
  }
  for (int halving = 0; halving < halvings; ++halving) {
    Vector middle[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) middle[v] = hn::Mul(number(0.5), hn::Add(lower[v], upper[v]));
    count_below<Vectors>(n, d, e_squared, middle, numbers);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const auto above = hn::Le(load(numbers + v * lanes), wanted[v]);
      lower[v] = hn::IfThenElse(above, middle[v], lower[v]);
      upper[v] = hn::IfThenElse(above, upper[v], middle[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v)
    store(hn::Mul(number(0.5), hn::Add(lower[v], upper[v])), values + first + v * lanes);
}

// The vectors of T for the values of the lanes, one row of `z` after the other (`stride` apart): T - value is factored
// from above, with pivots p, and from below, with pivots q; where p_k + q_k - (d_k - value) is least, both leave a
// vector with z_k = 1 and that residual. `from_above` and `from_below` have n x lanes values.
HWY_INLINE void make_vectors(Index n, const double* d, const double* e, Vector value, double* from_above,
                             double* from_below, double* z, Index stride) {
  // Smaller pivots are rounding of 1.
  const Vector least = number(1e-20), minus_one = number(-1);
  const auto safe = [&](Vector pivot) HWY_ATTR {
    return hn::IfThenElse(hn::Lt(hn::Abs(pivot), least), hn::CopySign(least, pivot), pivot);
  };
  // In the rows of z meanwhile: p_k - (d_k - value).
  Vector pivot = safe(hn::Sub(number(d[0]), value)), excess = hn::Zero(Tag());
  store(excess, z);
  for (Index i = 0; i + 1 < n; ++i) {
    const Vector ratio = hn::Div(number(e[i]), pivot);
    store(ratio, from_above + i * lanes);
    excess = hn::Mul(minus_one, hn::Mul(number(e[i]), ratio));
    store(excess, z + (i + 1) * stride);
    pivot = safe(hn::Add(hn::Sub(number(d[i + 1]), value), excess));
  }
  Vector best = hn::Abs(pivot), at = number(static_cast<double>(n - 1));
  pivot = safe(hn::Sub(number(d[n - 1]), value));
  for (Index i = n - 2; i >= 0; --i) {
    const Vector ratio = hn::Div(number(e[i]), pivot);
    store(ratio, from_below + i * lanes);
    pivot = safe(hn::NegMulAdd(number(e[i]), ratio, hn::Sub(number(d[i]), value)));
    const Vector left = hn::Abs(hn::Add(pivot, load(z + i * stride)));
    const auto better = hn::Lt(left, best);
    best = hn::IfThenElse(better, left, best);
    at = hn::IfThenElse(better, number(static_cast<double>(i)), at);
  }
  Vector entry = hn::Zero(Tag()), square = hn::Zero(Tag());
  for (Index i = n - 1; i >= 0; --i) {
    const Vector row = number(static_cast<double>(i));
    if (i + 1 < n) entry = hn::Mul(minus_one, hn::Mul(load(from_above + i * lanes), entry));
    entry = hn::IfThenElse(hn::Eq(row, at), number(1), entry);
    square = hn::MulAdd(entry, entry, square);
    store(entry, z + i * stride);
  }
  entry = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i) {
    const auto below = hn::Gt(number(static_cast<double>(i)), at);
    if (i > 0) entry = hn::Mul(minus_one, hn::Mul(load(from_below + (i - 1) * lanes), entry));
    entry = hn::IfThenElse(below, entry, load(z + i * stride));
    square = hn::Add(square, hn::IfThenElseZero(below, hn::Mul(entry, entry)));
    store(entry, z + i * stride);
  }
  const Vector scale = hn::Div(number(1), hn::Sqrt(square));
  for (Index i = 0; i < n; ++i) store(hn::Mul(scale, load(z + i * stride)), z + i * stride);
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

// z <- (I - tau v v') z for the reflections from the last to the first; rows of z lie `stride` apart.
HWY_INLINE void reflect_back(Index n, const Reflections& reflections, double* z, Index stride) {
  for (Index k = n - 3; k >= 0; --k) {
    if (reflections.tau[k] == 0) continue;
    const double* v = reflections.vector(k);
    for (Index c = 0; c < stride; c += lanes) {
      Vector sum = hn::Zero(Tag()), other = hn::Zero(Tag());
      Index i = k + 1;
      for (; i + 2 <= n; i += 2) {
        sum = hn::MulAdd(number(v[i]), load(z + i * stride + c), sum);
        other = hn::MulAdd(number(v[i + 1]), load(z + (i + 1) * stride + c), other);
      }
      if (i < n) sum = hn::MulAdd(number(v[i]), load(z + i * stride + c), sum);
      sum = hn::Mul(number(reflections.tau[k]), hn::Add(sum, other));
      for (i = k + 1; i < n; ++i) {
        double* at = z + i * stride + c;
        store(hn::NegMulAdd(number(v[i]), sum, load(at)), at);
      }
    }
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
  const Index made = 2 * n * lanes + n * width, turned = 2 * count * count + n * count;
  double* next = thread_scratch<double, Scratch::eigenpairs>(reflected + small + made + turned + 8 * lanes);
  const auto room = [&](Index size) {
    double* begin = next;
    next += padded(size);
    return begin;
  };
  double *copy = room(n * stride), *work = room(4 * stride), *d = room(stride), *e = room(stride);
  const Reflections reflections{room(n * stride), room(stride), stride};
  double *e_squared = room(stride), *found = room(width + 4 * lanes), *z = room(n * width);
  double *from_above = room(n * lanes), *from_below = room(n * lanes), *aside = room(turned);
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
  Index first = 0;
  const double lowest = low * scale - beyond, highest = high * scale + beyond;
  for (; first + 3 * lanes < count; first += 4 * lanes) bisect<4>(n, d, e_squared, lowest, highest, first, found);
  if (first + 2 * lanes < count) bisect<3>(n, d, e_squared, lowest, highest, first, found), first += 3 * lanes;
  if (first + lanes < count) bisect<2>(n, d, e_squared, lowest, highest, first, found), first += 2 * lanes;
  if (first < count) bisect<1>(n, d, e_squared, lowest, highest, first, found);
  for (Index c = 0; c < width; c += lanes) make_vectors(n, d, e, load(found + c), from_above, from_below, z + c, width);
  if (!orthonormalise(n, count, z, width, aside)) return false;
  for (Index i = 0; i < n && count < width; ++i) std::fill(z + i * width + count, z + (i + 1) * width, 0.0);
  const double most = 4 * static_cast<double>(n) * eps;
  if (!(largest_residual(n, d, e, found, z, width) <= most)) return false;
  reflect_back(n, reflections, z, width);
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
