// SPDX-License-Identifier: Apache-2.0
#include "core/basis_impl.hpp"

#include "kernels/small_products.hpp"

#include "core/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();

// Cholesky of the equilibrated Gram matrix, U'U, is trusted while ||U^(-1)|| is at most this: Q'Q = I then holds to its
// square times eps. (Small pivots do not tell: a U with many moderate ones can be worse than one with a small one.)
constexpr double longest_inverse = 1e3;
// From here on R is taken anew from Q and Y: Y - Q U loses ||U^(-1)|| eps.
constexpr double accurate_inverse = 30;

}  // namespace

SmallVector Basis::lengths(const Small& v) const {
  if (orthonormal) return kernels::times(r, v).colwise().norm();
  return v.cwiseProduct(kernels::times(y_gram, v)).colwise().sum().cwiseMax(0.0).cwiseSqrt();
}

SmallVector Basis::lengths_of_columns() const {
  if (orthonormal) return r.colwise().norm();
  return y_gram.diagonal().cwiseMax(0.0).cwiseSqrt();
}

BasisStage make_basis_stage(const Small& gram) {
  const SmallVector lengths = gram.diagonal().cwiseSqrt();
  const SmallVector scale = lengths.cwiseInverse();
  const Small equilibrated = scale.asDiagonal() * gram * scale.asDiagonal();
  Small lower;
  if (lower_cholesky(equilibrated, lower)) {
    const Small inverse = lower_inverse(lower);
    const double length = inverse.norm() / std::sqrt(std::max<double>(1, static_cast<double>(lower.rows())));
    if (length <= longest_inverse)
      return {kernels::transposed(lengths.asDiagonal() * lower), kernels::transposed(inverse * scale.asDiagonal()),
              true, true, length <= accurate_inverse};
  }
  SmallVector values;
  Small vectors;
  if (!symmetric_eigen(equilibrated, values, vectors)) return {{}, {}, false, false, false};
  return {vectors.transpose() * lengths.asDiagonal(), scale.asDiagonal() * vectors, true, false, false};
}

template void make_basis(HostSpace<float>&, const ConstBlockView<float>&, BlockView<float>, Basis&);
template void make_basis(HostSpace<double>&, const ConstBlockView<double>&, BlockView<double>, Basis&);

}  // namespace itspace
