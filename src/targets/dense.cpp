// SPDX-License-Identifier: Apache-2.0
#include <itspace/targets.hpp>

#include "core/require.hpp"
#include "kernels/block_ops.hpp"

namespace itspace {

template <Storage Scalar, Storage Data>
DenseTarget<Scalar, Data>::DenseTarget(HeldBlock<Data> sigma)
    : sigma_(std::move(sigma)), trace_(sigma_.view().diagonal().template cast<double>().sum()) {
  require(sigma_.rows() == sigma_.cols() && sigma_.rows() > 0, "the covariance is ", sigma_.rows(), " x ",
          sigma_.cols(), "; it must be square and not empty. If its rows are samples, use FeaturesTarget");
}

template <Storage Scalar, Storage Data>
void DenseTarget<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  kernels::symmetric_gemm<Scalar, Data>(sigma_.view(), y, out);
}

template class DenseTarget<float>;
template class DenseTarget<double>;
template class DenseTarget<double, float>;

}  // namespace itspace
