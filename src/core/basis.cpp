// SPDX-License-Identifier: Apache-2.0
#include "core/basis_impl.hpp"

#include "kernels/small_sweeps.hpp"

#include "core/lapack.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace itspace {
namespace {

// Cholesky of the equilibrated Gram matrix, U'U, is trusted while ||U^(-1)|| is at most this: Q'Q = I then holds to its
// square times eps. (Small pivots do not tell: a U with many moderate ones can be worse than one with a small one.)
constexpr double longest_inverse = 1e3;

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
  const auto of = [](const SmallVector& values, const kernels::Range& columns) {
    return values.segment(columns.begin, columns.end - columns.begin).asDiagonal();
  };
  Small equilibrated(gram.rows(), gram.cols()), lower;
  kernels::set_columns(equilibrated, [&](const kernels::Range& columns) {
    return scale.asDiagonal() * kernels::at(gram, columns) * of(scale, columns);
  });
  if (lower_cholesky(equilibrated, lower)) {
    const Small inverse = lower_inverse(lower);
    const double rows = std::max<double>(1, static_cast<double>(lower.rows()));
    const double length = std::sqrt(kernels::squared_norm(inverse) / rows);
    if (length <= longest_inverse) {
      BasisStage made{std::move(equilibrated), {}, true, true, length <= accurate_inverse};
      kernels::transpose_into(lower, made.step);
      made.inverse = std::move(lower);
      kernels::transpose_into(inverse, made.inverse);
      kernels::set_columns(made.step, [&](const kernels::Range& columns) {
        return kernels::at(made.step, columns) * of(lengths, columns);
      });
      kernels::set_columns(made.inverse, [&](const kernels::Range& columns) {
        return scale.asDiagonal() * kernels::at(made.inverse, columns);
      });
      return made;
    }
  }
  SmallVector values;
  Small vectors;
  if (!symmetric_eigen(equilibrated, values, vectors)) return {{}, {}, false, false, false};
  return {vectors.transpose() * lengths.asDiagonal(), scale.asDiagonal() * vectors, true, false, false};
}

void correct_coordinates(const Small& q_y, const Small& q_gram, Basis& basis) {
  basis.r += q_y - kernels::times(q_gram, basis.r);
  basis.exact = false;
}

template void make_basis(HostSpace<float>&, const ConstBlockView<float>&, BlockView<float>, Basis&);
template void make_basis(HostSpace<double>&, const ConstBlockView<double>&, BlockView<double>, Basis&);

}  // namespace itspace
