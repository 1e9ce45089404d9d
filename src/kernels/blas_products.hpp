// SPDX-License-Identifier: Apache-2.0
//
// Products of blocks of many columns, by BLAS: as they are, or a panel of rows at a time where types differ.
#pragma once

#include "kernels/block_ops.hpp"

namespace itspace::kernels {

// See block_ops.hpp.
template <Storage Scalar, Storage Data>
void blas_gemm(Op op_a, Scalar alpha, const ConstBlockView<Data>& a, const Scalar* shift,
               const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar>& c);

}  // namespace itspace::kernels
