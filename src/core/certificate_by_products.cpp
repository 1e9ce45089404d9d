// SPDX-License-Identifier: Apache-2.0
#include "core/certificate_by_products.hpp"

#include "kernels/small_sweeps.hpp"

#include "core/lapack.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

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

// On the gram route the coordinates are this many times the identity; 0 on the others.
double multiple_of_identity(const ScaledData& data, const Basis& basis) {
  return basis.orthonormal ? 0 : data.coordinates(0, 0);
}

// K', K being C c.
void make_transposed_k(const ScaledData& data, double multiple, ProductsWork& work) {
  if (multiple != 0) {
    kernels::scaled_copy(data.lower, multiple, work.k);
  } else {
    kernels::transpose_into(data.coordinates, work.h);
    kernels::multiply_into(work.h, data.lower, work.k);
  }
}

// A matrix with the singular values of K^(-1), at least to a few digits, from K'; empty where K is too ill-conditioned.
// Of a square K it is the inverse, as exact as that of the basis.
void make_inverse_like(const ScaledData& data, double multiple, const Basis& basis, ProductsWork& work) {
  if (work.k.rows() != work.k.cols()) {
    work.k_inverse = inverse_root(work.k);
    return;
  }
  double factor = std::ldexp(1.0, data.other);
  if (multiple != 0) {
    kernels::transpose_into(work.lower_inverted, work.k_inverse);
    factor = 1 / multiple;
  } else {
    kernels::times_transposed_into(basis.inverse, work.lower_inverted, work.k_inverse);
  }
  kernels::scaled_copy(work.k_inverse, factor, work.k_inverse);
}

// What is measured of m, which is work.m_transposed', in the units of ScaledData. The matrices are transposed, which
// the products read as they lie.
struct Made {
  SmallVector doubt;                // as in Certificate
  double trace = 0, asymmetry = 0;  // of H
  double orthogonality = 0;
  double m_squared = 0;  // ||m||_F^2
  SmallVector lengths;   // by which the columns of m are shortened to be feasible
  double reached = 0;    // tr(H diag(lengths))
};

// The squared lengths of the rows.
SmallVector row_squares(const Small& a) {
  const Index group = kernels::columns_in_group(a.cols());
  Small parts = Small::Zero(a.rows(), (a.cols() + group - 1) / group);
  kernels::for_column_groups(a.rows(), a.cols(), [&](Index number, const kernels::Range& columns) {
    for (Index j = columns.begin; j < columns.end; ++j) parts.col(number) += a.col(j).cwiseAbs2();
  });
  return parts.rowwise().sum();
}

// m = C^(-1) P and its measures; false where P is not orthonormal enough to be mended. `noise`: of theta; `largest`:
// singular value of K.
bool measure(const ScaledData& data, double multiple, double largest, double noise, ProductsWork& work, Made& made) {
  Small &m_transposed = work.m_transposed, &excess = work.excess;
  kernels::multiply_into(work.polar, work.lower_inverted, m_transposed);
  const SmallVector squares = row_squares(m_transposed);
  made.m_squared = squares.sum();
  made.doubt = (noise * squares).cwiseMax(eps64);
  kernels::multiply_into(m_transposed, data.theta, work.m_theta);
  kernels::symmetric_times_transposed(work.m_theta, m_transposed, excess);  // m'theta m - I
  excess.diagonal().array() -= 1;
  if (multiple == 0) kernels::multiply_into(work.m_theta, data.coordinates, work.h);
  const Small& h = multiple == 0 ? work.h : work.m_theta;  // times h_unit
  const double h_unit = multiple == 0 ? 1 : multiple;
  made.trace = h_unit * h.trace();
  made.asymmetry = h_unit * kernels::asymmetry_of(h).norm;
  made.orthogonality = std::sqrt(kernels::squared_norm(excess));
  // With E = m'theta m - I the nuclear norm is tr((I + E)^(-1/2) H) = tr H - tr(E H)/2 + ..., E being symmetric.
  const double longer = 0.5 * h_unit * kernels::sum_of_products(excess, h);
  if (made.orthogonality <= near_orthonormal) {
    made.trace -= longer;
    excess.diagonal().array() += 1;
    made.lengths = feasibility_bounds(excess, made.doubt).cwiseMax(1.0).cwiseSqrt().cwiseInverse();
    made.reached = h_unit * made.lengths.dot(h.diagonal());
    return true;
  }
  constexpr double most_excess = 2e-4;
  if (!(made.orthogonality <= most_excess)) return false;
  // m <- m (I - E/2), with which m'theta m = I - 3/4 E^2 + 1/4 E^3.
  // The correction is small enough for single precision.
  kernels::scaled_copy(excess, 0.5, work.half);
  kernels::scaled_copy(m_transposed, 1, work.m);
  kernels::multiply_into(work.half, work.m, work.correction);
  kernels::set_columns(m_transposed, [&](const kernels::Range& columns) {
    return kernels::at(m_transposed, columns) - kernels::at(work.correction, columns).template cast<double>();
  });
  made.trace -= longer;
  made.asymmetry += 0.55 * made.orthogonality * largest;
  made.m_squared = kernels::squared_norm(m_transposed);
  // ||theta^(1/2) D|| <= (tr theta)^(1/2) ||D|| for what is rounded of the correction.
  const Index r = m_transposed.rows();
  const double rounding = static_cast<double>(std::numeric_limits<float>::epsilon()) * made.orthogonality *
                          std::sqrt(made.m_squared * data.theta.trace());
  made.orthogonality = 0.75 * made.orthogonality * made.orthogonality + rounding + 16 * static_cast<double>(r) * eps64;
  made.lengths.setConstant(r, 1 / std::sqrt(1 + made.orthogonality));
  made.reached = made.lengths(0) * made.trace;
  return true;
}

