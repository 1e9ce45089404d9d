// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_dense.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/small_dense.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

namespace hn = hwy::HWY_NAMESPACE;
template <class Scalar>
using TagOf = hn::ScalableTag<Scalar>;
template <class Scalar>
using VectorOf = hn::Vec<TagOf<Scalar>>;
template <class Scalar>
constexpr Index lanes_of = static_cast<Index>(HWY_LANES(Scalar));

// What is not a product is in double.
using Tag = TagOf<double>;
using Vector = VectorOf<double>;
// Vector registers: 32 of AVX-512 and NEON, else 16.
constexpr bool many_registers = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON;
constexpr int most_cols = many_registers ? 8 : 4;
// Columns of a factor that is made a panel at a time.
constexpr Index panel = 8;

// Some rows of a column, a vector's worth or what is left of one.
template <bool Whole, class Scalar = double>
struct Rows {
  Index count = lanes_of<Scalar>;

  HWY_INLINE VectorOf<Scalar> load(const Scalar* from) const {
    const TagOf<Scalar> tag;
    if constexpr (Whole) return hn::LoadU(tag, from);
    return hn::MaskedLoad(hn::FirstN(tag, static_cast<std::size_t>(count)), tag, from);
  }
  HWY_INLINE void store(VectorOf<Scalar> value, Scalar* to) const {
    const TagOf<Scalar> tag;
    if constexpr (Whole) {
      hn::StoreU(value, tag, to);
    } else {
      hn::BlendedStore(value, hn::FirstN(tag, static_cast<std::size_t>(count)), tag, to);
    }
  }
};

// visit(rows, i) for the rows [begin, end) of a column.
template <class Scalar = double, class Visit>
HWY_INLINE void for_each_vector(Index begin, Index end, const Visit& visit) {
  Index i = begin;
  for (; i + lanes_of<Scalar> <= end; i += lanes_of<Scalar>) visit(Rows<true, Scalar>{}, i);
  if (i < end) visit(Rows<false, Scalar>{end - i}, i);
}

// Value j of eight that lie `step` apart, b4 being the fifth: few enough addresses for the registers that there are.
template <class Scalar>
HWY_INLINE Scalar value_of(const Scalar* b, const Scalar* b4, Index step, int j) {
  return (j < 4 ? b : b4)[(j & 3) * step];
}

// Vectors x Cols of the product, its sums in registers.
template <int Vectors, int Cols, bool Transposed, bool Whole, class Scalar>
HWY_INLINE void tile(const SmallProduct<Scalar>& p, Rows<Whole, Scalar> rows, Index i, Index j) {
  const TagOf<Scalar> tag;
  constexpr Index lanes = lanes_of<Scalar>;
  VectorOf<Scalar> sums[Cols][Vectors];
#pragma GCC unroll 8
  for (int col = 0; col < Cols; ++col)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sums[col][v] = hn::Zero(tag);
  const Scalar* HWY_RESTRICT a = p.a + i;
  const Index step = Transposed ? 1 : p.b_stride, next = Transposed ? p.b_stride : 1;
  const Scalar* HWY_RESTRICT b = p.b + j * step;
  const Scalar* HWY_RESTRICT b4 = b + 4 * step;
  for (Index k = 0; k < p.inner; ++k) {
    VectorOf<Scalar> left[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) left[v] = rows.load(a + v * lanes);
#pragma GCC unroll 8
    for (int col = 0; col < Cols; ++col) {
      const VectorOf<Scalar> right = hn::Set(tag, value_of(b, b4, step, col));
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[col][v] = hn::MulAdd(left[v], right, sums[col][v]);
    }
    a += p.a_stride, b += next, b4 += next;
  }
  const VectorOf<Scalar> scale = hn::Set(tag, p.scale), add_scale = hn::Set(tag, p.add_scale);
#pragma GCC unroll 8
  for (int col = 0; col < Cols; ++col)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      Scalar* to = p.c + i + v * lanes + (j + col) * p.c_stride;
      const VectorOf<Scalar> scaled = hn::Mul(scale, sums[col][v]);
      rows.store(p.add_scale == 0 ? scaled : hn::MulAdd(add_scale, rows.load(to), scaled), to);
    }
}

