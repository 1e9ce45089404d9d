// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lapack.hpp"
#include "core/probe.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {

template <Space S>
Probe<S>::Probe(S& space, Index dim, Index rank, const Random& random)
    : space_(space),
      column_(space.make_block(dim, 1)),
      candidate_(space.make_block(dim, 1)),
      vectors_(Small::Identity(rank + 1, rank + 1)) {
  space_.fill_normal(random, column_);
  carry(column_);
}

template <Space S>
double Probe<S>::measure_gain(const ConstView& q, OperatorProduct<S>& product, const Certificate& certificate,
                              double target_norm, const ConstView& b) {
  const Index cols = certificate.seen.rows(), r = b.cols();
  const View image = product.image();
  const ConstView w = space_.columns(image, 0, cols);
  // z' = z - Q k and Sigma z' = Sigma z - W k, with k = seen seen' W'z.
  const Small k = certificate.seen * (certificate.seen.transpose() * gram(space_, w, column_));
  space_.multiply(space_.columns(q, 0, cols), -k, column_, Write::add);
  space_.copy(space_.columns(image, image.cols() - 1, 1), candidate_);
  space_.multiply(w, -k, candidate_, Write::add);
  const double energy = gram(space_, column_, candidate_)(0, 0);
  // Energy at the rounding of Sigma z shows nothing: Y spans all that z had.
  const double noise = product.energy_noise() * target_norm, rounding = 8 * noise;
  if (!(energy > rounding)) {
    space_.set_zero(candidate_);
    return 0;
  }
  // Short enough beyond doubt, so that the gain is no more than there is.
  space_.scale_columns(candidate_, SmallVector::Constant(1, 1 / std::sqrt(energy + 2 * noise)));

  Small bb, bc, cc;
  const GramRequest<ConstView> requests[] = {{b, bb}, {b, candidate_, bc}, {candidate_, cc}};
  space_.grams(requests);
  Small wide(r + 1, r + 1);
  wide << bb, bc, bc.transpose(), cc;
  SmallVector ascending;
  Small vectors;
  if (!symmetric_eigen(wide, ascending, vectors)) return 0;
  vectors_ = vectors.rowwise().reverse();
  return std::max(0.0, wide(r, r) - ascending(0));
}

template <Space S>
void Probe<S>::swap(const ConstView& y, const ConstView& b, View out) {
  const Index r = b.cols();
  const Small leading = vectors_.leftCols(r);
  lift(b, leading, out);
  Svd polar;
  if (svd(gram(space_, out, y), SvdSize::full, polar)) lift(b, leading * polar.u * polar.v.transpose(), out);
  lift(b, vectors_.rightCols(1), column_);  // what was swapped out is the next probe
  carry(column_);
}

template <Space S>
void Probe<S>::keep() {
  // A candidate of zeros found nothing: the column goes on as it is.
  if (space_.column_norms(candidate_)(0) > 0) space_.copy(candidate_, column_);
  carry(column_);
}

// to = [B, b] v
template <Space S>
void Probe<S>::lift(const ConstView& b, const Small& v, View to) {
  multiply(space_, b, v.topRows(b.cols()), to);
  space_.multiply(candidate_, v.bottomRows(1), to, Write::add);
}

template <Space S>
void Probe<S>::carry(View column) {
  const double length = space_.column_norms(column)(0);
  if (length > 0) space_.scale_columns(column, SmallVector::Constant(1, 1 / length));
}

}  // namespace itspace
