// SPDX-License-Identifier: Apache-2.0
//
// The operations on tall blocks. Products of storage with storage are computed in the type of the blocks; everything
// that ends in an r x r matrix, or multiplies by one, in double, whatever the storage type. They are loops of our own,
// over all threads (see strips.hpp and pool.hpp); only products of storage with blocks of many columns go to BLAS,
// which is made for them. Marked for export is what the other libraries of this project use; the header is not
// installed.
#pragma once

#include <itspace/space.hpp>

#include "kernels/strips.hpp"

#include <type_traits>

namespace itspace::kernels {

enum class Op { plain, transposed };

// c = alpha op(a) b + beta c, in the type of b and c. `a` may be of another type: its memory is read once, and never
// copied whole.
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API void gemm(Op op_a, Scalar alpha, const std::type_identity_t<ConstBlockView<Data>>& a,
                      const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar> c);

// c = a b for a symmetric a, of which the upper triangle is read, or all of it.
template <Storage Scalar, Storage Data = Scalar>
void symmetric_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const ConstBlockView<Scalar>& b,
                    BlockView<Scalar> c);

// c = sum_i f_i^2 (a_i - s)(a_i - s)' b over the rows a_i of `a`, each read from memory once. `shift` may be null.
template <Storage Scalar, Storage Data = Scalar>
void squared_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const Scalar* shift, const RowFactors& factors,
                  const ConstBlockView<Scalar>& b, BlockView<Scalar> c);

// c = alpha op(a - 1 s') b + beta c.
template <Storage Scalar, Storage Data = Scalar>
void shifted_gemm(Op op_a, Scalar alpha, const std::type_identity_t<ConstBlockView<Data>>& a, const Scalar* shift,
                  const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar> c);

// x <- scale (x - from) + to + scale ((x - from) basis) update for the rows x of `samples`. basis: d x m, update: m x
// d, m at most most_strip_columns.
template <Storage Scalar>
void map_rows(Scalar scale, const Scalar* from, const Scalar* to, const ConstBlockView<Scalar>& basis,
              const ConstBlockView<Scalar>& update, BlockView<Scalar> samples);

// Whether no value is infinite or NaN.
template <Storage Scalar>
bool all_finite(const ConstBlockView<Scalar>& a);

// All of the Gram matrices, in one sweep, accumulated in double.
template <Storage Scalar>
ITSPACE_API void grams(std::span<const GramRequest<ConstBlockView<Scalar>>> requests);

// out = a m, or out += a m. The two may share columns.
template <Storage Scalar>
ITSPACE_API void multiply(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out,
                          Write write = Write::assign);

// The same in the type of the blocks, where m has so many columns that this is faster. `out` shares none with `a`.
template <Storage Scalar>
void multiply_roughly(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out);

// (sum_i a_ij^2)_j in double.
template <Storage Scalar>
void column_squares(const ConstBlockView<Scalar>& a, SmallVector& out);

// The two norms that a certificate needs of y and b.
template <Storage Scalar>
BlendNorms blend_norms(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b);

// out = (1 - alpha) y + alpha b.
template <Storage Scalar>
void blend(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha, BlockView<Scalar> out);

// out = a - b diag(factors).
template <Storage Scalar>
void subtract_scaled(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, const SmallVector& factors,
                     BlockView<Scalar> out);

// to = from.
template <Storage Scalar>
void copy(const ConstBlockView<Scalar>& from, BlockView<Scalar> to);

// Column j of the block times factors(j).
template <Storage Scalar>
void scale_columns(const SmallVector& factors, BlockView<Scalar> block);

}  // namespace itspace::kernels