template <int Vectors, bool Transposed, bool Whole, class Scalar>
HWY_INLINE void rows_of_product(const SmallProduct<Scalar>& p, Rows<Whole, Scalar> rows, Index i) {
  const Index cols = p.lower ? std::min(p.cols, i + Vectors * lanes_of<Scalar>) : p.cols;
  Index j = 0;
  for (; j + most_cols <= cols; j += most_cols) tile<Vectors, most_cols, Transposed>(p, rows, i, j);
  if (most_cols > 4 && j + 4 <= cols) tile<Vectors, 4, Transposed>(p, rows, i, j), j += 4;
  if (j + 2 <= cols) tile<Vectors, 2, Transposed>(p, rows, i, j), j += 2;
  if (j < cols) tile<Vectors, 1, Transposed>(p, rows, i, j);
}

template <bool Transposed, class Scalar>
HWY_INLINE void product_by(const SmallProduct<Scalar>& p) {
  constexpr Index lanes = lanes_of<Scalar>;
  Index i = 0;
  for (; i + 2 * lanes <= p.rows; i += 2 * lanes) rows_of_product<2, Transposed>(p, Rows<true, Scalar>{}, i);
  if (i + lanes <= p.rows) rows_of_product<1, Transposed>(p, Rows<true, Scalar>{}, i), i += lanes;
  if (i < p.rows) rows_of_product<1, Transposed>(p, Rows<false, Scalar>{p.rows - i}, i);
}

// Columns of `a` that lie far apart push each other out of the cache: rows of it are put side by side first, some
// columns at a time.
template <bool Transposed, class Scalar>
HWY_INLINE void product_by_panels(const SmallProduct<Scalar>& p) {
  constexpr Index rows = 2 * lanes_of<Scalar>, most_inner = small_product_run;
  alignas(64) Scalar aside[rows * most_inner];
  for (Index k = 0; k < p.inner; k += most_inner)
    for (Index i = 0; i < p.rows; i += rows) {
      SmallProduct<Scalar> own = p;
      own.rows = std::min(rows, p.rows - i);
      own.inner = std::min(most_inner, p.inner - k);
      for (Index col = 0; col < own.inner; ++col) {
        const Scalar* from = p.a + i + (k + col) * p.a_stride;
        for_each_vector<Scalar>(0, own.rows, [&](auto part, Index row) HWY_ATTR {
          part.store(part.load(from + row), aside + col * rows + row);
        });
      }
      own.a = aside;
      own.a_stride = rows;
      own.b += k * (Transposed ? p.b_stride : 1);
      own.c += i;
      if (p.lower) own.cols = std::min(p.cols, i + own.rows);
      own.lower = false;
      if (k > 0) own.add_scale = 1;
      product_by<Transposed>(own);
    }
}

template <class Scalar>
void product_of(const SmallProduct<Scalar>& p) {
  constexpr Index apart = 48;
  if (p.a_stride >= apart && p.inner >= apart && p.cols > most_cols) {
    p.b_transposed ? product_by_panels<true>(p) : product_by_panels<false>(p);
  } else {
    p.b_transposed ? product_by<true>(p) : product_by<false>(p);
  }
}
void product(const SmallProduct<double>& p) {
  product_of(p);
}
void single_product(const SmallProduct<float>& p) {
  product_of(p);
}

// A panel after the other: what the columns before it take away, by a product, then its own columns.
bool cholesky(Index n, double* a, Index stride) {
  for (Index first = 0; first < n; first += panel) {
    const Index cols = std::min(panel, n - first);
    double* own = a + first * stride;
    if (first > 0)
      product({.rows = n - first,
               .cols = cols,
               .inner = first,
               .a = a + first,
               .a_stride = stride,
               .b = a + first,
               .b_stride = stride,
               .b_transposed = true,
               .c = own + first,
               .c_stride = stride,
               .scale = -1,
               .add_scale = 1});
    for (Index j = 0; j < cols; ++j) {
      double* column = own + j * stride;
      const double pivot = column[first + j];
      if (!(pivot > 0 && pivot <= std::numeric_limits<double>::max())) return false;
      const double root = std::sqrt(pivot);
      const Vector scale = hn::Set(Tag(), 1 / root);
      for_each_vector(first + j + 1, n, [&](auto rows, Index i) HWY_ATTR {
        rows.store(hn::Mul(scale, rows.load(column + i)), column + i);
      });
      column[first + j] = root;
      for (Index l = j + 1; l < cols; ++l) {
        double* other = own + l * stride;
        const Vector factor = hn::Set(Tag(), column[first + l]);
        for_each_vector(first + l, n, [&](auto rows, Index i) HWY_ATTR {
          rows.store(hn::NegMulAdd(factor, rows.load(column + i), rows.load(other + i)), other + i);
        });
      }
    }
  }
  return true;
}

