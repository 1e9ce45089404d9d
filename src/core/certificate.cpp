// SPDX-License-Identifier: Apache-2.0
#include "core/certificate.hpp"

#include "kernels/small_sweeps.hpp"

#include "core/certificate_by_products.hpp"
#include "core/lapack.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace {
namespace {

// Coefficients whose sizes differ by no more than this lose nothing that counts when they are mixed.
constexpr double mixed_safely = 30;

// Decompositions of fewer columns cost less than the products that replace them.
constexpr Index fewest_for_products = 4;

// The power of two just above |x|, as an exponent; 0 for x = 0.
int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

// theta = C'C, with C^(-1) applied by `solve`. Cholesky; where theta is singular to rounding, the square root of its
// eigendecomposition with the null part cut off.
class Root {
 public:
  Root(const Small& theta, Small& lower) : lower_(lower) {
    if (lower_cholesky(theta, lower_)) return;
    singular_ = true;
    SmallVector values;
    Small vectors;
    finite_ = symmetric_eigen(theta, values, vectors);
    if (!finite_) return;
    // A negative eigenvalue shows how far the entries of Sigma itself are rounded.
    cut_ = std::max(4 * eps64 * values.maxCoeff(), -2 * values.minCoeff());
    const SmallVector roots = (values.array() > cut_).select(values.cwiseMax(0.0).cwiseSqrt(), 0.0);
    lower_ = vectors * roots.asDiagonal();
    const SmallVector inverse_roots = (roots.array() > 0).select(roots.cwiseInverse(), 0.0);
    pseudo_inverse_ = vectors * inverse_roots.asDiagonal();
  }

  bool finite() const { return finite_; }
  double cut() const { return cut_; }  // directions of theta up to this were left out
  bool is_singular() const { return singular_; }
  const Small& c_transposed() const { return lower_; }
  Small solve(const Small& right) const {
    if (!singular_) return lower_.triangularView<Eigen::Lower>().transpose().solve(right);
    return pseudo_inverse_ * right;
  }

 private:
  Small& lower_;  // C', a lower triangle where theta is not singular
  Small pseudo_inverse_;
  double cut_ = 0;
  bool singular_ = false;
  bool finite_ = true;
};

void make_empty(Index q, Index r, Certificate& certificate) {
  certificate = Certificate();
  certificate.m.setZero(q, r);
  certificate.served.resize(q, 0);
  certificate.served_directions.resize(r, 0);
  certificate.seen.resize(q, 0);
  certificate.directions.resize(r, 0);
  certificate.doubt.resize(0);
  certificate.null_directions.setIdentity(r, r);
  certificate.condition = std::numeric_limits<double>::infinity();
}

// The share of an energy that may be rounding.
double doubt_of(double energy, double noise, bool of_roots) {
  const double ratio = noise / energy;
  return of_roots ? 2 * std::sqrt(ratio) + ratio : ratio;
}

}  // namespace

// The matrices that it takes.
struct CertificateWork {
  Small theta, coordinates, lower;
  ProductsWork products;
};

std::shared_ptr<CertificateWork> make_certificate_work() {
  return std::make_shared<CertificateWork>();
}

