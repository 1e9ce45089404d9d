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
OperatorProduct<Scalar>::OperatorProduct(TargetRef<Scalar> target, Index rank, Index riders, bool may_extend)
    : target_(target),
      w_(target.dim(), rank + riders),
      extra_(may_extend ? target.dim() : 0, rank + completion_oversampling) {}

template <Storage Scalar>
void OperatorProduct<Scalar>::form(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) {
  image_cols_ = q.cols();
  if (q.cols() > 0) target_.apply(q, w_.leftCols(q.cols()));
  form_again(q, basis, data);
}

template <Storage Scalar>
void OperatorProduct<Scalar>::form_again(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) {
  basis_cols_ = basis.cols;
  extra_cols_ = 0;
  image_cols_ = std::max(image_cols_, basis.cols);
  const auto w = w_.leftCols(basis.cols);
  kernels::gram<Scalar>(q.leftCols(basis.cols), w, data.theta, panels_);
  data.coordinates = basis.r;
  // ||Sigma||_2 >= max_j ||w_j||/||q_j||. The columns of an orthonormal basis have length one.
  SmallVector w_squares, q_squares;
  kernels::column_squares<Scalar>(w, w_squares);
  if (basis.orthonormal) {
    q_squares.setOnes(basis.cols);
  } else {
    kernels::column_squares<Scalar>(q.leftCols(basis.cols), q_squares);
  }
  data.target_norm = 0;
  for (Index j = 0; j < basis.cols; ++j)
    if (q_squares(j) > 0) {
      // Squares overflow where the entries of Sigma pass 1e154; the lengths do not.
      const double length =
          std::isinf(w_squares(j)) ? w.col(j).template cast<double>().stableNorm() : std::sqrt(w_squares(j));
      data.target_norm = std::max(data.target_norm, length / std::sqrt(q_squares(j)));
    }
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
void OperatorProduct<Scalar>::lift(const Small& m, BlockView<Scalar> b) {
  kernels::multiply<Scalar>(w_.leftCols(basis_cols_), m.topRows(basis_cols_), b, panels_);
  if (m.rows() > basis_cols_)
    kernels::multiply<Scalar>(extra_.leftCols(extra_cols_), m.bottomRows(extra_cols_), b, panels_, Write::add);
}

template <Storage Scalar>
double OperatorProduct<Scalar>::null_energy() const {
  return 4 * eps_of<Scalar>;
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
  SmallVector squares;
  kernels::column_squares<Scalar>(a, squares);
  data.target_norm = squares.size() > 0 ? squares.maxCoeff() : 0;  // ||Sigma||_2 >= ||T'q||^2
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
void FactorProduct<Scalar>::lift(const Small& m, BlockView<Scalar> b) {
  // T (Q_A m): the n x r block goes where T'Q was, which is not needed any more.
  const auto polar = a_.leftCols(m.cols());
  kernels::multiply<Scalar>(q_a_.leftCols(basis_a_.cols), m.topRows(basis_a_.cols), polar, panels_);
  if (m.rows() > basis_a_.cols)
    kernels::multiply<Scalar>(extra_.leftCols(extra_cols_), m.bottomRows(extra_cols_), polar, panels_, Write::add);
  target_.apply_factor(polar, b);
}

template <Storage Scalar>
double FactorProduct<Scalar>::null_energy() const {
  return 16 * eps_of<Scalar> * eps_of<Scalar>;
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

template class OperatorProduct<float>;
template class OperatorProduct<double>;
template class FactorProduct<float>;
template class FactorProduct<double>;
template class RootTarget<float>;
template class RootTarget<double>;

}  // namespace itspace
