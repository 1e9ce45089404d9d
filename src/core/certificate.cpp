// SPDX-License-Identifier: Apache-2.0
#include "core/certificate.hpp"

#include "core/lapack.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();

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
  explicit Root(const Small& theta) {
    const Eigen::LLT<Small> llt(theta);
    if (llt.info() == Eigen::Success) {
      c_ = llt.matrixU();
      return;
    }
    triangular_ = false;
    SmallVector values;
    Small vectors;
    finite_ = symmetric_eigen(theta, values, vectors);
    if (!finite_) return;
    const double cut = 8 * static_cast<double>(theta.rows()) * eps64 * std::max(0.0, values.maxCoeff());
    const SmallVector roots = (values.array() > cut).select(values.cwiseMax(0.0).cwiseSqrt(), 0.0);
    c_ = roots.asDiagonal() * vectors.transpose();
    const SmallVector inverse_roots = (roots.array() > 0).select(roots.cwiseInverse(), 0.0);
    pseudo_inverse_ = vectors * inverse_roots.asDiagonal();
  }

  bool finite() const { return finite_; }
  const Small& c() const { return c_; }
  Small solve(const Small& right) const {
    if (triangular_) return c_.triangularView<Eigen::Upper>().solve(right);
    return pseudo_inverse_ * right;
  }

 private:
  Small c_, pseudo_inverse_;
  bool triangular_ = true;
  bool finite_ = true;
};

void make_empty(Index q, Index r, Certificate& certificate) {
  certificate = Certificate();
  certificate.m.setZero(q, r);
  certificate.seen.resize(q, 0);
  certificate.null_directions.setIdentity(r, r);
  certificate.condition = std::numeric_limits<double>::infinity();
}

}  // namespace

void make_certificate(const Small& theta_in, const Small& coordinates_in, const Basis& basis, const NullRule& rule,
                      double regularization, Certificate& certificate) {
  const Index q = theta_in.rows(), r = coordinates_in.cols();
  make_empty(q, r, certificate);
  certificate.finite = theta_in.allFinite() && coordinates_in.allFinite();
  const double theta_size = q > 0 && certificate.finite ? theta_in.diagonal().cwiseAbs().maxCoeff() : 0;
  const double coordinate_size = q > 0 && certificate.finite ? coordinates_in.cwiseAbs().maxCoeff() : 0;
  if (!certificate.finite || theta_size == 0 || coordinate_size == 0) return;

  // Powers of two bring both to order one; everything below is scale-free, and the scaling is exact.
  const int half = exponent_of(theta_size) / 2, other = exponent_of(coordinate_size);
  const Small theta = std::ldexp(1.0, -2 * half) * 0.5 * (theta_in + theta_in.transpose());
  const Small coordinates = std::ldexp(1.0, -other) * coordinates_in;
  const double unit = std::ldexp(1.0, half + other);  // of singular values

  const Root root(theta);
  Svd k;
  certificate.finite = root.finite() && svd(root.c() * coordinates, SvdSize::full, k);
  if (!certificate.finite || k.s(0) <= 0) return;

  const double y_length = std::sqrt(basis.y_squared);
  std::vector<Index> seen, null;
  for (Index i = 0; i < r; ++i) {
    const double s = i < k.s.size() ? k.s(i) : 0.0;
    const double length = basis.length(k.v.col(i));
    const double energy = length > 0 ? (s * unit / length) * (s * unit / length) : 0.0;
    const bool is_null =
        energy <= rule.energy * rule.target_norm || length <= rule.length * y_length || s <= rule.relative * k.s(0);
    (is_null ? null : seen).push_back(i);
    // s_i = ||Y v_i|| sqrt(h_i), and h_i is known up to a quarter of the null limit.
    constexpr double near_null = 250;
    const double limit = rule.energy * rule.target_norm;
    if (!is_null && energy < near_null * limit) certificate.uncertainty += 0.25 * limit * length / std::sqrt(energy);
  }
  certificate.rank = static_cast<Index>(seen.size());
  // Null directions count as zero: s_i there is the root of rounding, and leaving it out keeps F an upper bound.
  certificate.nuclear_norm = unit * k.s(seen).sum();
  certificate.null_directions = k.v(Eigen::all, null);
  if (null.empty()) certificate.condition = (k.s(0) / k.s(r - 1)) * (k.s(0) / k.s(r - 1));

  SmallVector weights = SmallVector::Ones(certificate.rank);
  if (regularization > 0) {
    const double delta = regularization * k.s.squaredNorm() / static_cast<double>(r);
    const SmallVector s = k.s(seen);
    weights = s.cwiseQuotient((s.cwiseAbs2().array() + delta).sqrt().matrix());
  }
  const Small directions = k.v(Eigen::all, seen);
  certificate.seen = std::ldexp(1.0, -half) * root.solve(k.u(Eigen::all, seen));
  certificate.m = certificate.seen * weights.asDiagonal() * directions.transpose();
  measure_certificate(theta_in, coordinates_in, directions * directions.transpose(), certificate);
}

void measure_certificate(const Small& theta, const Small& coordinates, const Small& projector,
                         Certificate& certificate) {
  const Small theta_m = theta * certificate.m;
  const Small product = certificate.m.transpose() * theta_m;
  const Small gram = 0.5 * (product + product.transpose());
  SmallVector values;
  certificate.finite = symmetric_eigenvalues(gram, values);
  if (!certificate.finite) return;
  certificate.feasibility = std::sqrt(std::max(0.0, values.maxCoeff()));
  certificate.orthogonality = (gram - projector).norm();
  const double shrink = 1 / std::max(1.0, certificate.feasibility);
  certificate.m *= shrink;
  certificate.gap = std::max(0.0, certificate.nuclear_norm - shrink * theta_m.cwiseProduct(coordinates).sum());
}

}  // namespace itspace
