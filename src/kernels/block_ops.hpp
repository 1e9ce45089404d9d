// SPDX-License-Identifier: Apache-2.0
//
// The loops over tall blocks. Products of storage with storage go to BLAS as they are, or a panel of rows at a time
// where the data are of a narrower type than the block they multiply; everything that ends in an r x r matrix, or
// multiplies by one, is computed in double a panel of rows at a time, whatever the storage type. Marked for export is
// what the other libraries of this project use; the header is not installed.
#pragma once

#include <itspace/space.hpp>

#include <type_traits>
#include <vector>

namespace itspace::kernels {

enum class Op { plain, transposed };

// c = alpha op(a) b + beta c, in the type of b and c. Where `a` is of another one its rows are converted by panels that
// stay in cache, and multiplied there: its memory is read once, and never copied whole.
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API void gemm(Op op_a, Scalar alpha, const std::type_identity_t<ConstBlockView<Data>>& a,
                      const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar> c);

// c = a b for a symmetric a, in the orientation that BLAS multiplies fastest.
template <Storage Scalar, Storage Data = Scalar>
void symmetric_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const ConstBlockView<Scalar>& b,
                    BlockView<Scalar> c);

// Scratch for the double panels of the functions below; one per thread of work.
class Panels {
 public:
  double* first(Index count) { return reserve(first_, count); }
  double* second(Index count) { return reserve(second_, count); }

 private:
  static double* reserve(std::vector<double>& buffer, Index count) {
    if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
    return buffer.data();
  }
  std::vector<double> first_, second_;
};

// out = a' b, accumulated in double.
template <Storage Scalar>
ITSPACE_API void gram(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, Small& out, Panels& panels);

// out = a' a, the same, for a narrow a that is in cache: no call into BLAS, whose threads cost more than the sum.
template <Storage Scalar>
void self_gram(const ConstBlockView<Scalar>& a, Small& out, Panels& panels);

// out = a m, or out += a m. The two may share their leading columns.
template <Storage Scalar>
ITSPACE_API void multiply(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out, Panels& panels,
                          Write write = Write::assign);

// (sum_i a_ij^2)_j in double.
template <Storage Scalar>
void column_squares(const ConstBlockView<Scalar>& a, SmallVector& out);

// The two norms that a certificate needs of y and b.
template <Storage Scalar>
BlendNorms blend_norms(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b);

// out = (1 - alpha) y + alpha b.
template <Storage Scalar>
void blend(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha, BlockView<Scalar> out);

}  // namespace itspace::kernels
