// SPDX-License-Identifier: Apache-2.0
#include "core/product.hpp"

#include "core/lapack.hpp"
#include "core/text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

using kernels::Write;

template <Storage Scalar>
constexpr double eps_of = static_cast<double>(std::numeric_limits<Scalar>::epsilon());

Small symmetric_part(const Small& a) {
  return 0.5 * (a + a.transpose());
}

// theta with m more rows and columns, coordinates with m more rows of zero.
void append(const Small& cross, const Small& corner, ProductData& data) {
  const Index q = data.theta.rows(), m = corner.rows(), r = data.coordinates.cols();
  Small theta(q + m, q + m), coordinates = Small::Zero(q + m, r);
  theta.topLeftCorner(q, q) = data.theta;
  theta.topRightCorner(q, m) = cross;
  theta.bottomLeftCorner(m, q) = cross.transpose();
  theta.bottomRightCorner(m, m) = symmetric_part(corner);
  coordinates.topRows(q) = data.coordinates;
  data.theta = std::move(theta);
  data.coordinates = std::move(coordinates);
}

// Scales each column of z to length one.
template <Storage Scalar>
void normalise_columns(BlockView<Scalar> z) {
  SmallVector squares;
  kernels::column_squares<Scalar>(z, squares);
  for (Index j = 0; j < z.cols(); ++j)
    if (squares(j) > 0) z.col(j) *= static_cast<Scalar>(1 / std::sqrt(squares(j)));
}

}  // namespace

template <Storage Scalar>
bool apply_over(TargetRef<Scalar> target, const ConstBlockView<Scalar>& q, BlockView<Scalar> w) {
  w.row(0).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
  target.apply(q, w);
  return w.rows() == 1 || w.row(0).allFinite() || !w.bottomRows(w.rows() - 1).allFinite();
}

template <Storage Scalar>
SmallVector column_lengths(const ConstBlockView<Scalar>& w) {
  SmallVector lengths;
  kernels::column_squares<Scalar>(w, lengths);
  for (Index j = 0; j < w.cols(); ++j)
    lengths(j) = std::isinf(lengths(j)) ? w.col(j).template cast<double>().stableNorm() : std::sqrt(lengths(j));
  return lengths;
}

template <Storage Scalar>
OperatorProduct<Scalar>::OperatorProduct(TargetRef<Scalar> target, Index rank, Index riders, bool may_extend)
    : target_(target),
      w_(target.dim(), rank + riders),
      extra_(may_extend ? target.dim() : 0, rank + completion_oversampling) {}

template <Storage Scalar>
void OperatorProduct<Scalar>::form(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) {
  image_cols_ = q.cols();
  const bool overwritten = q.cols() == 0 || apply_over<Scalar>(target_, q, w_.leftCols(q.cols()));
  form_again(q, basis, data);
  data.overwritten = overwritten;
}

template <Storage Scalar>
void OperatorProduct<Scalar>::form_again(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) {
  basis_cols_ = basis.cols;
  extra_cols_ = 0;
  image_cols_ = std::max(image_cols_, basis.cols);
  const auto w = w_.leftCols(basis.cols);
  kernels::gram<Scalar>(q.leftCols(basis.cols), w, data.theta, panels_);
  data.coordinates = basis.r;
  // A basis that took several rotations is orthonormal to a few digits only.
  data.seen_trace = basis.orthonormal ? (basis.direct ? 1 : 0.99) * data.theta.trace() : 0;
  data.overwritten = true;
  // ||Sigma||_2 >= max_j ||w_j||/||q_j||. The columns of an orthonormal basis have length one.
  kernels::self_gram<Scalar>(w, data.w_gram, panels_);
  SmallVector ratios = data.w_gram.diagonal().cwiseSqrt();
  if (!ratios.allFinite()) ratios = column_lengths<Scalar>(w);  // squares overflow before lengths do
  if (!basis.orthonormal) {
    const SmallVector lengths = column_lengths<Scalar>(q.leftCols(basis.cols));
    ratios = (lengths.array() > 0).select(ratios.cwiseQuotient(lengths), 0.0);
  }
  data.target_norm = ratios.size() > 0 ? ratios.maxCoeff() : 0;
}

