// SPDX-License-Identifier: Apache-2.0
//
// The d x d work of the dense methods: products, matrix functions and eigendecompositions from BLAS and LAPACK, on
// Eigen's column-major double matrices. A LAPACK routine that does not converge throws std::runtime_error.
#pragma once

#include <itspace/block.hpp>

namespace itspace::baselines {

enum class Op { plain, transposed };
// op(a) op(b)
Small product(const Small& a, const Small& b, Op op_a = Op::plain, Op op_b = Op::plain);

// w diag(weights) w', symmetric to the last bit, for half the work of a product.
Small weighted_square(const Small& w, const SmallVector& weights);

// r' x r for a symmetric x, symmetric to the last bit.
Small congruence(const Small& r, const Small& x);

// a + a'
Small plus_transpose(const Small& a);

// a = vectors diag(values) vectors', in two halves: the reduction to tridiagonal form gives all eigenvalues, which is
// what an objective needs; the vectors cost twice as much again and are made when asked for.
class SymmetricEigen {
 public:
  SymmetricEigen() = default;
  explicit SymmetricEigen(Small a);  // reads the lower triangle

  const SmallVector& values() const { return values_; }  // ascending
  Small vectors() const;

 private:
  Small reduced_;
  SmallVector diagonal_, off_diagonal_, reflectors_, values_;
};

// Householder with column pivoting: x becomes an orthonormal basis of its columns, as far as they are longer than
// `drop`. Returns their number. Accurate however unequal and dependent the columns are, which a Gram matrix is not.
Index pivoted_basis(Eigen::Ref<Small> x, double drop);

// The stabilisation of appendix D.1, delta = -lambda_min + 1e-8 where lambda_min <= 0 (0 otherwise). An eigenvalue
// below d eps lambda_max is 0 as far as double can tell, whatever sign rounding gave it.
double positive_definite_shift(const SmallVector& ascending_values);

// x plus that shift. A Cholesky factorisation decides; eigenvalues are computed only where it fails.
Small positive_definite(Small x);

// Throws std::invalid_argument unless `matrix` is a finite symmetric d x d matrix, d >= 1.
void check_symmetric(const ConstBlockView<double>& matrix, Index dim, const char* what);

}  // namespace itspace::baselines
