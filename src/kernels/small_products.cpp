// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_products.hpp"

#include "kernels/blas_int.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"
#include "kernels/small_dense.hpp"
#include "kernels/small_sweeps.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

namespace itspace::kernels {
namespace {

// Matrices in cache are multiplied so fast that more of it is worth a thread than of blocks.
Index parts_for_product(double multiply_adds) {
  return parts_for(multiply_adds / 3);
}

template <Storage Scalar>
const Scalar* column_of_b(const SmallProduct<Scalar>& p, Index col) {
  return p.b + col * (p.b_transposed ? 1 : p.b_stride);
}
// Between the values of such a column.
template <Storage Scalar>
Index step_in_b(const SmallProduct<Scalar>& p) {
  return p.b_transposed ? p.b_stride : 1;
}

// Whether row k of op(b) is zero.
template <Storage Scalar>
bool is_zero_row(const SmallProduct<Scalar>& p, Index k) {
  const Scalar* row = p.b + k * step_in_b(p);
  const Index apart = p.b_transposed ? 1 : p.b_stride;
  for (Index j = 0; j < p.cols; ++j)
    if (row[j * apart] != 0) return false;
  return true;
}
// Whether row i of `a` is zero.
template <Storage Scalar>
bool is_zero_row_of_a(const SmallProduct<Scalar>& p, Index i) {
  for (Index k = 0; k < p.inner; ++k)
    if (p.a[i + k * p.a_stride] != 0) return false;
  return true;
}

// Whether column k of `a` is zero.
template <Storage Scalar>
bool is_zero_column_of_a(const SmallProduct<Scalar>& p, Index k) {
  const Scalar* column = p.a + k * p.a_stride;
  return std::all_of(column, column + p.rows, [](Scalar value) { return value == 0; });
}

void blas_product(const SmallProduct<double>& p) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, p.b_transposed ? CblasTrans : CblasNoTrans, blas_int(p.rows),
              blas_int(p.cols), blas_int(p.inner), p.scale, p.a, blas_int(p.a_stride), p.b, blas_int(p.b_stride),
              p.add_scale, p.c, blas_int(p.c_stride));
}
void blas_product(const SmallProduct<float>& p) {
  cblas_sgemm(CblasColMajor, CblasNoTrans, p.b_transposed ? CblasTrans : CblasNoTrans, blas_int(p.rows),
              blas_int(p.cols), blas_int(p.inner), p.scale, p.a, blas_int(p.a_stride), p.b, blas_int(p.b_stride),
              p.add_scale, p.c, blas_int(p.c_stride));
}

// The product without what op(b) and `a` begin and end with of zeros between them, and without the rows of zeros of `a`
// beside what is left: rows of c that are zero are set here, and the product is of the others.
template <Storage Scalar>
void product_without_zeros(SmallProduct<Scalar> p, bool by_blas) {
  const auto zero = [&](Index begin, Index end) {
    for (Index j = 0; j < p.cols; ++j)
      for (Index i = begin; i < end; ++i) {
        Scalar& value = p.c[i + j * p.c_stride];
        value = p.add_scale == 0 ? 0 : p.add_scale * value;
      }
  };
  const auto is_nothing = [&](Index k) { return is_zero_row(p, k) || is_zero_column_of_a(p, k); };
  while (p.inner > 0 && is_nothing(p.inner - 1)) --p.inner;
  // In whole runs: sums of other runs would be other sums.
  Index first = 0;
  while (first < p.inner && is_nothing(first)) ++first;
  first = first / small_product_run * small_product_run;
  p.inner -= first;
  p.a += first * p.a_stride;
  p.b += first * step_in_b(p);
  Index below = p.rows, above = 0;
  while (below > 0 && is_zero_row_of_a(p, below - 1)) --below;
  while (above < below && is_zero_row_of_a(p, above)) ++above;
  zero(below, p.rows);
  zero(0, above);
  if (above == below) return;
  p.rows = below - above;
  p.a += above;
  p.c += above;
  p.lower = p.lower && above == 0;
  by_blas ? blas_product(p) : small_product(p);
}

// How a product is cut, each tile being a part. The last ones have what is left, half a tile more or less: products of
// very few columns are summed in another way.
struct Tiles {
  Index rows, cols, down, across;
  bool lower;  // only those on and below the diagonal, which are square
  bool by_blas;

  Index count() const { return lower ? down * (down + 1) / 2 : down * across; }
  void find(Index number, Index& i, Index& j) const {
    if (!lower) {
      i = number % down;
      j = number / down;
      return;
    }
    // The lowest rows first.
    number = count() - 1 - number;
    for (i = 0; number > i;) number -= ++i;
    j = number;
  }
};

Index tiles_along(Index values, Index tile) {
  return std::max<Index>(1, (values + tile / 2) / tile);
}

