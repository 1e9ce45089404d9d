// SPDX-License-Identifier: Apache-2.0
//
// The product of a features target over some of its rows: what each of several places that hold them adds to a step.
// Exported for the other libraries of this project; not installed.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <type_traits>

namespace itspace {

// out = sum_i (x_i - shift)(x_i - shift)'y over the rows x_i, each read from memory once.
// @pre shift has rows.cols() values.
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API void rows_product(const std::type_identity_t<ConstBlockView<Data>>& rows, const Scalar* shift,
                              const ConstBlockView<Scalar>& y, BlockView<Scalar> out);

}  // namespace itspace
