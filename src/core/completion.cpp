// SPDX-License-Identifier: Apache-2.0
#include "core/completion.hpp"

#include "core/lapack.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {

template <Storage Scalar>
Index complete(Product<Scalar>& product, const ConstBlockView<Scalar>& q, const Random& random, BlockView<Scalar> z,
               ProductData& data, Certificate& certificate) {
  const Small null = certificate.null_directions;
  const Index count = null.cols(), basis_cols = data.theta.rows(), r = null.rows();
  const Index width = std::min({count + completion_oversampling, z.cols(), z.rows()});
  const BlockView<Scalar> drawn = z.leftCols(width);
  random.fill_normal<Scalar>(drawn);
  product.extend(q, drawn, certificate.seen, data);

  SmallVector energies;
  Small vectors;
  if (!symmetric_eigen(data.theta.bottomRightCorner(width, width), energies, vectors)) return 0;
  // ||Sigma||_2 as seen so far, Z included: a Y in the null space of the target shows nothing of it.
  const double cut = product.null_energy() * std::max(data.target_norm, energies(width - 1));
  const Index found = std::min<Index>(count, (energies.array() > cut).count());
  if (found == 0) return 0;

  // The leading directions of the draw serve as many null directions, in any order: both are arbitrary up to rotation.
  const Small served = null.leftCols(found);
  const SmallVector inverse_roots = energies.tail(found).cwiseSqrt().cwiseInverse();
  Small m(basis_cols + width, r);
  m.topRows(basis_cols) = certificate.m;
  m.bottomRows(width) = vectors.rightCols(found) * inverse_roots.asDiagonal() * served.transpose();
  const Small projector = Small::Identity(r, r) - null * null.transpose() + served * served.transpose();
  certificate.m = std::move(m);
  measure_certificate(data.theta, data.coordinates, projector, certificate);
  return found;
}

template Index complete<float>(Product<float>&, const ConstBlockView<float>&, const Random&, BlockView<float>,
                               ProductData&, Certificate&);
template Index complete<double>(Product<double>&, const ConstBlockView<double>&, const Random&, BlockView<double>,
                                ProductData&, Certificate&);

}  // namespace itspace
