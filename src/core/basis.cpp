// SPDX-License-Identifier: Apache-2.0
#include "core/basis.hpp"

#include "core/lapack.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();

// Cholesky is trusted down to this squared pivot of the equilibrated Gram matrix (condition number of Q about 1e4).
constexpr double smallest_pivot_squared = 1e-8;

// Each rotation resolves about eight more digits of the spectrum of Y; double has sixteen.
constexpr int most_rotations = 3;

// Columns are scaled to length one before a rotation. What is shorter than this after it is rounding.
double shortest_column(Index cols) {
  return 32 * eps64 * std::sqrt(static_cast<double>(cols));
}

// Removes from the basis the columns shorter than `shortest` and scales the Gram matrix of the others to unit diagonal.
// Returns their lengths.
SmallVector equilibrate(Small& gram, Basis& basis, double shortest) {
  std::vector<Index> kept;
  for (Index j = 0; j < gram.cols(); ++j)
    if (gram(j, j) > shortest * shortest) kept.push_back(j);
  if (static_cast<Index>(kept.size()) < gram.cols()) {
    gram = Small(gram(kept, kept));
    basis.inverse = Small(basis.inverse(Eigen::all, kept));
    basis.r = Small(basis.r(kept, Eigen::all));
  }
  const SmallVector lengths = gram.diagonal().cwiseSqrt();
  const SmallVector scale = lengths.cwiseInverse();
  gram = scale.asDiagonal() * gram * scale.asDiagonal();
  return lengths;
}

// Q <- Q step_inverse, given that Q = Q_new step.
void compose(Basis& basis, const Small& step, const Small& step_inverse) {
  basis.r = step * basis.r;
  basis.inverse = basis.inverse * step_inverse;
}

// The step Q = Q_new (L' diag(lengths)) where gram = L L'. False where a pivot is too small to be trusted.
bool cholesky_step(const Small& gram, const SmallVector& lengths, Basis& basis) {
  const Eigen::LLT<Small> llt(gram);
  if (llt.info() != Eigen::Success) return false;
  const Small upper = llt.matrixU();
  if (gram.rows() > 0 && upper.diagonal().cwiseAbs2().minCoeff() < smallest_pivot_squared) return false;
  const Small inverse = upper.triangularView<Eigen::Upper>().solve(Small::Identity(upper.rows(), upper.cols()));
  compose(basis, upper * lengths.asDiagonal(), lengths.cwiseInverse().asDiagonal() * inverse);
  return true;
}

// Y'Y and ||Y||^2; false where they are not finite.
template <Storage Scalar>
bool gather_gram(const ConstBlockView<Scalar>& y, Basis& basis, kernels::Panels& panels) {
  kernels::gram<Scalar>(y, y, basis.y_gram, panels);
  basis.y_squared = basis.y_gram.trace();
  basis.finite = basis.y_gram.allFinite();
  return basis.finite;
}

}  // namespace

double Basis::length(const SmallVector& v) const {
  return orthonormal ? (r * v).norm() : std::sqrt(std::max(0.0, v.dot(y_gram * v)));
}

template <Storage Scalar>
void make_basis(const ConstBlockView<Scalar>& y, BlockView<Scalar> q, Basis& basis, kernels::Panels& panels) {
  const Index r = y.cols();
  basis.r.setIdentity(r, r);
  basis.inverse.setIdentity(r, r);
  basis.orthonormal = basis.direct = true;
  basis.cols = 0;
  if (!gather_gram<Scalar>(y, basis, panels)) return;
  Small gram = basis.y_gram;

  // `inverse` is always relative to y, so that Q is computed from y itself and rounded to storage once.
  double shortest = 0;
  for (int rotation = 0;; ++rotation) {
    const SmallVector lengths = equilibrate(gram, basis, shortest);
    if (cholesky_step(gram, lengths, basis)) break;
    basis.direct = false;
    SmallVector values;
    Small vectors;
    symmetric_eigen(gram, values, vectors);
    compose(basis, vectors.transpose() * lengths.asDiagonal(), lengths.cwiseInverse().asDiagonal() * vectors);
    shortest = shortest_column(r);
    if (rotation == most_rotations) break;
    basis.cols = basis.r.rows();
    kernels::multiply<Scalar>(y, basis.inverse, q.leftCols(basis.cols), panels);
    kernels::gram<Scalar>(q.leftCols(basis.cols), q.leftCols(basis.cols), gram, panels);
  }
  basis.cols = basis.r.rows();
  kernels::multiply<Scalar>(y, basis.inverse, q.leftCols(basis.cols), panels);
}

template <Storage Scalar>
void make_scaled_basis(const ConstBlockView<Scalar>& y, BlockView<Scalar> q, Basis& basis, kernels::Panels& panels) {
  const Index r = y.cols();
  basis.orthonormal = false;
  basis.direct = true;
  basis.cols = 0;
  if (!gather_gram<Scalar>(y, basis, panels)) return;
  basis.cols = r;
  int exponent = 0;
  std::frexp(std::sqrt(basis.y_squared), &exponent);
  basis.r = std::ldexp(1.0, exponent) * Small::Identity(r, r);
  basis.inverse = std::ldexp(1.0, -exponent) * Small::Identity(r, r);
  q.leftCols(r) = y * static_cast<Scalar>(std::ldexp(1.0, -exponent));
}

template void make_basis<float>(const ConstBlockView<float>&, BlockView<float>, Basis&, kernels::Panels&);
template void make_basis<double>(const ConstBlockView<double>&, BlockView<double>, Basis&, kernels::Panels&);
template void make_scaled_basis<float>(const ConstBlockView<float>&, BlockView<float>, Basis&, kernels::Panels&);
template void make_scaled_basis<double>(const ConstBlockView<double>&, BlockView<double>, Basis&, kernels::Panels&);

}  // namespace itspace
