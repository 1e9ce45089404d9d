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

// Each part has some columns of the product, of a lower triangle about the same share.
void multiply(const SmallProduct& whole) {
  const double work =
      static_cast<double>(whole.rows) * static_cast<double>(whole.cols) * static_cast<double>(whole.inner);
  const Index parts = parts_for_product(whole.lower ? work / 2 : work);
  if (parts == 1) {
    small_product(whole);
    return;
  }
  constexpr Index group = 8;
  const auto cut = [&](Index part) {
    const double share = static_cast<double>(part) / static_cast<double>(parts);
    const double columns = (whole.lower ? 1 - std::sqrt(1 - share) : share) * static_cast<double>(whole.cols);
    return part == parts ? whole.cols : static_cast<Index>(columns) / group * group;
  };
  run_parts(parts, [&](Index part) {
    const Index begin = cut(part), end = cut(part + 1);
    if (begin >= end) return;
    SmallProduct own = whole;
    const Index above = whole.lower ? begin : 0;
    own.rows -= above;
    own.a += above;
    own.cols = end - begin;
    own.b += begin * (whole.b_transposed ? 1 : whole.b_stride);
    own.c += above + begin * whole.c_stride;
    small_product(own);
  });
}

SmallProduct product_of(const Small& a, const Small& b, bool b_transposed, Small& out) {
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

}  // namespace

void multiply_into(const Small& a, const Small& b, Small& out) {
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

void outer_square(const Small& a, Small& out) {
  out.resize(a.rows(), a.rows());
  SmallProduct product = product_of(a, a, true, out);
  product.lower = a.rows() >= fewest_for_half;
  multiply(product);
  if (product.lower) small_mirror(out.rows(), out.data());
}

void quadratic(const Small& a, double shift, double factor, double scale, Small& out) {
  out = a;
  SmallProduct product = product_of(a, a, false, out);
  product.scale = scale;
  product.add_scale = factor;
  product.lower = a.rows() >= fewest_for_half;
  multiply(product);
  if (product.lower) small_mirror(out.rows(), out.data());
  out.diagonal().array() += shift;
}

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
