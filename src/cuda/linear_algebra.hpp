// SPDX-License-Identifier: Apache-2.0
//
// Products and Cholesky factors of large dense matrices, by cuBLAS and cuSOLVER. The two are not linked: they are
// large, and only distances need them. They are looked for when first asked for: among what the process has loaded
// (PyTorch brings its own), and then where the system finds libraries. Where they are not, std::runtime_error says so.
#pragma once

#include <itspace/block.hpp>
#include <itspace/cuda/device.hpp>

#include "cuda/device_state.hpp"

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <vector>

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
  // The lower triangle of each row-major d x d matrix becomes that of its Cholesky factor; what is above is left alone.
  // False where one is not numerically definite. A factor is a chain of small kernels that leaves most of the device
  // idle, so they are computed side by side. Waits.
  bool cholesky(DeviceState& state, std::initializer_list<double*> matrices, Index d);

 private:
  // cuSOLVER on a stream; but for the first one, the stream is its own.
  struct Solver {
    void* handle = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t reached = nullptr;
    void make_on(cudaStream_t of_state, bool own);
    void release(bool own) noexcept;
  };
  Solver& solver(DeviceState& state, std::size_t which);

  void* cublas_ = nullptr;
  std::vector<Solver> solvers_;
};

// The diagonal of a row-major d x d matrix of doubles on the device. Waits.
itspace::Block<double> diagonal_of(const Device& device, const double* a, Index d);

}  // namespace itspace::cuda