void set_measures(const PolarMeasures& measures, Index r, Certificate& certificate) {
  certificate.rank = r;
  certificate.by_products = certificate.finite = true;
  certificate.graded = false;
  certificate.nuclear_norm = measures.nuclear_norm;
  certificate.orthogonality = measures.orthogonality;
  certificate.feasibility = std::sqrt(1 + measures.orthogonality);  // lambda_max(I + E) <= 1 + ||E||
  certificate.uncertainty = uncertainty_of(measures, r);
}

}  // namespace

Certificate certificate_of(const PolarMeasures& measures, Index r) {
  Certificate certificate;
  set_measures(measures, r, certificate);
  return certificate;
}

// The rounding of theta, of norm `noise`, is that of m'theta m, so that column i is in doubt by noise ||m_i||^2 (which
// is noise/h_i for singular directions, ||C^(-1) u_i||^2 being 1/h_i), and sum_i s_i noise/h_i = noise <m, c>.
bool certify_by_products(const ScaledData& data, const Basis& basis, const NullRule& rule, ProductsWork& work,
                         Certificate& certificate) {
  const Index r = data.coordinates.cols();
  const double m_unit = std::ldexp(1.0, -data.half), unit = std::ldexp(1.0, data.half + data.other);
  const double multiple = multiple_of_identity(data, basis);
  make_transposed_k(data, multiple, work);
  lower_inverse_into(data.lower, work.lower_inverted);  // C^(-1)'
  make_inverse_like(data, multiple, basis, work);
  if (work.k_inverse.size() == 0) return false;
  const double largest = kernels::estimated_norm(work.k), smallest = 1 / kernels::estimated_norm(work.k_inverse);

  // On the gram route the basis is Y times a number, and G is rounded at Y's longest direction.
  const double longest_squared =
      rule.of_columns ? 1.1 * kernels::estimated_norm(basis.y_gram) * basis.inverse(0, 0) * basis.inverse(0, 0) : 1.0;
  const double noise = m_unit * m_unit * rule.noise * longest_squared;  // in the units of theta

  // 1/||K^(-1)||_F <= s_r, the basis being inverted to a few digits only; for many columns half the estimate is more.
  double at_least = std::max(0.9 / std::sqrt(kernels::squared_norm(work.k_inverse)), 0.5 * smallest);
  if (!(at_least * most_polar_condition >= largest)) return false;
  const bool single = rule.single_precision && r >= fewest_for_single && at_least * most_single_condition >= largest;
  if (basis.exact && work.k.rows() == work.k.cols()) {
    newton_step(work.k, work.k_inverse, largest, smallest, work.k);
    at_least = 0.99;
  }
  Made made;
  const auto succeeds = [&](bool made_polar) {
    return made_polar && measure(data, multiple, largest, noise, work, made);
  };
  if (!(single && succeeds(single_polar_by_products(work.k, at_least, work.polar, work.of_polar))) &&
      !succeeds(polar_by_products(work.k, at_least, work.polar, work.of_polar)))
    return false;

  // ||Y v_i|| >= s_i/||Sigma||^(1/2), and rule.noise is at least 2 eps ||Sigma||, rule.length 4 eps.
  const double shortest = unit * smallest / std::sqrt(2 * rule.noise / rule.length);
  constexpr double most_doubt = 1e-2, clear = 4;
  // The energies are at least 1/||m||^2; the norm is estimated from below.
  const auto is_seen = [&](double most_inverse) { return noise * most_inverse <= most_doubt; };
  const bool all_seen =
      (is_seen(made.m_squared) || is_seen(2 * std::pow(kernels::estimated_norm(work.m_transposed), 2))) &&
      smallest > clear * rule.relative * largest && shortest > clear * rule.length * std::sqrt(basis.y_squared);
  if (!all_seen || !std::isfinite(made.reached)) return false;

  certificate.noise = rule.noise * longest_squared;
  Small& seen = certificate.seen;
  kernels::transpose_into(work.m_transposed, seen);
  kernels::scaled_copy(seen, m_unit, seen);
  const double rounding = noise / m_unit * kernels::sum_of_products(seen, data.coordinates);
  set_measures({.nuclear_norm = unit * made.trace,
                .largest = unit * largest,
                .smallest = unit * smallest,
                .asymmetry = unit * made.asymmetry,
                .orthogonality = made.orthogonality,
                .rounding = unit * rounding},
               r, certificate);
  const double lost = std::max(0.0, made.trace - made.reached);
  const double turned = most_turned(made.asymmetry, smallest, r);
  certificate.gap = unit * (lost + turned);
  certificate.condition = (largest / smallest) * (largest / smallest);
  certificate.doubt = made.doubt;
  certificate.null_directions.resize(r, 0);
  for (Small* const directions : {&certificate.directions, &certificate.served_directions}) {
    directions->resize(r, r);
    kernels::set_columns(*directions, [&](const kernels::Range& columns) {
      return Small::Identity(r, r).middleCols(columns.begin, columns.end - columns.begin);
    });
  }
  for (Small* const coefficients : {&certificate.served, &certificate.m}) {
    coefficients->resize(seen.rows(), r);
    kernels::set_columns(*coefficients, [&](const kernels::Range& columns) {
      return kernels::at(seen, columns) * made.lengths.segment(columns.begin, columns.end - columns.begin).asDiagonal();
    });
  }
  return true;
}

}  // namespace itspace
