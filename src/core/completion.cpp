// SPDX-License-Identifier: Apache-2.0
#include "core/completion.hpp"

#include "core/lapack.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {

template <Storage Scalar>
Index complete(Product<Scalar>& product, const ConstBlockView<Scalar>& q, const Random& random,
               BlockView<Scalar> scratch, ProductData& data, Certificate& certificate) {
  const Small null = certificate.null_directions;
  const Index count = null.cols(), basis_cols = data.theta.rows(), r = null.rows();
  BlockView<Scalar> z = scratch.leftCols(count);
  random.fill_normal<Scalar>(z);
  product.extend(q, z, certificate.seen, data);

  SmallVector energies;
  Small vectors;
  if (!symmetric_eigen(data.theta.bottomRightCorner(count, count), energies, vectors)) return 0;
  // ||Sigma||_2 as seen so far, Z included: a Y in the null space of the target shows nothing of it.
  const double target_norm = std::max(data.target_norm, energies(count - 1));
  const double cut = product.null_energy() * target_norm;
  SmallVector inverse_roots = SmallVector::Zero(count), filled = SmallVector::Zero(count);
  for (Index i = 0; i < count; ++i) {
    if (energies(i) <= cut) continue;
    inverse_roots(i) = 1 / std::sqrt(energies(i));
    filled(i) = 1;
  }
  const Index found = static_cast<Index>(filled.sum());
  if (found == 0) return 0;

  Small m(basis_cols + count, r);
  m.topRows(basis_cols) = certificate.m;
  m.bottomRows(count) = vectors * inverse_roots.asDiagonal() * vectors.transpose() * null.transpose();
  const Small filled_null = null * vectors * filled.asDiagonal();
  const Small projector = Small::Identity(r, r) - null * null.transpose() + filled_null * filled_null.transpose();
  certificate.m = std::move(m);
  measure_certificate(data.theta, data.coordinates, projector, certificate);
  return found;
}

template Index complete<float>(Product<float>&, const ConstBlockView<float>&, const Random&, BlockView<float>,
                               ProductData&, Certificate&);
template Index complete<double>(Product<double>&, const ConstBlockView<double>&, const Random&, BlockView<double>,
                                ProductData&, Certificate&);

}  // namespace itspace
