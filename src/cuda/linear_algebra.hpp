// SPDX-License-Identifier: Apache-2.0
//
// Products and Cholesky factors of large dense matrices, by cuBLAS and cuSOLVER. The two are not linked: they are
// large, and only distances need them. They are looked for when first asked for: among what the process has loaded
// (PyTorch brings its own), and then where the system finds libraries. Where they are not, std::runtime_error says so.
#pragma once

#include <itspace/block.hpp>
#include <itspace/cuda/device.hpp>

#include "cuda/device_state.hpp"

#include <memory>

namespace itspace::cuda {

// Their calls count in int, and so do we: the values of a square matrix of this dimension, and of no larger one. That
// is 17 GB a matrix; beyond it the host computes.
inline constexpr Index most_square_dim = 46340;

// One for each DeviceState, on its stream; made when first asked for. @pre the device is current, as for all below.
class LinearAlgebra {
 public:
  static LinearAlgebra& of(DeviceState& state);
  explicit LinearAlgebra(cudaStream_t stream);
  ~LinearAlgebra();
  LinearAlgebra(const LinearAlgebra&) = delete;
  LinearAlgebra& operator=(const LinearAlgebra&) = delete;

  // c = op(a) op(b) + beta c for row-major matrices, op(a) m x k and op(b) k x n, rows one after the other.
  void multiply(bool transpose_a, const double* a, bool transpose_b, const double* b, Index m, Index k, Index n,
                double beta, double* c);
  // sum a_i b_i; waits.
  double inner(const double* a, const double* b, Index count);
  // The lower triangle of a row-major d x d matrix becomes that of its Cholesky factor; what is above is left alone.
  // False where the matrix is not numerically definite. Waits.
  bool cholesky(DeviceState& state, double* a, Index d);

 private:
  void *cublas_ = nullptr, *cusolver_ = nullptr;
};

// The diagonal of a row-major d x d matrix of doubles on the device. Waits.
itspace::Block<double> diagonal_of(const Device& device, const double* a, Index d);

}  // namespace itspace::cuda