template <Storage Scalar>
void OperatorProduct<Scalar>::extend(const ConstBlockView<Scalar>& q, BlockView<Scalar> z, const Small& seen,
                                     ProductData& data) {
  // z <- z - Q seen seen' W'z; a second round removes what rounding of the first left behind.
  const auto basis_q = q.leftCols(basis_cols_);
  const auto w = w_.leftCols(basis_cols_);
  Small cross, corner;
  for (int round = 0; round < 2; ++round) {
    normalise_columns<Scalar>(z);
    kernels::gram<Scalar>(w, z, cross, panels_);
    kernels::multiply<Scalar>(basis_q, -seen * (seen.transpose() * cross), z, panels_, Write::add);
  }
  normalise_columns<Scalar>(z);
  extra_cols_ = z.cols();
  target_.apply(z, extra_.leftCols(extra_cols_));
  kernels::gram<Scalar>(w, z, cross, panels_);
  kernels::gram<Scalar>(z, extra_.leftCols(extra_cols_), corner, panels_);
  append(cross, corner, data);
}

template <Storage Scalar>
void OperatorProduct<Scalar>::lift(const Certificate& certificate, BlockView<Scalar> b) {
  multiply_by<Scalar>(certificate, b, panels_, [&](const Small& c, BlockView<Scalar> out) {
    kernels::multiply<Scalar>(w_.leftCols(basis_cols_), c.topRows(basis_cols_), out, panels_);
    if (c.rows() > basis_cols_)
      kernels::multiply<Scalar>(extra_.leftCols(extra_cols_), c.bottomRows(extra_cols_), out, panels_, Write::add);
  });
}

template <Storage Scalar>
double OperatorProduct<Scalar>::energy_noise() const {
  return 2 * eps_of<Scalar>;
}

template <Storage Scalar>
void OperatorProduct<Scalar>::set_image(const ConstBlockView<Scalar>& sigma_s, const Small& coefficients) {
  image_cols_ = coefficients.cols();
  kernels::multiply<Scalar>(sigma_s, coefficients, w_.leftCols(image_cols_), panels_);
}

template <Storage Scalar>
void OperatorProduct<Scalar>::advance(const Small& x, const ConstBlockView<Scalar>& sigma_b, const Small& x_b) {
  image_cols_ = x.cols();
  const auto next = w_.leftCols(image_cols_);
  kernels::multiply<Scalar>(w_.leftCols(x.rows()), x, next, panels_);
  kernels::multiply<Scalar>(sigma_b, x_b, next, panels_, Write::add);
}

template <Storage Scalar>
FactorProduct<Scalar>::FactorProduct(TargetRef<Scalar> target, Index rank, bool may_extend)
    : target_(target),
      a_(target.factor_cols(), rank),
      q_a_(target.factor_cols(), rank),
      extra_(may_extend ? target.factor_cols() : 0, rank + completion_oversampling) {}

template <Storage Scalar>
void FactorProduct<Scalar>::form(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) {
  extra_cols_ = 0;
  const auto a = a_.leftCols(basis.cols);
  if (basis.cols > 0) target_.apply_factor_transposed(q.leftCols(basis.cols), a);
  make_basis<Scalar>(a, q_a_, basis_a_, panels_);
  if (!basis_a_.finite) {
    data.theta = Small::Constant(1, 1, std::numeric_limits<double>::quiet_NaN());
    data.coordinates = Small::Zero(1, basis.r.cols());
    return;
  }
  const auto q_a = q_a_.leftCols(basis_a_.cols);
  kernels::gram<Scalar>(q_a, q_a, data.theta, panels_);
  data.coordinates = basis_a_.r * basis.r;
  data.w_gram.resize(0, 0);
  SmallVector squares;
  kernels::column_squares<Scalar>(a, squares);
  data.target_norm = squares.size() > 0 ? squares.maxCoeff() : 0;  // ||Sigma||_2 >= ||T'q||^2
  data.seen_trace = (basis.direct ? 1 : 0.99) * squares.sum();
  data.overwritten = true;
}

