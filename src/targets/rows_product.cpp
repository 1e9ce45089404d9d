// SPDX-License-Identifier: Apache-2.0
#include "targets/rows_product.hpp"

#include "kernels/block_ops.hpp"

namespace itspace {

template <Storage Scalar, Storage Data>
void rows_product(const std::type_identity_t<ConstBlockView<Data>>& rows, const Scalar* shift,
                  const ConstBlockView<Scalar>& y, BlockView<Scalar> out) {
  if (rows.rows() == 0) {
    out.setZero();
    return;
  }
  const double one = 1;
  kernels::squared_gemm<Scalar, Data>(rows, shift, {&one, false}, y, out);
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                    \
  template void rows_product<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&, const Scalar*, \
                                           const ConstBlockView<Scalar>&, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
