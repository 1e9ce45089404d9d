// SPDX-License-Identifier: Apache-2.0
#include "core/certificate_by_products.hpp"

#include "kernels/small_products.hpp"

#include "core/lapack.hpp"
#include "core/polar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();

// Fewer columns are multiplied as fast in double as they are converted.
constexpr Index fewest_for_single = 32;

// By how much the nuclear norm may be more than tr H: at most ||A||_*, and see above. `smallest`: 0 where not known.
double most_turned(double asymmetry, double smallest, Index r) {
  const double at_most = std::sqrt(static_cast<double>(r)) * asymmetry;
  // The least singular value is estimated from above, and S has another one than H.
  const double least = 0.5 * smallest - asymmetry;
  return least > 0 ? std::min(at_most, 0.5 * asymmetry * asymmetry / least) : at_most;
}

// How finely 2 tr H is known.
double uncertainty_of(const PolarMeasures& measures, Index r) {
  return 4 * static_cast<double>(r) * eps64 * measures.largest +
         2 * most_turned(measures.asymmetry, measures.smallest, r) + 2 * measures.rounding;
}

// A matrix with the singular values of K^(-1), at least to a few digits, from K'; empty where K is too ill-conditioned.
Small inverse_like(const ScaledData& data, const Basis& basis, const Small& lower_inverted, const Small& k_transposed) {
  if (k_transposed.rows() != k_transposed.cols()) return inverse_root(k_transposed);
  return std::ldexp(1.0, data.other) * kernels::times_transposed(basis.inverse, lower_inverted);
}

// m and what is measured of it, in the units of ScaledData. The matrices are transposed, which the products read as
// they lie.
struct Made {
  Small m_transposed;
  SmallVector doubt;                             // as in Certificate
  double trace = 0, asymmetry = 0, largest = 0;  // of H
  double orthogonality = 0;
  SmallVector lengths;  // by which the columns of m are shortened to be feasible
  double reached = 0;   // tr(H diag(lengths))
};

// m = C^(-1) P and its measures; false where P is not orthonormal enough to be mended. `noise`: of theta.
bool measure(const ScaledData& data, const Small& polar, const Small& lower_inverted, double noise, Made& made) {
  const Index r = polar.rows();
  made.m_transposed = kernels::times(polar, lower_inverted);
  made.doubt = (noise * made.m_transposed.rowwise().squaredNorm()).cwiseMax(eps64);
  const Small m_theta = kernels::times(made.m_transposed, data.theta);
  Small excess;  // m'theta m - I
  kernels::symmetric_times_transposed(m_theta, made.m_transposed, excess);
  excess.diagonal().array() -= 1;
  const Small h = kernels::times(m_theta, data.coordinates);
  made.trace = h.trace();
  made.asymmetry = 0.5 * (h - kernels::transposed(h)).norm();
  made.largest = kernels::estimated_norm(h);
  made.orthogonality = excess.norm();
  if (made.orthogonality <= near_orthonormal) {
    excess.diagonal().array() += 1;
    made.lengths = feasibility_bounds(excess, made.doubt).cwiseMax(1.0).cwiseSqrt().cwiseInverse();
    made.reached = made.lengths.dot(h.diagonal());
    return true;
  }
  constexpr double most_excess = 2e-4;
  if (!(made.orthogonality <= most_excess)) return false;
  // m <- m (I - E/2), with which m'theta m = I - 3/4 E^2 + 1/4 E^3.
  // The correction is small enough for single precision.
  const kernels::SmallOf<float> half = (0.5 * excess).cast<float>(), m = made.m_transposed.cast<float>();
  kernels::SmallOf<float> correction;
  kernels::multiply_into(half, m, correction);
  made.m_transposed -= correction.cast<double>();
  made.trace -= 0.5 * excess.cwiseProduct(h).sum();  // tr(E H), E being symmetric
  made.asymmetry += 0.55 * made.orthogonality * made.largest;
  // ||theta^(1/2) D|| <= (tr theta)^(1/2) ||D|| for what is rounded of the correction.
  const double rounding = static_cast<double>(std::numeric_limits<float>::epsilon()) * made.orthogonality *
                          made.m_transposed.norm() * std::sqrt(data.theta.trace());
  made.orthogonality = 0.75 * made.orthogonality * made.orthogonality + rounding + 16 * static_cast<double>(r) * eps64;
  made.lengths.setConstant(r, 1 / std::sqrt(1 + made.orthogonality));
  made.reached = made.lengths(0) * made.trace;
  return true;
}

}  // namespace

