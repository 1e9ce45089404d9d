// SPDX-License-Identifier: Apache-2.0
//
// What one pass shows at an iterate: basis, product, certificate, B, and from them the exact objective. Solvers differ
// in how they come to the product and in what they do next, not in this.
#pragma once

#include <itspace/trace.hpp>

#include "core/product.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace itspace {

struct EvaluatedPoint {
  Basis basis;
  ProductData data;
  Certificate certificate;
  std::shared_ptr<CertificateWork> certificate_work = make_certificate_work();
  BlendNorms norms;      // of Y and B
  double remainder = 0;  // tr Sigma - ||B||^2 >= 0
  double doubt = 0;      // of what is promised: promise_doubt

  // F(Y). The same as ||B - Y||^2 + (tr Sigma - ||B||^2) - 2 eps, but not through B, which is rounded to storage and,
  // where it was completed, doubtful in directions that F does not see.
  double objective(double target_trace) const { return objective_of(certificate, basis.y_squared, target_trace); }

  // By how much tr(B'Y), of the B that was lifted, misses the tr(Q'Sigma^(1/2) Y) that the certificate measured.
  double inconsistency() const {
    const double inner = 0.5 * (norms.b_squared + basis.y_squared - norms.difference_squared);
    return std::abs(inner - (certificate.nuclear_norm - certificate.gap));
  }

  double resolution(const StorageRounding& storage, double target_trace) const {
    return resolution_of(certificate, basis.y_squared, target_trace, storage);
  }

  // Where Y sees nothing of the target, neither does the estimate of ||Sigma||_2 from products with it, and rounding
  // would pass for signal. tr Sigma/sqrt(d) is about the size of that rounding in units of eps.
  void note_trace(double target_trace, Index dim) {
    data.target_norm = std::max(data.target_norm, target_trace / std::sqrt(static_cast<double>(dim)));
  }

  // Which directions a route shows nothing of. `of_products`: Product::energy_noise() of the product that ran, times
  // how much more than a fresh one it is rounded.
  NullRule null_rule(Route route, double of_products, double eps, Index dim) const {
    NullRule rule;
    // The root of a dense Sigma has the rounding of Sigma's own energies in it.
    rule.of_roots = route == Route::factor;
    rule.of_columns = route == Route::gram;
    rule.noise = data.target_norm * of_products;
    if (route == Route::root) rule.noise *= static_cast<double>(dim);
    rule.length = 4 * eps;
    rule.single_precision = eps > std::numeric_limits<double>::epsilon();
    // Rounding of the singular values: of their squares where G itself was formed, of themselves elsewhere.
    rule.relative = route == Route::gram ? std::sqrt(30 * eps64) : 30 * eps64;
    return rule;
  }

  // B into `b` by the certificate's coefficients, and the norms. False where B is not finite.
  template <Space S>
  bool lift(S& space, Product<S>& product, const typename S::ConstView& y, double target_trace, typename S::View b) {
    product.lift(certificate, b);
    norms = space.blend_norms(y, b);
    remainder = std::max(0.0, target_trace - norms.b_squared);
    return std::isfinite(norms.b_squared) && std::isfinite(target_trace) && certificate.finite;
  }

  // ||B v_i|| of that B. None for products with T, which leave no doubt: X = Q_A is orthonormal, and B is T times it.
  template <Space S>
  SmallVector images(S& space, Product<S>& product, const typename S::ConstView& b) {
    // The directions of a certificate by products are those of the columns.
    if (certificate.by_products && data.w_gram.size() == 0) return space.column_norms(b);
    product.complete_data(data);
    return data.w_gram.size() > 0 ? image_lengths(data.w_gram, certificate) : SmallVector();
  }
  // @pre the certificate is one by products
  template <Space S>
  double joint_doubt(S& space, const typename S::ConstView& b) const {
    return joint_promise_doubt(gram(space, b), basis, certificate);
  }
};

}  // namespace itspace
