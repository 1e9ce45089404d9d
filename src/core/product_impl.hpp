// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/basis_impl.hpp"
#include "core/product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace itspace {
namespace product_detail {

template <Space S>
constexpr double eps_of = static_cast<double>(std::numeric_limits<typename S::Scalar>::epsilon());

// theta with m more rows and columns, coordinates with m more rows of zero.
inline void append(const Small& cross, const Small& corner, ProductData& data) {
  const Index q = data.theta.rows(), m = corner.rows(), r = data.coordinates.cols();
  Small theta(q + m, q + m), coordinates = Small::Zero(q + m, r);
  theta.topLeftCorner(q, q) = data.theta;
  theta.topRightCorner(q, m) = cross;
  theta.bottomLeftCorner(m, q) = cross.transpose();
  theta.bottomRightCorner(m, m) = 0.5 * (corner + corner.transpose());
  coordinates.topRows(q) = data.coordinates;
  data.theta = std::move(theta);
  data.coordinates = std::move(coordinates);
}

// Scales each column of z to length one; a column of zeros stays.
template <Space S>
void normalise_columns(S& space, typename S::View z) {
  SmallVector factors = space.column_norms(z);
  for (double& factor : factors) factor = factor > 0 ? 1 / factor : 1;
  space.scale_columns(z, factors);
}

// out = [x, extra] m for the m of a certificate, which has the rows of x alone where nothing was added by extend().
template <Space S>
void multiply_extended(S& space, const Certificate& certificate, const typename S::ConstView& x,
                       const typename S::ConstView& extra, typename S::View out) {
  if (certificate.by_products && certificate.m.rows() == x.cols()) {  // every direction is far above its rounding
    space.multiply_roughly(x, certificate.m, out);
    return;
  }
  multiply_by(space, certificate, out, [&](const Small& c, typename S::View to) {
    multiply(space, x, c.topRows(x.cols()), to);
    if (c.rows() > x.cols()) space.multiply(extra, c.bottomRows(extra.cols()), to, Write::add);
  });
}

}  // namespace product_detail

template <Space S>
OperatorProduct<S>::OperatorProduct(RunContext<S>& run, Index rank, Index riders, bool may_extend)
    : space_(run.space),
      target_(&run.target),
      w_(target_->make_image(target_->dim(), rank + riders)),
      extra_(space_.make_block(may_extend ? target_->dim() : 0, rank + completion_oversampling)) {}

template <Space S>
void OperatorProduct<S>::form(const ConstView& q, const Basis& basis, ProductData& data) {
  image_cols_ = q.cols();
  if (q.cols() > 0) target_->apply(q, image());
  form_again(q, basis, data);
  data.overwritten = kernels::all_finite(data.theta) || !space_.is_poisoned(image());
}

template <Space S>
void OperatorProduct<S>::form_again(const ConstView& q, const Basis& basis, ProductData& data) {
  basis_cols_ = basis.cols;
  extra_cols_ = 0;
  image_cols_ = std::max(image_cols_, basis.cols);
  const ConstView w = space_.columns(w_, 0, basis.cols);
  const GramRequest<ConstView> requests[] = {
      {space_.columns(q, 0, basis.cols), w, data.theta, GramSymmetry::nearly_symmetric}, {w, data.w_gram}};
  const bool few = basis.cols <= most_for_w_gram;
  space_.grams(std::span(requests, few ? 2 : 1));
  kernels::copy(basis.r, data.coordinates);
  // A basis that took several rotations is orthonormal to a few digits only.
  data.seen_trace = basis.orthonormal ? (basis.direct ? 1 : 0.99) * data.theta.trace() : 0;
  data.overwritten = true;
  // ||Sigma||_2 >= max_j ||w_j||/||q_j||. The columns of an orthonormal basis have length one.
  SmallVector ratios;
  if (few) {
    ratios = data.w_gram.diagonal().cwiseSqrt();
  } else {
    data.w_gram.resize(0, 0);
  }
  if (!few || !ratios.allFinite()) ratios = space_.column_norms(w);  // squares overflow before lengths do
  if (!basis.orthonormal) {
    const SmallVector lengths = basis.inverse.diagonal().cwiseProduct(basis.y_gram.diagonal().cwiseSqrt());
    ratios = (lengths.array() > 0).select(ratios.cwiseQuotient(lengths), 0.0);
  }
  data.target_norm = ratios.size() > 0 ? ratios.maxCoeff() : 0;
}

