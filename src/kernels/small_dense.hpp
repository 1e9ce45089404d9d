// SPDX-License-Identifier: Apache-2.0
//
// What one thread does with small matrices that lie by columns: products, Cholesky factors and inverses of triangles,
// written with Highway for each instruction set. For matrices of a few hundred columns at most, which stay in cache.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// c = scale a op(b) + add_scale c, for rows x inner times inner x cols. `a` is read along its columns, so that there is
// no a'. c shares no memory with a and b but where neither reads what is written.
template <Storage Scalar>
struct SmallProduct {
  Index rows, cols, inner;
  const Scalar* a;
  Index a_stride;
  const Scalar* b;
  Index b_stride;
  bool b_transposed;
  Scalar* c;
  Index c_stride;
  Scalar scale = 1, add_scale = 0;
  bool lower = false;  // only what is on and below the diagonal is wanted; above it anything may be written
};
// Sums over so many columns of `a` are made in one go, and added up after.
inline constexpr Index small_product_run = 128;
void small_product(const SmallProduct<double>& product);
void small_product(const SmallProduct<float>& product);

// The lower triangle of `a` (n x n) becomes the L with LL' = a; what is above it is not touched. False where there is
// none, or a number is not finite.
bool small_cholesky(Index n, double* a, Index stride);
// inverse = l^(-1), lower triangles both; above its diagonal `inverse` becomes zero.
void small_lower_inverse(Index n, const double* l, Index l_stride, double* inverse, Index inverse_stride);

// out = a', for a rows x cols matrix.
void small_transpose(Index rows, Index cols, const double* a, Index a_stride, double* out, Index out_stride);
void small_transpose(Index rows, Index cols, const float* a, Index a_stride, float* out, Index out_stride);

// The largest |value| of so many; NaN where one is not finite.
double small_largest(Index count, const double* values);

// out = factor (a + b')/2 for a rows x cols `a`; all columns are `stride` apart.
void small_symmetric_part(Index rows, Index cols, const double* a, const double* b, Index stride, double factor,
                          double* out);
// What (a - b')/2 has of squares, and as its largest |value|.
struct SmallAsymmetry {
  double squares, largest;
};
SmallAsymmetry small_asymmetry(Index rows, Index cols, const double* a, const double* b, Index stride);

// out = factor values, in single precision.
void small_to_single(Index count, const double* values, double factor, float* out);
// out = values - factor single.
void small_subtract_single(Index count, const double* values, double factor, const float* single, double* out);

// y = a'x and z = a y, for a rows x cols matrix.
void small_power(Index rows, Index cols, const double* a, const double* x, double* y, double* z);

}  // namespace itspace::kernels