template <Storage Scalar>
void FactorProduct<Scalar>::extend(const ConstBlockView<Scalar>& /*q*/, BlockView<Scalar> z, const Small& seen,
                                   ProductData& data) {
  extra_cols_ = z.cols();
  const auto q_a = q_a_.leftCols(basis_a_.cols);
  const auto extra = extra_.leftCols(extra_cols_);
  normalise_columns<Scalar>(z);
  target_.apply_factor_transposed(z, extra);
  // T'z <- (I - Q_A seen seen' Q_A') T'z, twice.
  Small cross, corner;
  for (int round = 0; round < 2; ++round) {
    kernels::gram<Scalar>(q_a, extra, cross, panels_);
    kernels::multiply<Scalar>(q_a, -seen * (seen.transpose() * cross), extra, panels_, Write::add);
  }
  kernels::gram<Scalar>(q_a, extra, cross, panels_);
  kernels::gram<Scalar>(extra, extra, corner, panels_);
  append(cross, corner, data);
}

template <Storage Scalar>
void FactorProduct<Scalar>::lift(const Certificate& certificate, BlockView<Scalar> b) {
  // T (Q_A m): the n x r block goes where T'Q was, which is not needed any more.
  const BlockView<Scalar> polar = a_.leftCols(certificate.m.cols());
  multiply_by<Scalar>(certificate, polar, panels_, [&](const Small& c, BlockView<Scalar> out) {
    kernels::multiply<Scalar>(q_a_.leftCols(basis_a_.cols), c.topRows(basis_a_.cols), out, panels_);
    if (c.rows() > basis_a_.cols)
      kernels::multiply<Scalar>(extra_.leftCols(extra_cols_), c.bottomRows(extra_cols_), out, panels_, Write::add);
  });
  target_.apply_factor(polar, b);
}

template <Storage Scalar>
double FactorProduct<Scalar>::energy_noise() const {
  return 4 * eps_of<Scalar> * eps_of<Scalar>;
}

template <Storage Scalar>
RootTarget<Scalar>::RootTarget(TargetRef<Scalar> target) {
  const Index d = target.dim();
  constexpr Index most = 8192;
  require(d <= most, "route root forms the ", d, " x ", d, " square root of the target; its limit is d = ", most,
          ". Use route qr, which needs no root");
  Block<Scalar> sigma(d, d);
  target.apply(Block<Scalar>::Identity(d, d), sigma);
  trace_ = target.trace();
  SmallVector values;
  Small vectors;
  if (!symmetric_eigen(symmetric_part(sigma.template cast<double>()), values, vectors)) {
    root_.setConstant(d, d, std::numeric_limits<Scalar>::quiet_NaN());  // the solver reports not_finite
    return;
  }
  const SmallVector roots = values.cwiseMax(0.0).cwiseSqrt();
  root_ = (vectors * roots.asDiagonal() * vectors.transpose()).template cast<Scalar>();
}

template <Storage Scalar>
void RootTarget<Scalar>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  Block<Scalar> half(root_.rows(), y.cols());
  apply_factor(y, half);
  apply_factor(half, out);
}

template <Storage Scalar>
void RootTarget<Scalar>::apply_factor_transposed(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
  apply_factor(in, out);
}

template <Storage Scalar>
void RootTarget<Scalar>::apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
  kernels::gemm<Scalar>(kernels::Op::plain, Scalar(1), root_, in, Scalar(0), out);
}

template bool apply_over<float>(TargetRef<float>, const ConstBlockView<float>&, BlockView<float>);
template bool apply_over<double>(TargetRef<double>, const ConstBlockView<double>&, BlockView<double>);
template SmallVector column_lengths<float>(const ConstBlockView<float>&);
template SmallVector column_lengths<double>(const ConstBlockView<double>&);
template class OperatorProduct<float>;
template class OperatorProduct<double>;
template class FactorProduct<float>;
template class FactorProduct<double>;
template class RootTarget<float>;
template class RootTarget<double>;

}  // namespace itspace
