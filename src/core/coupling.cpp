// SPDX-License-Identifier: Apache-2.0
#include "core/coupling.hpp"

#include "core/lapack.hpp"
#include "core/require.hpp"
#include "core/truncation.hpp"

#include <utility>

namespace itspace {

void check_same_dimension(Eigen::Index a, Eigen::Index b) {
  require(a == b, "the two sides have dimensions ", a, " and ", b, "; a distance needs them equal");
}

Coupling couple(const Dense& a_in, const Dense& b_in) {
  check_same_dimension(a_in.rows(), b_in.rows());
  Coupling coupling;
  Dense a = narrow_factor(a_in), b = narrow_factor(b_in);
  coupling.first_is_wide = a.cols() >= b.cols();
  if (!coupling.first_is_wide) std::swap(a, b);
  // polar(b'a) with orthonormal rows, so that all of b is coupled even where b'a is rank-deficient.
  Svd parts;
  const Dense product = product_transposed(b, a);
  require(product.allFinite(), "the product of the two factors is beyond the largest number; scale both to order one");
  require_converged(svd(product, SvdSize::thin, parts), "singular values of the factors' product");
  const Dense b_transposed = b.transpose(), v_transposed = parts.v.transpose();
  coupling.turned = product_transposed(product_transposed(parts.u, b_transposed), v_transposed);
  coupling.wide = std::move(a);
  return coupling;
}

}  // namespace itspace
