// SPDX-License-Identifier: Apache-2.0
#include "core/subspace.hpp"

#include "kernels/small_dense.hpp"
#include "kernels/small_products.hpp"
#include "kernels/small_sweeps.hpp"

#include "core/lapack.hpp"
#include "core/polar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

// Of a positive definite gram = LL', from below: 1 - ||gram - I||, and 1/||gram^(-1)|| with gram^(-1) = L^(-T) L^(-1),
// whose eigenvalues are those of L^(-1) L^(-T). `squared_norm`: of gram.
double least_eigenvalue_bound(const Small& gram, double squared_norm, const Small& lower_inverted) {
  const auto diagonal = gram.diagonal().array();
  const double off = squared_norm - diagonal.square().sum() + (diagonal - 1).square().sum();
  Small inverse;
  kernels::outer_square(lower_inverted, inverse);
  return std::max(1 - std::sqrt(std::max(0.0, off)), 1 / std::sqrt(kernels::squared_norm(inverse)));
}

}  // namespace

Small orthonormalising_coefficients(Small gram, double drop, Drop kind) {
  const Index cols = gram.cols();
  if (cols == 0) return Small(cols, 0);
  SmallVector scale = SmallVector::Ones(cols);
  if (kind == Drop::relative) {
    for (Index j = 0; j < cols; ++j) scale(j) = gram(j, j) > 0 ? 1 / std::sqrt(gram(j, j)) : 0.0;
    for (Index j = 0; j < cols; ++j) gram.col(j).array() *= scale(j) * scale.array();
  }
  // Where no eigenvalue can be at most the limit, Cholesky's triangle spans the same.
  Small lower;
  const double squared_norm = kernels::squared_norm(gram);
  if (std::isfinite(squared_norm) && lower_cholesky(gram, lower)) {
    const Small inverse = lower_inverse(lower);
    const double norm = std::sqrt(squared_norm), limit = kind == Drop::relative ? drop * norm : drop;
    const double rounding = static_cast<double>(cols) * std::numeric_limits<double>::epsilon() * norm;
    if (least_eigenvalue_bound(gram, squared_norm, inverse) > limit + 100 * rounding) {
      Small coefficients = kernels::transposed(inverse);
      if (kind == Drop::relative) coefficients = scale.asDiagonal() * coefficients;
      return coefficients;
    }
  }
  SmallVector values;
  Small vectors;
  if (!few_leading_eigenpairs(gram, cols, values, vectors)) return Small(cols, 0);
  const double cut = kind == Drop::relative ? drop * values(0) : drop;
  const Index kept = (values.array() > std::max(cut, 0.0)).count();
  Small c = scale.asDiagonal() * vectors.leftCols(kept);
  c *= values.head(kept).cwiseSqrt().cwiseInverse().asDiagonal();
  return c;
}

Small remaining_directions(const Small& c, const Small& gram, double drop) {
  const Small t = orthonormalising_coefficients(gram - kernels::transposed_times(c, c), drop, Drop::absolute);
  Small all(c.rows() + t.rows(), t.cols());
  all << -kernels::times(c, t), t;
  return all;
}

Small new_directions(const Small& c, const Small& gram, double drop, double rounding) {
  const Small first = orthonormalising_coefficients(gram, drop, Drop::relative);
  Small turn = remaining_directions(kernels::times(c, first), energies(gram, first), rounding);
  Small all(c.rows() + gram.rows(), turn.cols());
  all << turn.topRows(c.rows()), kernels::times(first, turn.bottomRows(first.cols()));
  return all;
}

double left_squared(const Small& c, const Small& gram, const Small& t, const Small& a) {
  // x beyond s has the Gram matrix g; q'x a = t'g a, and a - t (q'x a) is what q leaves of a.
  const Small g = gram - kernels::transposed_times(c, c);
  const Small left = a - kernels::times(t, kernels::transposed_times(t, kernels::times(g, a)));
  return std::max(0.0, left.cwiseProduct(kernels::times(g, left)).sum());
}