void make_certificate(const Small& theta_in, const Small& coordinates_in, const Basis& basis, const NullRule& rule,
                      double regularization, Certificate& certificate, bool may_use_products, CertificateWork* work) {
  if (work == nullptr) {
    make_certificate(theta_in, coordinates_in, basis, rule, regularization, certificate, may_use_products,
                     make_certificate_work().get());
    return;
  }
  const Index q = theta_in.rows(), r = coordinates_in.cols();
  const double theta_entry = kernels::largest_entry(theta_in), coordinate_size = kernels::largest_entry(coordinates_in);
  const bool finite = std::isfinite(theta_entry) && std::isfinite(coordinate_size);
  const double theta_size = q > 0 && finite ? theta_in.diagonal().cwiseAbs().maxCoeff() : 0;
  const auto begin = [&] {
    make_empty(q, r, certificate);
    certificate.finite = finite;
    // Where nothing is seen, all of Y may hide its rounding.
    certificate.uncertainty = 2 * std::sqrt(static_cast<double>(r) * basis.y_squared) * std::sqrt(rule.noise);
  };
  if (!finite || theta_size == 0 || coordinate_size == 0) return begin();

  // Powers of two bring both to order one; everything below is scale-free, and the scaling is exact.
  const int half = exponent_of(theta_size) / 2, other = exponent_of(coordinate_size);
  Small &theta = work->theta, &coordinates = work->coordinates;
  kernels::symmetric_part(theta_in, std::ldexp(1.0, -2 * half), theta);
  kernels::scaled_copy(coordinates_in, std::ldexp(1.0, -other), coordinates);
  const double unit = std::ldexp(1.0, half + other);  // of singular values

  const Root root(theta, work->lower);
  if (root.finite() && may_use_products && q >= r && r >= fewest_for_products && !root.is_singular() &&
      regularization == 0 && !rule.of_roots && basis.direct &&
      certify_by_products({theta, coordinates, root.c_transposed(), half, other}, basis, rule, work->products,
                          certificate))
    return;
  begin();
  certificate.finite = root.finite();
  if (!certificate.finite) return;
  Svd k;
  certificate.finite =
      svd(kernels::transposed_times(root.c_transposed(), coordinates), q >= r ? SvdSize::thin : SvdSize::full, k);
  if (!certificate.finite || k.s(0) <= 0) return;

  const double y_length = std::sqrt(basis.y_squared);
  const SmallVector lengths = basis.lengths(k.v);
  const double longest = lengths.maxCoeff();
  const double null_limit = rule.of_roots ? 4 : 2;

  std::vector<Index> seen, null;
  SmallVector doubt(r);
  const double root_noise = std::ldexp(root.cut(), 2 * half);
  // The singular values are those of a matrix rounded at their largest.
  certificate.uncertainty = 4 * static_cast<double>(r) * eps64 * unit * k.s(0);
  for (Index i = 0; i < r; ++i) {
    const double s = i < k.s.size() ? unit * k.s(i) : 0.0, length = lengths(i);
    const double noise =
        root_noise + rule.noise * (rule.of_columns && length > 0 ? (longest / length) * (longest / length) : 1.0);
    const double energy = length > 0 ? (s / length) * (s / length) : 0.0;
    const bool is_null =
        !(energy > null_limit * noise) || length <= rule.length * y_length || s <= rule.relative * unit * k.s(0);
    (is_null ? null : seen).push_back(i);
    doubt(i) = is_null ? 1.0 : std::max(eps64, doubt_of(energy, noise, rule.of_roots));
    // 2 s_i moves by s_i doubt_i, twice that with what directions share; what was left out as null is anything up to
    // its own rounding.
    certificate.uncertainty += 2 * (is_null ? s + length * std::sqrt(noise) : s * doubt(i));
  }
  certificate.rank = static_cast<Index>(seen.size());
  if (seen.empty()) return;
  // Null directions count as zero: s_i there is the root of rounding, and leaving it out keeps F an upper bound.
  certificate.nuclear_norm = unit * k.s(seen).sum();
  certificate.null_directions = k.v(Eigen::indexing::all, null);
  if (null.empty()) certificate.condition = (k.s(0) / k.s(r - 1)) * (k.s(0) / k.s(r - 1));

  SmallVector weights = SmallVector::Ones(certificate.rank);
  if (regularization > 0) {
    const double delta = regularization * k.s.squaredNorm() / static_cast<double>(r);
    const SmallVector s = k.s(seen);
    weights = s.cwiseQuotient((s.cwiseAbs2().array() + delta).sqrt().matrix());
  }
  certificate.directions = k.v(Eigen::indexing::all, seen);
  certificate.doubt = doubt(seen);
  certificate.seen = std::ldexp(1.0, -half) * root.solve(k.u(Eigen::indexing::all, seen));
  measure_certificate(
      theta_in, coordinates_in,
      {certificate.seen, certificate.directions, weights, certificate.doubt, SmallVector::Zero(certificate.rank)},
      certificate);
}

