// SPDX-License-Identifier: Apache-2.0
#include "core/truncation.hpp"

#include "core/lapack.hpp"
#include "core/leading_pairs.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <utility>

namespace itspace {

void check_rank(Index rank, Index dim) {
  require(rank >= 1 && rank <= dim, "rank is ", rank, " and the dimension is ", dim, "; 1 <= rank <= dimension");
}

Dense narrow_factor(const Dense& factor) {
  if (factor.cols() <= factor.rows()) return factor;
  Dense transposed = factor.transpose();
  return qr_triangle(transposed).transpose();
}

Dense leading_part(const Dense& factor, Index rank) {
  if (auto found = leading_part_of(factor, rank)) return std::move(found->part);
  const Dense narrow = narrow_factor(factor);
  Svd parts;
  require_converged(svd(narrow, SvdSize::thin, parts), "singular values of the factor");
  const Index count = std::min(rank, parts.s.size());
  Dense out = Dense::Zero(factor.rows(), rank);
  out.leftCols(count) = parts.u.leftCols(count) * parts.s.head(count).asDiagonal();
  return out;
}

Dense leading_root(Dense& sigma, Index count) {
  Eigen::VectorXd values;
  Dense vectors;
  require_converged(leading_eigenpairs(sigma, count, values, &vectors), "eigenvalues of the covariance");
  return vectors * values.cwiseMax(0.0).cwiseSqrt().asDiagonal();
}

}  // namespace itspace