Small columns_beyond(const Small& c, const Small& m, Index first, Index count, double drop, Small* turn_of_x) {
  // Cholesky's or eigenvectors' rounding, stretched by what may be as short as `drop`; a second round takes it out.
  constexpr double fine = 1e-4;
  Small turn = remaining_directions(kernels::transposed_times(c, m.middleCols(first, count)),
                                    m.block(first, first, count, count), drop);
  Small x = kernels::times(c, turn.topRows(c.cols()));
  x.middleRows(first, count) += turn.bottomRows(count);
  if (drop < fine && x.cols() > 0) {
    const Small image = kernels::times(m, x);
    const Small again =
        remaining_directions(kernels::transposed_times(c, image), kernels::transposed_times(x, image), drop);
    const Small of_c = again.topRows(c.cols()), of_x = again.bottomRows(x.cols());
    x = kernels::times(c, of_c) + kernels::times(x, of_x);
    turn = kernels::times(turn, of_x);
    turn.topRows(c.cols()) += of_c;
  }
  if (turn_of_x != nullptr) *turn_of_x = std::move(turn);
  return x;
}

Small energies_beyond(const SmallVector& values, const Small& h, const Small& turn) {
  const Small a = turn.topRows(values.size()), t = turn.bottomRows(h.rows());
  Small all = kernels::transposed_times(t, kernels::times(h, t));
  all -= kernels::transposed_times(a, values.asDiagonal() * a);
  return all;
}

Small energies(const Small& h, const Small& x) {
  return kernels::transposed_times(x, kernels::times(h, x));
}

namespace {

// For m = I + off, off being rounding of storage, m^(-1/2) is I - off/2, and h - off h/2 - h off/2 is what it makes of
// h. Single precision is enough for what is so small: h is brought to order one for its range.
bool pairs_near_identity(const Small& h, const Small& off, double size, Index count, RitzPairs& out) {
  using Single = kernels::SmallOf<float>;
  const Index n = h.rows();
  const double unit = size > 0 ? std::ldexp(1.0, -std::clamp(std::ilogb(size), -1000, 1000)) : 1.0;
  Single single_off(n, n), single(n, n), moved;
  Small reduced(n, n), symmetric;
  kernels::small_to_single(off.size(), off.data(), 1, single_off.data());
  kernels::small_to_single(h.size(), h.data(), unit, single.data());
  kernels::multiply_into(single_off, single, moved);
  kernels::small_subtract_single(h.size(), h.data(), 1 / unit, moved.data(), reduced.data());
  kernels::symmetric_part(reduced, 1, symmetric);  // of h - off h
  if (!few_leading_eigenpairs(symmetric, count, out.values, reduced)) return false;
  single.resize(n, reduced.cols());
  kernels::small_to_single(reduced.size(), reduced.data(), 0.5, single.data());
  kernels::multiply_into(single_off, single, moved);
  out.vectors.resize(n, reduced.cols());
  kernels::small_subtract_single(reduced.size(), reduced.data(), 1, moved.data(), out.vectors.data());
  return true;
}

}  // namespace

bool ritz_pairs(const Small& h, const Small& m, Index count, RitzPairs& out) {
  const double size = kernels::largest_entry(h);
  if (!std::isfinite(size)) return false;
  Small off = m;
  off.diagonal().array() -= 1;
  if (kernels::squared_norm(off) <= static_cast<double>(m.rows()) * std::numeric_limits<double>::epsilon())
    return pairs_near_identity(h, off, size, count, out);
  if (!kernels::all_finite(m)) return false;
  Small symmetric, vectors;
  kernels::symmetric_part(h, 1, symmetric);
  Small lower;
  if (!lower_cholesky(m, lower)) return false;
  // L^(-1) h L^(-T)
  const Small inverse = lower_inverse(lower);
  const Small reduced = kernels::times_transposed(kernels::times(inverse, symmetric), inverse);
  if (!few_leading_eigenpairs(0.5 * (reduced + kernels::transposed(reduced)), count, out.values, vectors)) return false;
  out.vectors = kernels::transposed_times(inverse, vectors);
  return true;
}

Small turned_closest(const Small& a, const Small& inner) {
  Small turn;
  return closest_orthogonal(kernels::transposed_times(a, inner), turn) ? kernels::times(a, turn) : a;
}

// m^(-1) = 2 I - m to the square of that rounding.
Small coordinates_of(const Small& m, const Small& along) {
  Small found = kernels::times(m, along);
  found = 2 * along - found;
  return found;
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
