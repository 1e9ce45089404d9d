// SPDX-License-Identifier: Apache-2.0
#include "core/polar.hpp"

#include "kernels/small_products.hpp"

#include <Eigen/LU>
#include <array>
#include <cmath>
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

// For matrices of condition number up to most_polar_condition; each polynomial for what the one before leaves.
std::vector<OddPolynomial> make_polynomials() {
  // From here on the four equations say less than Taylor's polynomial at 1, whose error is 5/2 (1 - s)^3.
  constexpr double nearly_one = 0.99, converged = 1e-17;
  std::vector<OddPolynomial> all;
  double lowest = 0.5 / most_polar_condition;
  while (lowest < nearly_one) {
    double error = 0;
    all.push_back(best_polynomial(lowest, error));
    lowest = (1 - error) / (1 + error);
  }
  for (double error = 1 - lowest; error > converged; error = 2.5 * error * error * error)
    all.push_back({1.875, -1.25, 0.375, 1 - error});
  return all;
}

}  // namespace

std::span<const OddPolynomial> polar_polynomials() {
  static const std::vector<OddPolynomial> polynomials = make_polynomials();
  return polynomials;
}

bool polar_by_products(const Small& k, double smallest, Small& polar) {
  const std::span<const OddPolynomial> polynomials = polar_polynomials();
  polar = k;
  Small squared, fourth;
  std::size_t next = 0;
  double scale = 1;
  for (bool first = true; first || next < polynomials.size(); ++next, first = false) {
    const Small transposed = polar.transpose();
    squared = kernels::transposed_times(transposed, transposed);  // XX'
    fourth = kernels::transposed_times(squared, squared);
    if (first) {
      // ||X||_2 <= ||(XX')^2||_F^(1/4).
      const double bound = std::pow(fourth.norm(), 0.25);
      if (!std::isfinite(bound) || !(bound > 0) || !(smallest * most_polar_condition >= bound)) return false;
      scale = 1 / bound;
      while (next + 1 < polynomials.size() && polynomials[next + 1].lowest <= smallest * scale) ++next;
    }
    const OddPolynomial& p = polynomials[next];
    // Of X/bound in the first round; 1 elsewhere.
    fourth = p.c * std::pow(scale, 5) * fourth + p.b * std::pow(scale, 3) * squared;
    fourth.diagonal().array() += p.a * scale;
    scale = 1;
    polar = kernels::transposed_times(fourth, polar);
  }
  return true;
}

}  // namespace itspace
