// SPDX-License-Identifier: Apache-2.0
//
// Sweeps of a step that follow each other over the same rows, as one.
#pragma once

#include "kernels/block_ops.hpp"

namespace itspace::kernels {

// The parts of a sweep over the rows of a block: as many whatever is done with each value, so that in the sweeps of a
// step, one after the other, each thread finds its rows in its own cache.
Index parts_for_block(Index rows, Index cols);

// out = a m, and the two norms that a certificate needs of y and out.
template <Storage Scalar>
BlendNorms multiply_and_norms(const ConstBlockView<Scalar>& a, const Small& m, const ConstBlockView<Scalar>& y,
                              BlockView<Scalar> out);

// out = (1 - alpha) y + alpha b, and gram = out'out.
template <Storage Scalar>
void blend_and_gram(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha,
                    BlockView<Scalar> out, Small& gram);

}  // namespace itspace::kernels
