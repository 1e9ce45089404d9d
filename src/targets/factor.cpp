// SPDX-License-Identifier: Apache-2.0
#include <itspace/targets.hpp>

#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/scratch.hpp"

namespace itspace {

using kernels::Op;

template <Storage Scalar, Storage Data>
FactorTarget<Scalar, Data>::FactorTarget(HeldBlock<Data> factor) : factor_(std::move(factor)) {
  require(factor_.rows() > 0 && factor_.cols() > 0, "the factor is ", factor_.rows(), " x ", factor_.cols(),
          "; it must have at least one row and one column");
  SmallVector squares;
  kernels::column_squares<Data>(factor_.view(), squares);
  trace_ = squares.sum();
}

template <Storage Scalar, Storage Data>
void FactorTarget<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  BlockView<Scalar> inner = kernels::scratch_block<Scalar, kernels::Scratch::inner>(factor_.cols(), y.cols());
  apply_factor_transposed(y, inner);
  apply_factor(inner, out);
}

template <Storage Scalar, Storage Data>
void FactorTarget<Scalar, Data>::apply_factor_transposed(const ConstBlockView<Scalar>& in,
                                                         BlockView<Scalar> out) const {
  kernels::gemm<Scalar, Data>(Op::transposed, Scalar(1), factor_.view(), in, Scalar(0), out);
}

template <Storage Scalar, Storage Data>
void FactorTarget<Scalar, Data>::apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
  kernels::gemm<Scalar, Data>(Op::plain, Scalar(1), factor_.view(), in, Scalar(0), out);
}

template class FactorTarget<float>;
template class FactorTarget<double>;
template class FactorTarget<double, float>;

}  // namespace itspace
