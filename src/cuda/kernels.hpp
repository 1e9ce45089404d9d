// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the device, as functions that launch them: plain pointers and sizes in, nothing waited for. They are
// compiled by nvcc, which sees no Eigen; everything that calls them is compiled by the host's compiler. Each throws
// std::runtime_error where a launch is refused.
//
// Same inputs, same bits: how sums are cut into parts depends on the sizes alone, and parts are added in one order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace itspace::cuda::kernels {

using Index = std::ptrdiff_t;

// Row-major: element (i, j) is data[i stride + j].
template <class T>
struct In {
  const T* data;
  Index rows, cols, stride;
};
template <class T>
struct Out {
  T* data;
  Index rows, cols, stride;
};

// Throws where the device cannot run these kernels: it was compiled for others.
void check_compiled_for_this_device();

// --- Sums over rows, in double. Rows are cut into parts; each part leaves `count` sums at `partials`, part by part,
// and add_parts() adds them up.

// How many parts rows are cut into where `tiles` blocks of threads share each part.
Index parts_of(Index rows, Index tiles);

struct Parts {
  const double* partials;
  Index parts, count;
  double* sums;  // count of them; memory of the device, or pinned memory of the host
};
constexpr int most_jobs = 8;
struct PartsList {
  Parts of[most_jobs];
  int jobs;
};
enum class Combine { sum, largest };
void add_parts(cudaStream_t stream, const PartsList& list, Combine combine);

// partials of a'b, a.cols x b.cols in row-major order.
template <class T>
struct GramJob {
  In<T> a, b;
  double* partials;
};
template <class T>
struct GramJobs {
  GramJob<T> of[most_jobs];
  int jobs;
};
Index gram_parts(Index rows, Index a_cols, Index b_cols);
template <class T>
void gram_partials(cudaStream_t stream, const GramJobs<T>& jobs);

// partials of ||b||^2 and ||b - y||^2.
Index blend_parts(Index rows);
template <class T>
void blend_norm_partials(cudaStream_t stream, In<T> y, In<T> b, double* partials);

// partials of sum_i f(x_ij), one for each column.
Index column_parts(Index rows, Index cols);
enum class ColumnSum {
  plain,           // w_i x_ij
  square,          // x_ij^2
  scaled_square,   // (x_ij c_j)^2
  largest,         // |x_ij|: for Combine::largest
  shifted,         // w_i (x_ij - s_j)
  centred_square,  // w_i ((x_ij - s_j) - c_j)^2
};
template <class T>
struct ColumnTerms {
  const double* weights = nullptr;  // w_i; null: all 1
  const double* columns = nullptr;  // c_j
  const T* shift = nullptr;         // s_j; x - s is rounded to T
};
template <class T>
void column_partials(cudaStream_t stream, ColumnSum what, In<T> x, const ColumnTerms<T>& terms, double* partials);

// --- Blocks and small matrices.

// out = a m, or out += a m; m is a.cols x out.cols, row-major, on the device. Rows of `out` may share memory with the
// same rows of `a`. False, and nothing is done, where a row of `a` does not fit on the chip and they do share memory.
template <class T>
bool multiply(cudaStream_t stream, In<T> a, const double* m, Out<T> out, bool add);

// out = (1 - alpha) y + alpha b.
template <class T>
void blend(cudaStream_t stream, In<T> y, In<T> b, double alpha, Out<T> out);
template <class T>
void scale_columns(cudaStream_t stream, const double* factors, Out<T> block);
// out = a - b diag(factors).
template <class T>
void subtract_scaled(cudaStream_t stream, In<T> a, In<T> b, const double* factors, Out<T> out);
template <class T>
void copy(cudaStream_t stream, In<T> from, Out<T> to);
template <class T>
void fill(cudaStream_t stream, Out<T> block, T value);
// flags[0]: row 0 has a value that is not finite; flags[1]: another row has. Both are 0 before.
template <class T>
void find_not_finite(cudaStream_t stream, In<T> block, int* flags);
// Entry (i, j) is the normal number of that key at counter i cols + j: the bits of Random.
template <class T>
void fill_normal(cudaStream_t stream, std::uint64_t key, Out<T> out);