// Gershgorin's bound, scaled so that the rounding of doubtful directions (a_ij is about (d_i d_j)^(1/2)) shortens them
// and not the healthy ones.
SmallVector feasibility_bounds(const Small& a, const SmallVector& doubt) {
  const SmallVector roots = doubt.cwiseSqrt();
  const SmallVector shares = a.cwiseAbs() * roots.cwiseInverse();
  SmallVector bounds(a.rows());
  for (Index i = 0; i < a.rows(); ++i) bounds(i) = a(i, i) + roots(i) * (shares(i) - std::abs(a(i, i)) / roots(i));
  return bounds;
}

void measure_certificate(const Small& theta, const Small& coordinates, const CertificateParts& parts,
                         Certificate& certificate) {
  const Small theta_columns = kernels::times(theta, parts.columns);
  // a = I up to rounding where all weights are 1.
  const Small product = parts.weights.asDiagonal() * kernels::transposed_times(parts.columns, theta_columns);
  const Small a =
      0.5 * (product * parts.weights.asDiagonal() + parts.weights.asDiagonal() * kernels::transposed(product));
  certificate.orthogonality = (a - Small::Identity(a.rows(), a.cols())).norm();
  certificate.finite = std::isfinite(certificate.orthogonality);
  if (!certificate.finite) return;
  if (a.rows() == 0) {
    certificate.feasibility = 0;
  } else if (certificate.orthogonality <= near_orthonormal) {
    certificate.feasibility = std::sqrt(1 + certificate.orthogonality);  // lambda_max(I + E) <= 1 + ||E||
  } else {
    SmallVector values;
    certificate.finite = symmetric_eigenvalues(a, values);
    if (!certificate.finite) return;
    certificate.feasibility = std::sqrt(std::max(0.0, values.maxCoeff()));
  }

  SmallVector bounds = feasibility_bounds(a, parts.doubt);
  bounds += parts.weights.cwiseAbs2().cwiseProduct(parts.margin);
  const SmallVector lengths = parts.weights.cwiseQuotient(bounds.cwiseMax(1.0).cwiseSqrt());
  certificate.served = parts.columns * lengths.asDiagonal();
  certificate.served_directions = parts.directions;
  certificate.m = kernels::times(certificate.served, parts.directions.transpose());
  const SmallVector sizes = certificate.served.colwise().norm();
  certificate.graded = sizes.size() > 0 && sizes.maxCoeff() > mixed_safely * sizes.minCoeff();
  const Small served = kernels::times(coordinates, parts.directions);
  const double reached = lengths.dot(theta_columns.cwiseProduct(served).colwise().sum().transpose());
  certificate.gap = std::max(0.0, certificate.nuclear_norm - reached);
}

SmallVector image_lengths(const Small& w_gram, const Certificate& certificate) {
  const Small served = certificate.served.topRows(w_gram.rows());
  const SmallVector squares = served.cwiseProduct(kernels::times(w_gram, served)).colwise().sum();
  return squares.cwiseMax(0.0).cwiseSqrt();
}

SmallVector direction_lengths(const Basis& basis, const Certificate& certificate) {
  return certificate.by_products ? basis.lengths_of_columns() : basis.lengths(certificate.directions);
}

double promise_doubt(const SmallVector& images, const Basis& basis, const Certificate& certificate) {
  if (images.size() == 0) return 0;
  const SmallVector lengths = direction_lengths(basis, certificate);
  double doubt = 0;
  for (Index i = 0; i < certificate.rank; ++i) {
    // Twice: what directions share is as uncertain as they are.
    doubt += 2 * certificate.doubt(i) * images(i) * std::max(images(i), lengths(i));
  }
  return std::isfinite(doubt) ? doubt : 0;
}

double joint_promise_doubt(const Small& image_gram, const Basis& basis, const Certificate& certificate) {
  const Small m_gram = kernels::transposed_times(certificate.seen, certificate.seen);
  const Small y_gram = basis.orthonormal ? kernels::transposed_times(basis.r, basis.r) : basis.y_gram;
  const auto worse = [](double b, double y) { return std::max(b, std::sqrt(b * y)); };
  const double turned = worse(kernels::sum_of_products(m_gram, image_gram), kernels::sum_of_products(m_gram, y_gram));
  // What is rounded in double, as in `doubt`.
  const double sums = worse(image_gram.trace(), y_gram.trace());
  return 2 * (certificate.noise * turned + eps64 * sums);
}

}  // namespace itspace
