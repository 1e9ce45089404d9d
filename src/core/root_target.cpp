// SPDX-License-Identifier: Apache-2.0
#include "core/root_target.hpp"

#include "core/lapack.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"

#include <limits>

namespace itspace {

template <Storage Scalar>
RootTarget<Scalar>::RootTarget(CountedTarget<HostSpace<Scalar>>& target) {
  const Index d = target.dim();
  constexpr Index most = 8192;
  require(d <= most, "route root forms the ", d, " x ", d, " square root of the target; its limit is d = ", most,
          ". Use route qr, which needs no root");
  Block<Scalar> sigma(d, d);
  target.apply(Block<Scalar>::Identity(d, d), sigma);
  trace_ = target.trace();
  const Small entries = sigma.template cast<double>();
  SmallVector values;
  Small vectors;
  if (!symmetric_eigen(0.5 * (entries + entries.transpose()), values, vectors)) {
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

template class RootTarget<float>;
template class RootTarget<double>;

}  // namespace itspace