template <Storage Scalar>
Tiles tiles_of(const SmallProduct<Scalar>& p, Index threads) {
  // What does not stay in cache is BLAS's, a tile at a time: tiles that depend on the sizes alone, for the bits.
  constexpr Index fewest_for_blas = 400, blas_tile = 128, most = 64, most_rows = 128, fewest = 32;
  Tiles tiles{
      .rows = std::min(p.rows, most_rows), .cols = most, .down = 1, .across = 1, .lower = p.lower, .by_blas = false};
  tiles.by_blas = std::min({p.rows, p.cols, p.inner}) > fewest_for_blas && OneBlasThread::is_to_be_had();
  if (tiles.by_blas) {
    tiles.rows = tiles.cols = blas_tile;
  } else if (p.lower) {
    tiles.rows = tiles.cols = threads > 1 ? fewest : most;
  }
  const auto count = [&] {
    tiles.down = tiles_along(p.rows, tiles.rows);
    tiles.across = tiles_along(p.cols, tiles.cols);
    return tiles.count();
  };
  // Several for each thread, so that all end together.
  while (count() < 2 * threads && !tiles.by_blas && !p.lower) {
    if (tiles.rows >= 2 * tiles.cols && tiles.rows >= 2 * fewest) {
      tiles.rows = (tiles.rows / 2 + fewest - 1) / fewest * fewest;
    } else if (tiles.cols > fewest) {
      tiles.cols /= 2;
    } else if (tiles.rows > fewest) {
      tiles.rows = (tiles.rows / 2 + fewest - 1) / fewest * fewest;
    } else {
      break;
    }
  }
  return tiles;
}

// What is done to a tile of a symmetric product besides.
template <Storage Scalar>
struct Around {
  bool mirrored = false;           // copied to the other side of the diagonal
  const Scalar* addend = nullptr;  // c is this before, as long as c
  Scalar shift = 0;                // added to the diagonal after
};

template <Storage Scalar>
void multiply(const SmallProduct<Scalar>& whole, const Around<Scalar>& around = {}) {
  if (whole.rows == 0 || whole.cols == 0) return;
  const double work =
      static_cast<double>(whole.rows) * static_cast<double>(whole.cols) * static_cast<double>(whole.inner);
  const Index threads = parts_for_product(whole.lower ? work / 2 : work);
  const Tiles tiles = tiles_of(whole, threads);
  const auto multiply_tile = [&](Index number) {
    Index i = 0, j = 0;
    tiles.find(number, i, j);
    const Index top = i * tiles.rows, left = j * tiles.cols;
    SmallProduct<Scalar> own = whole;
    own.rows = (i + 1 < tiles.down ? top + tiles.rows : whole.rows) - top;
    own.cols = (j + 1 < tiles.across ? left + tiles.cols : whole.cols) - left;
    own.lower = whole.lower && i == j;
    own.a += top;
    own.b = column_of_b(whole, left);
    own.c += top + left * whole.c_stride;
    if (around.addend != nullptr)
      for (Index col = 0; col < own.cols; ++col)
        std::copy_n(around.addend + top + (left + col) * whole.c_stride, own.rows, own.c + col * whole.c_stride);
    if (tiles.count() == 1) {
      small_product(own);
    } else {
      product_without_zeros(own, tiles.by_blas);
    }
    if (around.shift != 0 && top == left)
      for (Index k = 0; k < own.cols; ++k) own.c[k + k * whole.c_stride] += around.shift;
    if (!around.mirrored) return;
    if (i != j) {
      small_transpose(own.rows, own.cols, own.c, whole.c_stride, whole.c + left + top * whole.c_stride, whole.c_stride);
      return;
    }
    for (Index col = 0; col < own.cols; ++col)
      for (Index row = col + 1; row < own.rows; ++row)
        own.c[col + row * whole.c_stride] = own.c[row + col * whole.c_stride];
  };
  if (tiles.by_blas) {
    const OneBlasThread blas;
    run_parts(tiles.count(), threads, multiply_tile);
  } else {
    run_parts(tiles.count(), threads, multiply_tile);
  }
}

template <Storage Scalar>
SmallProduct<Scalar> product_of(const SmallOf<Scalar>& a, const SmallOf<Scalar>& b, bool b_transposed,
                                SmallOf<Scalar>& out) {
  return {.rows = a.rows(),
          .cols = b_transposed ? b.rows() : b.cols(),
          .inner = a.cols(),
          .a = a.data(),
          .a_stride = a.rows(),
          .b = b.data(),
          .b_stride = b.rows(),
          .b_transposed = b_transposed,
          .c = out.data(),
          .c_stride = out.rows()};
}

// Below this what a half saves is lost in copying it to the other.
constexpr Index fewest_for_half = 48;

