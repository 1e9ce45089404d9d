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

// Cholesky of the equilibrated Gram matrix, U'U, is trusted while ||U^(-1)|| is at most this: Q'Q = I then holds to its
// square times eps. (Small pivots do not tell: a U with many moderate ones can be worse than one with a small one.)
constexpr double longest_inverse = 1e3;
// From here on R is taken anew from Q and Y: Y - Q U loses ||U^(-1)|| eps.
constexpr double accurate_inverse = 30;

// Each rotation resolves about eight more digits of the spectrum of Y; double has sixteen.
constexpr int most_rotations = 6;

// Columns are scaled to length one before a rotation. What is shorter than this after it is rounding.
double shortest_column(Index cols) {
  return 32 * eps64 * std::sqrt(static_cast<double>(cols));
}

// The columns worth keeping: longer than `shortest`.
std::vector<Index> long_columns(const Small& gram, double shortest) {
  std::vector<Index> kept;
  for (Index j = 0; j < gram.cols(); ++j)
    if (gram(j, j) > shortest * shortest) kept.push_back(j);
  return kept;
}

// One step Q = Q_new step on the kept columns of Q; Q_new = Q(:, kept) inverse.
struct StageStep {
  Small step, inverse;
  bool trusted;   // by Cholesky, which ends the sequence; else a rotation to the eigenvectors of the Gram matrix
  bool accurate;  // Q_new step is Q to rounding
};

StageStep make_stage(const Small& gram) {
  const SmallVector lengths = gram.diagonal().cwiseSqrt();
  const SmallVector scale = lengths.cwiseInverse();
  const Small equilibrated = scale.asDiagonal() * gram * scale.asDiagonal();
  const Eigen::LLT<Small> llt(equilibrated);
  if (llt.info() == Eigen::Success) {
    const Small upper = llt.matrixU();
    const Small inverse = upper.triangularView<Eigen::Upper>().solve(Small::Identity(upper.rows(), upper.cols()));
    const double length = inverse.norm() / std::sqrt(std::max<double>(1, static_cast<double>(upper.rows())));
    if (length <= longest_inverse)
      return {upper * lengths.asDiagonal(), scale.asDiagonal() * inverse, true, length <= accurate_inverse};
  }
  SmallVector values;
  Small vectors;
  symmetric_eigen(equilibrated, values, vectors);
  return {vectors.transpose() * lengths.asDiagonal(), scale.asDiagonal() * vectors, false, false};
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

  // Each stage starts from the block of the one before, so that Y = Q R holds to rounding whatever the condition
  // number: a rotation makes graded columns, which storage keeps to their own relative accuracy.
  double shortest = 0;
  for (int stage = 0; stage <= most_rotations; ++stage) {
    const std::vector<Index> kept = long_columns(gram, shortest);
    const StageStep step = make_stage(gram(kept, kept));
    Small from_all = Small::Zero(gram.cols(), step.inverse.cols());  // zero rows for the columns that are dropped
    from_all(kept, Eigen::all) = step.inverse;
    basis.cols = step.inverse.cols();
    if (stage == 0) {
      kernels::multiply<Scalar>(y, from_all, q.leftCols(basis.cols), panels);
    } else {
      kernels::multiply<Scalar>(q.leftCols(gram.cols()), from_all, q.leftCols(basis.cols), panels);
    }
    basis.r = step.step * basis.r(kept, Eigen::all);
    basis.inverse = basis.inverse * from_all;
    if (step.trusted && stage == 0 && step.accurate) return;
    if (step.trusted) break;
    basis.direct = false;
    shortest = shortest_column(r);
    kernels::gram<Scalar>(q.leftCols(basis.cols), q.leftCols(basis.cols), gram, panels);
  }
  // R <- R + Q'(Y - QR), in r x r data.
  Small inner;
  kernels::gram<Scalar>(q.leftCols(basis.cols), q.leftCols(basis.cols), gram, panels);
  kernels::gram<Scalar>(q.leftCols(basis.cols), y, inner, panels);
  basis.r += inner - gram * basis.r;
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
