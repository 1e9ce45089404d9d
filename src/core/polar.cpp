// SPDX-License-Identifier: Apache-2.0
#include "core/polar.hpp"

#include "core/lapack.hpp"
#include "kernels/small_sweeps.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace {
namespace {

// The best p for [lowest, 1]: p - 1 takes -error, error, -error, error at lowest, two stationary points of p, and 1.
// (Remez' exchange; the four equations are linear in a, b, c and the error.)
OddPolynomial best_polynomial(double lowest, double& error) {
  OddPolynomial p;
  p.lowest = lowest;
  double first = 0.75 * lowest + 0.25, second = 0.25 * lowest + 0.75;
  for (int round = 0; round < 50; ++round) {
    const std::array<double, 4> at = {lowest, first, second, 1};
    Eigen::Matrix4d system;
    for (int i = 0; i < 4; ++i) {
      const double s = at[static_cast<std::size_t>(i)];
      system.row(i) << s, s * s * s, s * s * s * s * s, i % 2 == 0 ? 1 : -1;
    }
    const Eigen::Vector4d found = system.partialPivLu().solve(Eigen::Vector4d::Ones());
    p.a = found(0);
    p.b = found(1);
    p.c = found(2);
    error = found(3);
    // p' = a + 3 b s^2 + 5 c s^4 = 0.
    const double root = std::sqrt(9 * p.b * p.b - 20 * p.a * p.c);
    const double next_first = std::sqrt((-3 * p.b - root) / (10 * p.c));
    const double next_second = std::sqrt((-3 * p.b + root) / (10 * p.c));
    if (!(next_first > lowest && next_second < 1)) break;  // as good as rounding lets it be
    const double change = std::abs(next_first - first) + std::abs(next_second - second);
    first = next_first;
    second = next_second;
    if (change < 1e-12) break;
  }
  const double scale = 1 / (1 + error);
  p.a *= scale;
  p.b *= scale;
  p.c *= scale;
  return p;
}

}  // namespace

std::vector<OddPolynomial> polar_polynomials_from(double lowest, double cushion) {
  // From here on the four equations say less than Taylor's polynomial at 1, whose error is 5/2 (1 - s)^3.
  constexpr double nearly_one = 0.99, converged = 1e-17;
  // From here on a polynomial is flat enough at 1 to need no cushion.
  constexpr double flat = 0.5;
  std::vector<OddPolynomial> all;
  while (lowest < nearly_one) {
    const double wider = lowest < flat ? cushion : 1;
    double error = 0;
    OddPolynomial p = best_polynomial(lowest / wider, error);
    p.a /= wider;
    p.b /= wider * wider * wider;
    p.c /= wider * wider * wider * wider * wider;
    p.lowest = lowest;
    all.push_back(p);
    lowest = (1 - error) / (1 + error);
  }
  for (double error = 1 - lowest; error > converged; error = 2.5 * error * error * error)
    all.push_back({1.875, -1.25, 0.375, 1 - error});
  return all;
}

std::span<const OddPolynomial> polar_polynomials() {
  static const std::vector<OddPolynomial> polynomials = polar_polynomials_from(0.5 / most_polar_condition, 1);
  return polynomials;
}

namespace {

// k over a bound of its norm, and one polynomial applied to it: the one to begin with, of those that make(lowest) gives
// for singular values from there on. False where k is too ill-conditioned, or not finite.
template <Storage Scalar, class Make>
bool begin_polar(const Small& k, double smallest, double most_condition, const Make& make,
                 std::span<const OddPolynomial>& left, PolarWork::Powers<Scalar>& work) {
  const double size = k.size() > 0 ? kernels::largest_entry(k) : 0;
  if (!(size > 0) || !std::isfinite(size)) return false;
  // To order one, for the range of the type.
  const double unit = std::ldexp(1.0, -std::ilogb(size));
  kernels::scaled_copy(k, unit, work.moved);
  kernels::outer_square(work.moved, work.squared);
  kernels::outer_square(work.squared, work.fourth);
  const double bound = std::sqrt(std::sqrt(std::sqrt(kernels::squared_norm(work.fourth))));  // ||(kk')^2||_F^(1/4)
  if (!std::isfinite(bound) || !(bound > 0) || !(unit * smallest * most_condition >= bound)) return false;
  left = make(std::min(unit * smallest / bound, 0.5));
  // The first one has its powers already.
  const OddPolynomial& p = left.front();
  const double scale = 1 / bound, cube = scale * scale * scale;
  const auto fifth = static_cast<Scalar>(p.c * cube * scale * scale), third = static_cast<Scalar>(p.b * cube);
  const auto first = static_cast<Scalar>(p.a * scale);
  kernels::for_column_groups(k.rows(), k.rows(), [&](Index, const kernels::Range& columns) {
    const Index count = columns.end - columns.begin;
    auto polynomial = work.fourth.middleCols(columns.begin, count);
    polynomial = fifth * polynomial + third * kernels::at(work.squared, columns);
    polynomial.middleRows(columns.begin, count).diagonal().array() += first;
  });
  kernels::multiply_into(work.fourth, work.moved, work.x);
  left = left.subspan(1);
  return true;
}

// X <- p(X) for all of them.
template <Storage Scalar>
void apply_polynomials(std::span<const OddPolynomial> polynomials, PolarWork::Powers<Scalar>& work) {
  for (const OddPolynomial& p : polynomials) {
    kernels::outer_square(work.x, work.squared);  // XX'
    kernels::quadratic(work.squared, p.a, p.b, p.c, work.fourth);
    kernels::multiply_into(work.fourth, work.x, work.moved);
    work.x.swap(work.moved);
  }
}

}  // namespace

