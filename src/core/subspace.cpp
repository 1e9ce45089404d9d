// SPDX-License-Identifier: Apache-2.0
#include "core/subspace.hpp"

#include "kernels/small_products.hpp"

#include "core/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace {
namespace {

// Of a positive definite gram = LL', from below: 1 - ||gram - I||, and 1/||gram^(-1)|| with gram^(-1) = L^(-T) L^(-1),
// whose eigenvalues are those of L^(-1) L^(-T).
double least_eigenvalue_bound(const Small& gram, const Small& lower_inverted) {
  const double near_one = 1 - (gram - Small::Identity(gram.rows(), gram.cols())).norm();
  Small inverse;
  kernels::outer_square(lower_inverted, inverse);
  return std::max(near_one, 1 / inverse.norm());
}

}  // namespace

Small orthonormalising_coefficients(Small gram, double drop, Drop kind) {
  const Index cols = gram.cols();
  SmallVector scale = SmallVector::Ones(cols);
  if (kind == Drop::relative) {
    for (Index j = 0; j < cols; ++j) scale(j) = gram(j, j) > 0 ? 1 / std::sqrt(gram(j, j)) : 0.0;
    gram = scale.asDiagonal() * gram * scale.asDiagonal();
  }
  if (cols == 0) return Small(cols, 0);
  // Where no eigenvalue can be at most the limit, Cholesky's triangle spans the same.
  Small lower;
  if (gram.allFinite() && lower_cholesky(gram, lower)) {
    const Small inverse = lower_inverse(lower);
    const double limit = kind == Drop::relative ? drop * gram.norm() : drop;
    const double rounding = static_cast<double>(cols) * std::numeric_limits<double>::epsilon() * gram.norm();
    if (least_eigenvalue_bound(gram, inverse) > limit + 100 * rounding)
      return kernels::transposed(inverse * scale.asDiagonal());
  }
  SmallVector values;
  Small vectors;
  if (!symmetric_eigen(gram, values, vectors)) return Small(cols, 0);
  const double cut = kind == Drop::relative ? drop * values(values.size() - 1) : drop;
  const Index kept = (values.array() > std::max(cut, 0.0)).count();
  Small c = scale.asDiagonal() * vectors.rightCols(kept);
  c *= values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal();
  return c.rowwise().reverse().eval();
}

Small remaining_directions(const Small& c, const Small& gram, double drop) {
  const Small t = orthonormalising_coefficients(gram - kernels::transposed_times(c, c), drop, Drop::absolute);
  Small all(c.rows() + t.rows(), t.cols());
  all << -kernels::times(c, t), t;
  return all;
}

bool ritz_pairs(const Small& h, const Small& m, Index count, RitzPairs& out) {
  if (!h.allFinite() || !m.allFinite()) return false;
  Small lower;
  if (!lower_cholesky(m, lower)) return false;
  // L^(-1) h L^(-T)
  const Small inverse = lower_inverse(lower);
  const Small half = kernels::times(inverse, 0.5 * (h + kernels::transposed(h)));
  const Small reduced = kernels::times_transposed(half, inverse);
  Small vectors;
  if (!few_leading_eigenpairs(0.5 * (reduced + kernels::transposed(reduced)), count, out.values, vectors)) return false;
  out.vectors = kernels::transposed_times(inverse, vectors);
  return true;
}

void nystrom_polish(const SmallVector& theta, const Small& k, Index rank, double noise, Polish& out) {
  out = Polish();
  out.a.setZero(theta.size(), rank);
  out.finite = theta.allFinite() && k.allFinite();
  const Index kept = out.finite ? (theta.array() > 2 * noise).count() : 0;  // they are in descending order
  if (kept == 0) return;
  const SmallVector root = (theta.head(kept).array() + noise).rsqrt();
  const Index count = std::min(rank, kept);
  SmallVector squares;
  Small directions;
  out.finite = few_leading_eigenpairs(root.asDiagonal() * k.topLeftCorner(kept, kept) * root.asDiagonal(), count,
                                      squares, directions);
  if (!out.finite) return;
  out.a.topLeftCorner(kept, count) = root.asDiagonal() * directions;
  out.captured = squares.cwiseMax(0.0).sum();
}

}  // namespace itspace