// The inverse of the rows x rows triangle at l, by columns into `out` (panel x panel), zero above the diagonal.
HWY_INLINE void invert_corner(Index rows, const double* l, Index stride, double* HWY_RESTRICT out) {
  double by_rows[panel][panel] = {};
  for (Index i = 0; i < rows; ++i) {
    by_rows[i][i] = 1;
    for (Index k = 0; k < i; ++k) {
      const double factor = l[i + k * stride];
      for (Index j = 0; j < panel; ++j) by_rows[i][j] -= factor * by_rows[k][j];
    }
    const double scale = 1 / l[i + i * stride];
    for (Index j = 0; j < panel; ++j) by_rows[i][j] *= scale;
  }
  for (Index j = 0; j < panel; ++j)
    for (Index i = 0; i < panel; ++i) out[i + j * panel] = by_rows[i][j];
}

// Rows I of the inverse from those above: -L_II^(-1) L(I, J..I) X(J..I, J).
void lower_inverse(Index n, const double* l, Index l_stride, double* x, Index x_stride) {
  alignas(64) double corner[panel * panel], aside[panel * panel];
  for (Index j = 0; j < n; ++j) std::fill_n(x + j * x_stride, std::min(n, j / panel * panel), 0.0);
  for (Index first = 0; first < n; first += panel) {
    const Index rows = std::min(panel, n - first);
    invert_corner(rows, l + first + first * l_stride, l_stride, corner);
    for (Index j = 0; j < first; j += panel) {
      product({.rows = rows,
               .cols = panel,
               .inner = first - j,
               .a = l + first + j * l_stride,
               .a_stride = l_stride,
               .b = x + j + j * x_stride,
               .b_stride = x_stride,
               .b_transposed = false,
               .c = aside,
               .c_stride = panel});
      product({.rows = rows,
               .cols = panel,
               .inner = rows,
               .a = corner,
               .a_stride = panel,
               .b = aside,
               .b_stride = panel,
               .b_transposed = false,
               .c = x + first + j * x_stride,
               .c_stride = x_stride,
               .scale = -1});
    }
    for (Index j = 0; j < rows; ++j) std::copy_n(corner + j * panel, rows, x + first + (first + j) * x_stride);
  }
}

// By blocks, which stay in cache.
constexpr Index block = 8;
template <class Scalar>
HWY_INLINE void transpose_block(const Scalar* HWY_RESTRICT from, Index from_stride, Scalar* HWY_RESTRICT to,
                                Index to_stride) {
  for (Index k = 0; k < block; ++k)
    for (Index l = 0; l < block; ++l) to[l + k * to_stride] = from[k + l * from_stride];
}

template <class Scalar>
HWY_INLINE void transpose_of(Index rows, Index cols, const Scalar* a, Index a_stride, Scalar* out, Index out_stride) {
  for (Index j = 0; j < cols; j += block)
    for (Index i = 0; i < rows; i += block) {
      const Scalar* from = a + i + j * a_stride;
      Scalar* to = out + j + i * out_stride;
      if (i + block <= rows && j + block <= cols) {
        transpose_block(from, a_stride, to, out_stride);
      } else {
        for (Index k = 0; k < std::min(block, rows - i); ++k)
          for (Index l = 0; l < std::min(block, cols - j); ++l) to[l + k * out_stride] = from[k + l * a_stride];
      }
    }
}
void transpose(Index rows, Index cols, const double* a, Index a_stride, double* out, Index out_stride) {
  transpose_of(rows, cols, a, a_stride, out, out_stride);
}
void single_transpose(Index rows, Index cols, const float* a, Index a_stride, float* out, Index out_stride) {
  transpose_of(rows, cols, a, a_stride, out, out_stride);
}