bool polar_by_products(const Small& k, double smallest, Small& polar, PolarWork& work) {
  std::span<const OddPolynomial> left;
  const auto from_table = [](double lowest) {
    std::span<const OddPolynomial> table = polar_polynomials();
    while (table.size() > 1 && table[1].lowest <= lowest) table = table.subspan(1);
    return table;
  };
  if (!begin_polar<double>(k, smallest, most_polar_condition, from_table, left, work.in_double)) return false;
  apply_polynomials<double>(left, work.in_double);
  polar.swap(work.in_double.x);
  return true;
}

bool single_polar_by_products(const Small& k, double smallest, Small& polar, PolarWork& work) {
  // The polynomials for small singular values have large coefficients of both signs, in which single precision would
  // lose two digits: they are applied in double. What is left when one begins `enough` close to 1 is below the
  // rounding. The cushion is a thousand roundings.
  constexpr double gentle_up_to = 500, steep = 0.5 / gentle_up_to, enough = 1e-6, cushion = 1.001;
  std::vector<OddPolynomial> own;  // no more of them than are needed
  const auto make = [&](double lowest) {
    own = polar_polynomials_from(lowest, cushion);
    while (own.size() > 1 && 1 - own.back().lowest <= enough) own.pop_back();
    return std::span<const OddPolynomial>(own);
  };
  std::span<const OddPolynomial> left;
  if (!begin_polar<float>(k, smallest, gentle_up_to, make, left, work.in_single)) {
    if (!begin_polar<double>(k, smallest, most_single_condition, make, left, work.in_double)) return false;
    std::size_t steep_ones = 0;
    while (steep_ones < left.size() && left[steep_ones].lowest < steep) ++steep_ones;
    apply_polynomials<double>(left.first(steep_ones), work.in_double);
    left = left.subspan(steep_ones);
    kernels::scaled_copy(work.in_double.x, 1, work.in_single.x);
  }
  apply_polynomials<float>(left, work.in_single);
  kernels::scaled_copy(work.in_single.x, 1, polar);
  return true;
}

void newton_step(const Small& k, const Small& inverse_transposed, double largest, double smallest, Small& out) {
  const double g = 1 / std::sqrt(largest * smallest);
  out.resize(k.rows(), k.cols());
  kernels::set_columns(out, [&](const kernels::Range& columns) {
    return 0.5 * g * kernels::at(k, columns) + 0.5 / g * kernels::at(inverse_transposed, columns);
  });
}

Small inverse_root(const Small& k) {
  Small gram, lower;
  kernels::outer_square(k, gram);
  if (!lower_cholesky(gram, lower)) return {};
  Small inverse = lower_inverse(lower);
  const double rounding =
      static_cast<double>(k.cols() + 2 * k.rows()) * std::numeric_limits<double>::epsilon() * gram.trace();
  if (!(100 * rounding * inverse.squaredNorm() <= 1)) return {};
  return inverse;
}

bool closest_orthogonal(const Small& k, Small& out) {
  const double size = k.size() > 0 ? k.cwiseAbs().maxCoeff() : 0;
  if (size > 0 && size <= std::numeric_limits<double>::max()) {
    int exponent = 0;
    std::frexp(size, &exponent);
    const Small scaled = std::ldexp(1.0, -exponent) * k;
    const Small inverse = inverse_root(scaled);
    PolarWork work;
    if (inverse.size() > 0 && polar_by_products(scaled, 0.9 / inverse.norm(), out, work)) return true;
  }
  Svd parts;
  if (!svd(k, SvdSize::full, parts)) return false;
  out = kernels::times_transposed(parts.u, parts.v);
  return true;
}

Small compact_polar(const Small& a) {
  Svd parts;
  require_converged(svd(a, SvdSize::thin, parts), "singular values of the features' product with the factor");
  const double cut = static_cast<double>(std::max(a.rows(), a.cols())) * std::numeric_limits<double>::epsilon();
  Index rank = 0;
  while (rank < parts.s.size() && parts.s(rank) > cut * parts.s(0)) ++rank;
  return parts.u.leftCols(rank) * parts.v.leftCols(rank).transpose();
}

}  // namespace itspace
