// SPDX-License-Identifier: Apache-2.0
#include "core/polar.hpp"

#include "core/lapack.hpp"
#include "kernels/small_products.hpp"

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

bool polar_by_products(const Small& k, double smallest, Small& polar) {
  const std::span<const OddPolynomial> polynomials = polar_polynomials();
  polar = k;
  Small squared, polynomial, next_polar;
  std::size_t next = 0;
  double scale = 1;
  for (bool first = true; first || next < polynomials.size(); ++next, first = false) {
    kernels::outer_square(polar, squared);  // XX'
    if (first) {
      // ||X||_2 <= ||(XX')^2||_F^(1/4).
      kernels::outer_square(squared, polynomial);
      const double bound = std::sqrt(std::sqrt(polynomial.norm()));
      if (!std::isfinite(bound) || !(bound > 0) || !(smallest * most_polar_condition >= bound)) return false;
      scale = 1 / bound;
      while (next + 1 < polynomials.size() && polynomials[next + 1].lowest <= smallest * scale) ++next;
    }
    const OddPolynomial& p = polynomials[next];
    // Of X/bound in the first round; 1 elsewhere.
    const double linear = p.b * scale * scale * scale, quadratic = p.c * scale * scale * scale * scale * scale;
    if (first) {
      polynomial = quadratic * polynomial + linear * squared;
      polynomial.diagonal().array() += p.a * scale;
    } else {
      kernels::quadratic(squared, p.a, linear, quadratic, polynomial);
    }
    scale = 1;
    kernels::multiply_into(polynomial, polar, next_polar);
    polar.swap(next_polar);
  }
  return true;
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
    if (inverse.size() > 0 && polar_by_products(scaled, 0.9 / inverse.norm(), out)) return true;
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