double largest(Index count, const double* values) {
  // 0 x is NaN where x is not finite.
  constexpr Index lanes = lanes_of<double>, together = 4;
  Vector of_each[together], strange_of_each[together];
#pragma GCC unroll 4
  for (Index k = 0; k < together; ++k) of_each[k] = strange_of_each[k] = hn::Zero(Tag());
  Index first = 0;
  for (; first + together * lanes <= count; first += together * lanes)
#pragma GCC unroll 4
    for (Index k = 0; k < together; ++k) {
      const Vector at = hn::LoadU(Tag(), values + first + k * lanes);
      of_each[k] = hn::Max(of_each[k], hn::Abs(at));
      strange_of_each[k] = hn::MulAdd(hn::Zero(Tag()), at, strange_of_each[k]);
    }
  Vector most = hn::Max(hn::Max(of_each[0], of_each[1]), hn::Max(of_each[2], of_each[3]));
  Vector strange =
      hn::Add(hn::Add(strange_of_each[0], strange_of_each[1]), hn::Add(strange_of_each[2], strange_of_each[3]));
  for_each_vector(first, count, [&](auto part, Index i) HWY_ATTR {
    const Vector at = part.load(values + i);
    most = hn::Max(most, hn::Abs(at));
    strange = hn::MulAdd(hn::Zero(Tag()), at, strange);
  });
  const double none = hn::GetLane(hn::SumOfLanes(Tag(), strange));
  return none == 0 ? hn::GetLane(hn::MaxOfLanes(Tag(), most)) : std::numeric_limits<double>::quiet_NaN();
}

// visit(i, count, j, values) for parts of all columns of b': the rows [i, i + count) of column j.
template <class Visit>
HWY_INLINE void beside_transposed(Index rows, Index cols, const double* b, Index stride, const Visit& visit) {
  constexpr Index most_rows = 96;
  alignas(64) double aside[most_rows * block];
  for (Index i = 0; i < rows; i += most_rows)
    for (Index j = 0; j < cols; j += block) {
      const Index down = std::min(most_rows, rows - i), across = std::min(block, cols - j);
      transpose_of(across, down, b + j + i * stride, stride, aside, most_rows);
      for (Index k = 0; k < across; ++k) visit(i, down, j + k, aside + k * most_rows);
    }
}

void symmetric_part(Index rows, Index cols, const double* a, const double* b, Index stride, double factor,
                    double* out) {
  const Vector half = hn::Set(Tag(), 0.5 * factor);
  beside_transposed(rows, cols, b, stride, [&](Index first, Index count, Index j, const double* other) HWY_ATTR {
    const double* own = a + first + j * stride;
    double* to = out + first + j * stride;
    for_each_vector(0, count, [&](auto part, Index i) HWY_ATTR {
      part.store(hn::Mul(half, hn::Add(part.load(own + i), part.load(other + i))), to + i);
    });
  });
}

SmallAsymmetry asymmetry(Index rows, Index cols, const double* a, const double* b, Index stride) {
  const Vector half = hn::Set(Tag(), 0.5);
  Vector squares = hn::Zero(Tag()), most = hn::Zero(Tag());
  beside_transposed(rows, cols, b, stride, [&](Index first, Index count, Index j, const double* other) HWY_ATTR {
    const double* own = a + first + j * stride;
    for_each_vector(0, count, [&](auto part, Index i) HWY_ATTR {
      const Vector off = hn::Mul(half, hn::Sub(part.load(own + i), part.load(other + i)));
      squares = hn::MulAdd(off, off, squares);
      most = hn::Max(most, hn::Abs(off));
    });
  });
  return {hn::GetLane(hn::SumOfLanes(Tag(), squares)), hn::GetLane(hn::MaxOfLanes(Tag(), most))};
}

void to_single(Index count, const double* values, double factor, float* out) {
  const hn::Rebind<float, Tag> single;
  const Vector scale = hn::Set(Tag(), factor);
  Index i = 0;
  for (; i + lanes_of<double> <= count; i += lanes_of<double>)
    hn::StoreU(hn::DemoteTo(single, hn::Mul(scale, hn::LoadU(Tag(), values + i))), single, out + i);
  for (; i < count; ++i) out[i] = static_cast<float>(factor * values[i]);
}

