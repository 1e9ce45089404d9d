// SPDX-License-Identifier: Apache-2.0
#include "core/probe.hpp"

#include "core/lapack.hpp"

#include <cmath>

namespace itspace {

using kernels::Write;

template <Storage Scalar>
Probe<Scalar>::Probe(Index dim, Index rank, const Random& random)
    : column_(dim, 1), candidate_(dim, 1), vectors_(Small::Identity(rank + 1, rank + 1)) {
  random.fill_normal<Scalar>(column_);
  column_ /= column_.norm();
}

template <Storage Scalar>
double Probe<Scalar>::look(const ConstBlockView<Scalar>& q, OperatorProduct<Scalar>& product,
                           const Certificate& certificate, double target_norm, const ConstBlockView<Scalar>& b) {
  const Index cols = certificate.seen.rows(), r = b.cols();
  const BlockView<Scalar> image = product.image();
  const auto w = image.leftCols(cols);
  // z' = z - Q k and Sigma z' = Sigma z - W k, with k = seen seen' W'z.
  Small cross, energy;
  kernels::gram<Scalar>(w, column_, cross, panels_);
  const Small k = certificate.seen * (certificate.seen.transpose() * cross);
  kernels::multiply<Scalar>(q.leftCols(cols), -k, column_, panels_, Write::add);
  candidate_ = image.rightCols(1);
  kernels::multiply<Scalar>(w, -k, candidate_, panels_, Write::add);
  kernels::gram<Scalar>(column_, candidate_, energy, panels_);
  // Energy at the rounding of Sigma z shows nothing: Y spans all that z had.
  const double noise = product.energy_noise() * target_norm, rounding = 8 * noise;
  if (!(energy(0, 0) > rounding)) {
    candidate_.setZero();
    return 0;
  }
  // Short enough beyond doubt, so that the gain is no more than there is.
  candidate_ *= static_cast<Scalar>(1 / std::sqrt(energy(0, 0) + 2 * noise));

  Small wide(r + 1, r + 1), part;
  kernels::gram<Scalar>(b, b, part, panels_);
  wide.topLeftCorner(r, r) = part;
  kernels::gram<Scalar>(b, candidate_, part, panels_);
  wide.topRightCorner(r, 1) = part;
  wide.bottomLeftCorner(1, r) = part.transpose();
  kernels::gram<Scalar>(candidate_, candidate_, part, panels_);
  wide(r, r) = part(0, 0);
  SmallVector ascending;
  Small vectors;
  if (!symmetric_eigen(wide, ascending, vectors)) return 0;
  vectors_ = vectors.rowwise().reverse();
  return std::max(0.0, wide(r, r) - ascending(0));
}

template <Storage Scalar>
void Probe<Scalar>::swap(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, BlockView<Scalar> out) {
  const Index r = b.cols();
  const auto lift = [&](const Small& v, BlockView<Scalar> to) {
    kernels::multiply<Scalar>(b, v.topRows(r), to, panels_);
    kernels::multiply<Scalar>(candidate_, v.bottomRows(1), to, panels_, Write::add);
  };
  const Small leading = vectors_.leftCols(r);
  lift(leading, out);
  Small inner;
  kernels::gram<Scalar>(out, y, inner, panels_);
  Svd polar;
  if (svd(inner, SvdSize::full, polar)) lift(leading * polar.u * polar.v.transpose(), out);
  lift(vectors_.rightCols(1), column_);  // what was swapped out is the next probe
  const double length = column_.template cast<double>().norm();
  if (length > 0) column_ *= static_cast<Scalar>(1 / length);
}

template <Storage Scalar>
void Probe<Scalar>::keep() {
  const double length = candidate_.template cast<double>().norm();
  if (length > 0) column_ = candidate_ * static_cast<Scalar>(1 / length);
}

template class Probe<float>;
template class Probe<double>;

}  // namespace itspace
