// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_products.hpp"

#include "kernels/block_ops.hpp"

namespace itspace::kernels {

Small transposed_times(const Small& a, const Small& b) {
  // Below this Eigen is as fast.
  constexpr Index few = Index(20) * 20 * 20;
  if (a.size() * b.cols() < few) return a.transpose() * b;
  // Blocks are stored by rows, small matrices by columns: the block with the memory of b is b', and (a'b)' = b'a.
  Small out(a.cols(), b.cols());
  multiply<double>(ConstBlockView<double>(b.data(), b.cols(), b.rows(), b.rows()), a,
                   BlockView<double>(out.data(), out.cols(), out.rows(), out.rows()));
  return out;
}

Small times(const Small& a, const Small& b) {
  return transposed_times(a.transpose(), b);
}

}  // namespace itspace::kernels
