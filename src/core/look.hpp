// SPDX-License-Identifier: Apache-2.0
//
// What one pass shows at an iterate: basis, product, certificate, B, and from them the exact objective. Solvers differ
// in how they come to the product and in what they do next, not in this.
#pragma once

#include "core/product.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {

struct Look {
  Basis basis;
  ProductData data;
  Certificate certificate;
  kernels::BlendNorms norms;  // of Y and B
  double remainder = 0;       // tr Sigma - ||B||^2 >= 0

  // F(Y) = ||B - Y||^2 + (tr Sigma - ||B||^2) - 2 eps, the accurate form: both brackets are nonnegative.
  double objective() const { return std::max(0.0, norms.difference_squared + remainder - 2 * certificate.gap); }

  // The rounding granted to a promise.
  double allowance(double eps, double target_trace) const {
    return 10 * eps * (target_trace + basis.y_squared) + certificate.uncertainty;
  }

  // Where Y sees nothing of the target, neither does the estimate of ||Sigma||_2 from products with it, and rounding
  // would pass for signal. tr Sigma/sqrt(d) is about the size of that rounding in units of eps.
  void note_trace(double target_trace, Index dim) {
    data.target_norm = std::max(data.target_norm, target_trace / std::sqrt(static_cast<double>(dim)));
  }

  // B into `b` by the certificate's coefficients, and the norms. False where B is not finite.
  template <Storage Scalar>
  bool lift(Product<Scalar>& product, const ConstBlockView<Scalar>& y, double target_trace, BlockView<Scalar> b) {
    product.lift(certificate.m, b);
    norms = kernels::blend_norms<Scalar>(y, b);
    remainder = std::max(0.0, target_trace - norms.b_squared);
    return std::isfinite(norms.b_squared) && std::isfinite(target_trace) && certificate.finite;
  }
};

}  // namespace itspace