Certificate certificate_of(const PolarMeasures& measures, Index r) {
  Certificate certificate;
  certificate.rank = r;
  certificate.by_products = true;
  certificate.nuclear_norm = measures.nuclear_norm;
  certificate.orthogonality = measures.orthogonality;
  certificate.feasibility = std::sqrt(1 + measures.orthogonality);  // lambda_max(I + E) <= 1 + ||E||
  certificate.uncertainty = uncertainty_of(measures, r);
  return certificate;
}

// The rounding of theta, of norm `noise`, is that of m'theta m, so that column i is in doubt by noise ||m_i||^2 (which
// is noise/h_i for singular directions, ||C^(-1) u_i||^2 being 1/h_i), and sum_i s_i noise/h_i = noise <m, c>.
bool certify_by_products(const ScaledData& data, const Basis& basis, const NullRule& rule, Certificate& certificate) {
  const Index r = data.coordinates.cols();
  const double m_unit = std::ldexp(1.0, -data.half), unit = std::ldexp(1.0, data.half + data.other);
  const Small k = kernels::transposed_times(data.coordinates, data.lower);  // K'
  const Small lower_inverted = lower_inverse(data.lower);                   // C^(-1)'
  const Small k_inverse = inverse_like(data, basis, lower_inverted, k);
  if (k_inverse.size() == 0) return false;
  const double smallest = 1 / kernels::estimated_norm(k_inverse);

  // On the gram route the basis is Y times a number, and G is rounded at Y's longest direction.
  const double longest_squared =
      rule.of_columns ? 1.1 * kernels::estimated_norm(basis.y_gram) * basis.inverse(0, 0) * basis.inverse(0, 0) : 1.0;
  const double noise = m_unit * m_unit * rule.noise * longest_squared;  // in the units of theta

  // 1/||K^(-1)||_F <= s_r, the basis being inverted to a few digits only; for many columns half the estimate is more.
  const double at_least = std::max(0.9 / k_inverse.norm(), 0.5 * smallest);
  Small polar;
  Made made;
  const bool single = rule.single_precision && r >= fewest_for_single;
  if (!(single && single_polar_by_products(k, at_least, polar) && measure(data, polar, lower_inverted, noise, made)) &&
      !(polar_by_products(k, at_least, polar) && measure(data, polar, lower_inverted, noise, made)))
    return false;

  // ||Y v_i|| >= s_i/||Sigma||^(1/2), and rule.noise is at least 2 eps ||Sigma||, rule.length 4 eps.
  const double shortest = unit * smallest / std::sqrt(2 * rule.noise / rule.length);
  constexpr double most_doubt = 1e-2, clear = 4;
  // The energies are at least 1/||m||^2; the norm is estimated from below.
  const double most_inverse =
      std::min(made.m_transposed.squaredNorm(), 2 * std::pow(kernels::estimated_norm(made.m_transposed), 2));
  const bool all_seen = noise * most_inverse <= most_doubt && smallest > clear * rule.relative * made.largest &&
                        shortest > clear * rule.length * std::sqrt(basis.y_squared);
  if (!all_seen || !std::isfinite(made.reached)) return false;

  const double rounding = noise * made.m_transposed.cwiseProduct(kernels::transposed(data.coordinates)).sum();
  certificate = certificate_of({.nuclear_norm = unit * made.trace,
                                .largest = unit * made.largest,
                                .smallest = unit * smallest,
                                .asymmetry = unit * made.asymmetry,
                                .orthogonality = made.orthogonality,
                                .rounding = unit * rounding},
                               r);
  const double lost = std::max(0.0, made.trace - made.reached);
  const double turned = most_turned(made.asymmetry, smallest, r);
  certificate.gap = unit * (lost + turned);
  certificate.condition = (made.largest / smallest) * (made.largest / smallest);
  certificate.doubt = made.doubt;
  certificate.directions.setIdentity(r, r);
  certificate.null_directions.resize(r, 0);
  certificate.seen = m_unit * kernels::transposed(made.m_transposed);
  certificate.served = certificate.seen * made.lengths.asDiagonal();
  certificate.served_directions = certificate.directions;
  certificate.m = certificate.served;
  return true;
}

}  // namespace itspace
