// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_products.hpp"

#include "kernels/pool.hpp"
#include "kernels/small_dense.hpp"

#include <algorithm>
#include <cmath>

namespace itspace::kernels {
namespace {

// Matrices in cache are multiplied so fast that more of it is worth a thread than of blocks.
Index parts_for_product(double multiply_adds) {
  return parts_for(multiply_adds / 8);
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

// The product without the rows of zeros that op(b) begins and ends with, and without those of `a` beside what is left:
// rows of c that are zero are set here, and the product is of the others.
template <Storage Scalar>
void product_without_zeros(SmallProduct<Scalar> p) {
  const auto zero = [&](Index begin, Index end) {
    for (Index j = 0; j < p.cols; ++j)
      for (Index i = begin; i < end; ++i) {
        Scalar& value = p.c[i + j * p.c_stride];
        value = p.add_scale == 0 ? 0 : p.add_scale * value;
      }
  };
  while (p.inner > 0 && is_zero_row(p, p.inner - 1)) --p.inner;
  // In whole runs: sums of other runs would be other sums.
  Index first = 0;
  while (first < p.inner && is_zero_row(p, first)) ++first;
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
  small_product(p);
}

// By groups of columns, each a part; of a lower triangle, what is below a group's first row.
template <Storage Scalar>
void multiply(const SmallProduct<Scalar>& whole) {
  const double work =
      static_cast<double>(whole.rows) * static_cast<double>(whole.cols) * static_cast<double>(whole.inner);
  const Index threads = parts_for_product(whole.lower ? work / 2 : work);
  constexpr Index lanes = 8, fewest = 24, most = 64;
  if (whole.cols <= most && threads == 1) {
    small_product(whole);
    return;
  }
  // Small enough for all threads to end together, and large enough to be worth its copy of `a`.
  const Index wanted = whole.cols / (4 * threads) / lanes * lanes;
  const Index group = threads == 1 ? most : std::clamp(wanted, fewest, most);
  // The last group has what is left, half a group more or less: products of very few columns are summed in another way.
  const Index parts = std::max<Index>(1, (whole.cols + group / 2) / group);
  run_parts(parts, threads, [&](Index part) {
    const Index begin = part * group, above = whole.lower ? begin : 0;
    SmallProduct<Scalar> own = whole;
    own.rows -= above;
    own.a += above;
    own.cols = (part + 1 < parts ? begin + group : whole.cols) - begin;
    own.b = column_of_b(whole, begin);
    own.c += above + begin * whole.c_stride;
    product_without_zeros(own);
  });
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
void multiply_symmetric(SmallProduct<Scalar> product, SmallOf<Scalar>& out) {
  product.lower = out.rows() >= fewest_for_half;
  multiply(product);
  if (product.lower) small_mirror(out.rows(), out.data());
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
  Small out(a.rows(), b.rows());
  multiply(product_of(a, b, true, out));
  return out;
}

Small transposed_times(const Small& a, const Small& b) {
  return times(transposed(a), b);
}

Small transposed(const Small& a) {
  Small out(a.cols(), a.rows());
  small_transpose(a.rows(), a.cols(), a.data(), out.data());
  return out;
}

template <Storage Scalar>
void outer_square(const SmallOf<Scalar>& a, SmallOf<Scalar>& out) {
  out.resize(a.rows(), a.rows());
  multiply_symmetric(product_of(a, a, true, out), out);
}

void symmetric_times_transposed(const Small& a, const Small& b, Small& out) {
  out.resize(a.rows(), b.rows());
  multiply_symmetric(product_of(a, b, true, out), out);
  if (out.rows() < fewest_for_half) out = 0.5 * (out + out.transpose()).eval();
}

template <Storage Scalar>
void quadratic(const SmallOf<Scalar>& a, double shift, double factor, double scale, SmallOf<Scalar>& out) {
  out = a;
  SmallProduct<Scalar> product = product_of(a, a, false, out);
  product.scale = static_cast<Scalar>(scale);
  product.add_scale = static_cast<Scalar>(factor);
  multiply_symmetric(product, out);
  out.diagonal().array() += static_cast<Scalar>(shift);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                              \
  template void multiply_into(const SmallOf<Scalar>&, const SmallOf<Scalar>&, SmallOf<Scalar>&); \
  template void outer_square(const SmallOf<Scalar>&, SmallOf<Scalar>&);                          \
  template void quadratic(const SmallOf<Scalar>&, double, double, double, SmallOf<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

double estimated_norm(const Small& a) {
  constexpr int powers = 3;
  if (a.size() == 0) return 0;
  const double size = a.cwiseAbs().maxCoeff();
  if (!(size > 0) || !std::isfinite(size)) return size;
  // Squares would leave the range of double before norms do: x is kept so short that a'x is of order one.
  const int exponent = std::ilogb(size);
  Index longest = 0;
  (std::ldexp(1.0, -exponent) * a).colwise().squaredNorm().maxCoeff(&longest);
  SmallVector x = std::ldexp(1.0, -exponent) * a.col(longest), image(a.cols()), next(a.rows());
  double norm = 0;
  for (int power = 0; power < powers; ++power) {
    const double length = x.norm();
    if (!(length > 0)) break;
    x *= std::ldexp(1.0, -exponent) / length;
    small_power(a.rows(), a.cols(), a.data(), x.data(), image.data(), next.data());
    norm = image.norm();
    x = std::ldexp(1.0, -exponent) * next;
  }
  return std::ldexp(norm, exponent);
}

}  // namespace itspace::kernels