template <Storage Scalar>
void multiply_symmetric(SmallProduct<Scalar> product, Around<Scalar> around) {
  product.lower = around.mirrored = product.rows >= fewest_for_half;
  multiply(product, around);
}

}  // namespace

template <Storage Scalar>
void multiply_into(const SmallOf<Scalar>& a, const SmallOf<Scalar>& b, SmallOf<Scalar>& out) {
  out.resize(a.rows(), b.cols());
  multiply(product_of(a, b, false, out));
}

Small times(const Small& a, const Small& b) {
  Small out;
  multiply_into(a, b, out);
  return out;
}

Small times_transposed(const Small& a, const Small& b) {
  Small out;
  times_transposed_into(a, b, out);
  return out;
}

void times_transposed_into(const Small& a, const Small& b, Small& out) {
  out.resize(a.rows(), b.rows());
  multiply(product_of(a, b, true, out));
}

Small transposed_times(const Small& a, const Small& b) {
  return times(transposed(a), b);
}

void transpose_into(const Small& a, Small& out) {
  out.resize(a.cols(), a.rows());
  // By columns of `out`: what is written is the own.
  for_column_groups(out.rows(), out.cols(), [&](Index, const Range& rows) {
    small_transpose(rows.end - rows.begin, a.cols(), a.data() + rows.begin, a.rows(),
                    out.data() + rows.begin * out.rows(), out.rows());
  });
}

Small transposed(const Small& a) {
  Small out;
  transpose_into(a, out);
  return out;
}

template <Storage Scalar>
void outer_square(const SmallOf<Scalar>& a, SmallOf<Scalar>& out) {
  out.resize(a.rows(), a.rows());
  multiply_symmetric(product_of(a, a, true, out), {});
}

void symmetric_times_transposed(const Small& a, const Small& b, Small& out) {
  out.resize(a.rows(), b.rows());
  multiply_symmetric(product_of(a, b, true, out), {});
  if (out.rows() < fewest_for_half) out = 0.5 * (out + out.transpose()).eval();
}

template <Storage Scalar>
void quadratic(const SmallOf<Scalar>& a, double shift, double factor, double scale, SmallOf<Scalar>& out) {
  out.resize(a.rows(), a.cols());
  SmallProduct<Scalar> product = product_of(a, a, false, out);
  product.scale = static_cast<Scalar>(scale);
  product.add_scale = static_cast<Scalar>(factor);
  multiply_symmetric(product, {.addend = a.data(), .shift = static_cast<Scalar>(shift)});
}

#define ITSPACE_INSTANTIATE(Scalar)                                                              \
  template void multiply_into(const SmallOf<Scalar>&, const SmallOf<Scalar>&, SmallOf<Scalar>&); \
  template void outer_square(const SmallOf<Scalar>&, SmallOf<Scalar>&);                          \
  template void quadratic(const SmallOf<Scalar>&, double, double, double, SmallOf<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

namespace {

// y = a'x and z = a y, by groups of columns with sums of their own.
void power_step(const Small& a, const SmallVector& x, SmallVector& y, SmallVector& z) {
  const Index rows = a.rows(), group = columns_in_group(a.cols()), groups = (a.cols() + group - 1) / group;
  double* sums = thread_scratch<double, Scratch::partial_sums>(groups * rows);
  for_column_groups(rows, a.cols(), [&](Index number, const Range& columns) {
    small_power(rows, columns.end - columns.begin, a.data() + columns.begin * rows, x.data(), y.data() + columns.begin,
                sums + number * rows);
  });
  z.setZero(rows);
  for (Index number = 0; number < groups; ++number) z += Eigen::Map<const SmallVector>(sums + number * rows, rows);
}

}  // namespace

double estimated_norm(const Small& a) {
  constexpr int powers = 3;
  if (a.size() == 0) return 0;
  const double size = largest_entry(a);
  if (!(size > 0) || !std::isfinite(size)) return size;
  // Squares would leave the range of double before norms do: x is kept so short that a'x is of order one.
  const int exponent = std::ilogb(size);
  const double unit = std::ldexp(1.0, -exponent);
  SmallVector squares(a.cols());
  for_column_groups(a.rows(), a.cols(), [&](Index, const Range& columns) {
    squares.segment(columns.begin, columns.end - columns.begin) =
        (unit * at(a, columns)).colwise().squaredNorm().transpose();
  });
  Index longest = 0;
  squares.maxCoeff(&longest);
  SmallVector x = unit * a.col(longest), image(a.cols()), next(a.rows());
  double norm = 0;
  for (int power = 0; power < powers; ++power) {
    const double length = x.norm();
    if (!(length > 0)) break;
    x *= unit / length;
    power_step(a, x, image, next);
    norm = image.norm();
    x = unit * next;
  }
  return std::ldexp(norm, exponent);
}

}  // namespace itspace::kernels