// out_ij <- f (f_i or 1) (out_ij - v_j).
template <class T>
void subtract_row(cudaStream_t stream, const double* v, const double* row_factors, double factor, Out<T> out);
// out_ij <- f (f_i or 1) in_ij.
template <class T>
void scale_rows(cudaStream_t stream, In<T> in, const double* row_factors, double factor, Out<T> out);
// out_ij <- out_ij - factor u_i v_j.
template <class T>
void subtract_product(cudaStream_t stream, const double* u, const double* v, double factor, Out<T> out);
// out_ij <- out_ij + (d_i or d) y_ij.
template <class T>
void add_diagonal(cudaStream_t stream, const double* diagonal, double constant, In<T> y, Out<T> out);

// Of a square matrix, each in the bits of a double: found[0] the largest |a_ij - a_ji|, found[1] the largest |a_ij|
// (NaN where there is one), found[2] the size of the most negative a_ii. All are 0 before.
template <class T>
void covariance_facts(cudaStream_t stream, In<T> a, unsigned long long* found);

// --- Products with the data of targets, in T. Long sums are cut: a term is added to at most 256 before it.

template <class T>
struct ProductJob {
  // op(a - 1 s') b with op(a) m x k: `a` is m x k by rows, or transposed k x m by rows. s may be null.
  const T* a;
  Index a_stride;
  bool transposed;
  const T* shift;
  Index m, k;
  In<T> b;   // k x q
  Out<T> c;  // m x q
  // c = f (f_i or 1) product, or c += that.
  const double* row_factors;
  double factor;
  bool add;
};
// Values of scratch that a product of these sizes needs.
Index product_scratch(Index m, Index k, Index q);
template <class T>
void product(cudaStream_t stream, const ProductJob<T>& job, T* scratch);

// --- out = sigma y for a dense, symmetric sigma of some size, by the copy engine of compute capability 9. False, and
// nothing is launched, on other devices and where rows of sigma do not begin at multiples of 16 bytes.
constexpr Index most_dense_columns = 32, least_dense_dim = 1024;
template <class T>
Index dense_product_scratch(Index dim);  // values
template <class T>
bool dense_product(cudaStream_t stream, const In<T>& sigma, const In<T>& y, const Out<T>& out, T* scratch);

// --- out = sum_i w_i f (z_i - s)(z_i - s)'y - total delta delta'y for the rows z_i of features, which come from memory
// once for each 16 columns of y; in float, by the copy engine and the tensor cores of compute capability 9. False, and
// nothing is launched, elsewhere, and where rows do not begin at multiples of 16 bytes or are too long, or no scale is
// known.
template <class T>
struct FeaturesTerms {
  Index samples;
  const T* shift;         // s
  const T* scale;         // powers of four that bring (z_i - s) to 2^15 at most, column by column; null: not known
  const double* weights;  // w_i; null: all 1
  const double* delta;
  double factor, total;  // f
};
constexpr Index features_columns = 16;
// Bytes; 0 where it cannot be done.
template <class T>
std::size_t features_product_scratch(Index dim, Index samples);
template <class T>
bool features_product(cudaStream_t stream, const In<T>& z, const FeaturesTerms<T>& terms, const In<T>& y,
                      const Out<T>& out, unsigned char* scratch);

// --- Square matrices in double, rows one after the other.
// c = x a + y c + diagonal I. c may be a.
void combine(cudaStream_t stream, double x, const double* a, double y, double diagonal, double* c, Index d);
// What is above the diagonal becomes 0.
void keep_lower(cudaStream_t stream, double* a, Index d);
// out_ij = a_ij - (mean_j or 0).
template <class T>
void widen(cudaStream_t stream, In<T> a, const double* mean, Out<double> out);
// out = (a + a')/2.
template <class T>
void widen_symmetric(cudaStream_t stream, In<T> a, double* out);

}  // namespace itspace::cuda::kernels
