// SPDX-License-Identifier: Apache-2.0
//
// The random probe: one column that rides along in each pass and looks for what Y cannot see.
//
// A start orthogonal to a leading eigenvector of Sigma has a full-rank Gram matrix and a perfect certificate, and stays
// away from it for good. The probe z is multiplied by Sigma with Q (no extra pass), made Sigma-orthogonal to Y, and
// gives b = Sigma z/(z'Sigma z)^(1/2), one more column of the Nystrom factor. With the r leading directions V of [B,
// b],
//
//     F([B, b] V) <= tr Sigma - ||[B, b] V||^2,
//
// so a swap to [B, b] V promises ||B - Y||^2 + (||[B, b] V||^2 - ||B||^2) - 2 eps. It is made when that is more than
// the plain step promises. Otherwise b is the next probe: a power iteration on what is left of the target.
#pragma once

#include "core/product.hpp"

namespace itspace {

template <Space S>
class Probe {
 public:
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  Probe(S& space, Index dim, Index rank, const Random& random);

  // The column to carry in the next pass, d x 1, of length one.
  ConstView column() const { return column_; }

  // Looks at Sigma z (the last column of product.image()) and B. Returns by how much ||[B, b] V||^2 exceeds ||B||^2.
  double measure_gain(const ConstView& q, OperatorProduct<S>& product, const Certificate& certificate,
                      double target_norm, const ConstView& b);

  // out = [B, b] V, turned to be as close to y as the gauge allows. Call after measure_gain(); changes the column
  // carried.
  void swap(const ConstView& y, const ConstView& b, View out);
  void keep();  // no swap

 private:
  void lift(const ConstView& b, const Small& v, View to);
  void carry(View column);  // scaled to length one, unless it is nothing

  S& space_;
  typename S::Block column_, candidate_;
  Small vectors_;  // (r + 1) x (r + 1), the leading directions first
};

}  // namespace itspace