template <Space S>
void OperatorProduct<S>::extend(const ConstView& q, View z, const Small& seen, ProductData& data) {
  // z <- z - Q seen seen' W'z; a second round removes what rounding of the first left behind.
  const ConstView basis_q = space_.columns(q, 0, basis_cols_), w = space_.columns(w_, 0, basis_cols_);
  for (int round = 0; round < 2; ++round) {
    product_detail::normalise_columns(space_, z);
    space_.multiply(basis_q, -seen * (seen.transpose() * gram(space_, w, z)), z, Write::add);
  }
  product_detail::normalise_columns(space_, z);
  extra_cols_ = z.cols();
  const View image_of_z = space_.columns(extra_, 0, extra_cols_);
  space_.set_zero(image_of_z);  // hardly ever used: its memory is not touched before
  target_->apply(z, image_of_z);
  Small cross, corner;
  const GramRequest<ConstView> requests[] = {{w, z, cross}, {z, image_of_z, corner}};
  space_.grams(requests);
  product_detail::append(cross, corner, data);
}

template <Space S>
void OperatorProduct<S>::complete_data(ProductData& data) {
  if (data.w_gram.size() == 0) data.w_gram = gram(space_, space_.columns(w_, 0, basis_cols_));
}

template <Space S>
void OperatorProduct<S>::lift(const Certificate& certificate, View b) {
  product_detail::multiply_extended<S>(space_, certificate, space_.columns(w_, 0, basis_cols_),
                                       space_.columns(extra_, 0, extra_cols_), b);
}

template <Space S>
double OperatorProduct<S>::energy_noise() const {
  return 2 * product_detail::eps_of<S>;
}

template <Space S>
void OperatorProduct<S>::set_image(const ConstView& sigma_q) {
  image_cols_ = sigma_q.cols();
  space_.copy(sigma_q, image());
}

template <Space S>
void OperatorProduct<S>::advance(const Small& x, const ConstView& sigma_b, const Small& x_b) {
  image_cols_ = x.cols();
  multiply(space_, space_.columns(w_, 0, x.rows()), x, image());
  space_.multiply(sigma_b, x_b, image(), Write::add);
}

template <Space S>
FactorProduct<S>::FactorProduct(RunContext<S>& run, Index rank, bool may_extend)
    : space_(run.space),
      target_(run.target),
      a_(target_.make_image(target_.factor_cols(), rank)),
      q_a_(space_.make_block(target_.factor_cols(), rank)),
      extra_(space_.make_block(may_extend ? target_.factor_cols() : 0, rank + completion_oversampling)) {}

template <Space S>
void FactorProduct<S>::form(const ConstView& q, const Basis& basis, ProductData& data) {
  extra_cols_ = 0;
  const View a = space_.columns(a_, 0, basis.cols);
  if (basis.cols > 0) target_.apply_factor_transposed(space_.columns(q, 0, basis.cols), a);
  make_basis(space_, a, q_a_, basis_a_);
  if (!basis_a_.finite) {
    data.theta = Small::Constant(1, 1, std::numeric_limits<double>::quiet_NaN());
    data.coordinates = Small::Zero(1, basis.r.cols());
    data.overwritten = !space_.is_poisoned(a);
    return;
  }
  const ConstView q_a = space_.columns(q_a_, 0, basis_a_.cols);
  data.theta = gram(space_, q_a);
  data.coordinates = basis_a_.r * basis.r;
  data.w_gram.resize(0, 0);
  const SmallVector squares = basis_a_.y_gram.diagonal();          // ||T'q_j||^2
  data.target_norm = squares.size() > 0 ? squares.maxCoeff() : 0;  // ||Sigma||_2 is no less
  data.seen_trace = (basis.direct ? 1 : 0.99) * squares.sum();
  data.overwritten = true;
}

template <Space S>
void FactorProduct<S>::extend(const ConstView& /*q*/, View z, const Small& seen, ProductData& data) {
  extra_cols_ = z.cols();
  const ConstView q_a = space_.columns(q_a_, 0, basis_a_.cols);
  const View extra = space_.columns(extra_, 0, extra_cols_);
  product_detail::normalise_columns(space_, z);
  space_.set_zero(extra);
  target_.apply_factor_transposed(z, extra);
  // T'z <- (I - Q_A seen seen' Q_A') T'z, twice.
  for (int round = 0; round < 2; ++round)
    space_.multiply(q_a, -seen * (seen.transpose() * gram(space_, q_a, extra)), extra, Write::add);
  Small cross, corner;
  const GramRequest<ConstView> requests[] = {{q_a, extra, cross}, {extra, corner}};
  space_.grams(requests);
  product_detail::append(cross, corner, data);
}

template <Space S>
void FactorProduct<S>::lift(const Certificate& certificate, View b) {
  // T (Q_A m): the n x r block goes where T'Q was, which is not needed any more.
  const View polar = space_.columns(a_, 0, certificate.m.cols());
  product_detail::multiply_extended<S>(space_, certificate, space_.columns(q_a_, 0, basis_a_.cols),
                                       space_.columns(extra_, 0, extra_cols_), polar);
  target_.apply_factor(polar, b);
}

template <Space S>
double FactorProduct<S>::energy_noise() const {
  return 4 * product_detail::eps_of<S> * product_detail::eps_of<S>;
}

}  // namespace itspace
