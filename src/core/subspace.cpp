// SPDX-License-Identifier: Apache-2.0
#include "core/subspace.hpp"

#include "core/lapack.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <vector>

namespace itspace {

Small orthonormalising_coefficients(Small gram, double drop, Drop kind) {
  const Index cols = gram.cols();
  SmallVector scale = SmallVector::Ones(cols);
  if (kind == Drop::relative) {
    for (Index j = 0; j < cols; ++j) scale(j) = gram(j, j) > 0 ? 1 / std::sqrt(gram(j, j)) : 0.0;
    gram = scale.asDiagonal() * gram * scale.asDiagonal();
  }
  SmallVector values;
  Small vectors;
  if (cols == 0 || !symmetric_eigen(gram, values, vectors)) return Small(cols, 0);
  const double cut = kind == Drop::relative ? drop * values(values.size() - 1) : drop;
  const Index kept = (values.array() > std::max(cut, 0.0)).count();
  Small c = scale.asDiagonal() * vectors.rightCols(kept);
  c *= values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal();
  return c.rowwise().reverse().eval();
}

bool ritz_pairs(const Small& h, const Small& m, Index count, RitzPairs& out) {
  if (!h.allFinite() || !m.allFinite()) return false;
  const Eigen::LLT<Small> llt(m);
  if (llt.info() != Eigen::Success) return false;
  const auto lower = llt.matrixL();
  // L^(-1) h L^(-T)
  const Small half = lower.solve(0.5 * (h + h.transpose()));
  const Small reduced = lower.solve(half.transpose());
  SmallVector ascending;
  Small vectors;
  if (!symmetric_eigen(0.5 * (reduced + reduced.transpose()), ascending, vectors)) return false;
  count = std::min(count, h.rows());
  out.values = ascending.tail(count).reverse();
  out.vectors = llt.matrixU().solve(Small(vectors.rightCols(count).rowwise().reverse()));
  return true;
}

void nystrom_polish(const SmallVector& theta, const Small& k, Index rank, double noise, Polish& out) {
  out = Polish();
  out.a.setZero(theta.size(), rank);
  out.finite = theta.allFinite() && k.allFinite();
  const Index kept = out.finite ? (theta.array() > 2 * noise).count() : 0;  // they are in descending order
  if (kept == 0) return;
  const SmallVector root = (theta.head(kept).array() + noise).rsqrt();
  SmallVector squares;
  Small directions;
  out.finite =
      symmetric_eigen(root.asDiagonal() * k.topLeftCorner(kept, kept) * root.asDiagonal(), squares, directions);
  if (!out.finite) return;
  const Index count = std::min(rank, kept);
  out.a.topLeftCorner(kept, count) = root.asDiagonal() * directions.rightCols(count).rowwise().reverse();
  out.captured = squares.tail(count).cwiseMax(0.0).sum();
}

}  // namespace itspace