void subtract_single(Index count, const double* values, double factor, const float* from, double* out) {
  const hn::Rebind<float, Tag> single;
  const Vector scale = hn::Set(Tag(), factor);
  Index i = 0;
  for (; i + lanes_of<double> <= count; i += lanes_of<double>) {
    const Vector wide = hn::PromoteTo(Tag(), hn::LoadU(single, from + i));
    hn::StoreU(hn::NegMulAdd(scale, wide, hn::LoadU(Tag(), values + i)), Tag(), out + i);
  }
  for (; i < count; ++i) out[i] = values[i] - factor * static_cast<double>(from[i]);
}

void power(Index rows, Index cols, const double* a, const double* x, double* y, double* z) {
  std::fill_n(z, rows, 0.0);
  for (Index j = 0; j < cols; ++j) {
    const double* column = a + j * rows;
    Vector sum = hn::Zero(Tag());
    for_each_vector(
        0, rows, [&](auto part, Index i) HWY_ATTR { sum = hn::MulAdd(part.load(column + i), part.load(x + i), sum); });
    y[j] = hn::GetLane(hn::SumOfLanes(Tag(), sum));
    const Vector factor = hn::Set(Tag(), y[j]);
    for_each_vector(0, rows, [&](auto part, Index i) HWY_ATTR {
      part.store(hn::MulAdd(factor, part.load(column + i), part.load(z + i)), z + i);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(product);
HWY_EXPORT(single_product);
HWY_EXPORT(cholesky);
HWY_EXPORT(lower_inverse);
HWY_EXPORT(power);
HWY_EXPORT(largest);
HWY_EXPORT(symmetric_part);
HWY_EXPORT(asymmetry);
HWY_EXPORT(to_single);
HWY_EXPORT(subtract_single);
HWY_EXPORT(transpose);
HWY_EXPORT(single_transpose);

void small_product(const SmallProduct<double>& p) {
  HWY_DYNAMIC_DISPATCH(product)(p);
}
void small_product(const SmallProduct<float>& p) {
  HWY_DYNAMIC_DISPATCH(single_product)(p);
}
bool small_cholesky(Index n, double* a, Index stride) {
  return HWY_DYNAMIC_DISPATCH(cholesky)(n, a, stride);
}
void small_lower_inverse(Index n, const double* l, Index l_stride, double* inverse, Index inverse_stride) {
  HWY_DYNAMIC_DISPATCH(lower_inverse)(n, l, l_stride, inverse, inverse_stride);
}
void small_transpose(Index rows, Index cols, const double* a, Index a_stride, double* out, Index out_stride) {
  HWY_DYNAMIC_DISPATCH(transpose)(rows, cols, a, a_stride, out, out_stride);
}
void small_transpose(Index rows, Index cols, const float* a, Index a_stride, float* out, Index out_stride) {
  HWY_DYNAMIC_DISPATCH(single_transpose)(rows, cols, a, a_stride, out, out_stride);
}
double small_largest(Index count, const double* values) {
  return HWY_DYNAMIC_DISPATCH(largest)(count, values);
}
void small_symmetric_part(Index rows, Index cols, const double* a, const double* b, Index stride, double factor,
                          double* out) {
  HWY_DYNAMIC_DISPATCH(symmetric_part)(rows, cols, a, b, stride, factor, out);
}
SmallAsymmetry small_asymmetry(Index rows, Index cols, const double* a, const double* b, Index stride) {
  return HWY_DYNAMIC_DISPATCH(asymmetry)(rows, cols, a, b, stride);
}
void small_to_single(Index count, const double* values, double factor, float* out) {
  HWY_DYNAMIC_DISPATCH(to_single)(count, values, factor, out);
}
void small_subtract_single(Index count, const double* values, double factor, const float* single, double* out) {
  HWY_DYNAMIC_DISPATCH(subtract_single)(count, values, factor, single, out);
}
void small_power(Index rows, Index cols, const double* a, const double* x, double* y, double* z) {
  HWY_DYNAMIC_DISPATCH(power)(rows, cols, a, x, y, z);
}

}  // namespace itspace::kernels
#endif
