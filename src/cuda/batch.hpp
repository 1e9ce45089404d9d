// SPDX-License-Identifier: Apache-2.0
//
// All steps of the paper's solver on many small dense problems, in one launch: a block of threads for each problem,
// with Sigma in shared memory.
//
// What a step is made of, and what is logged of it, is as in fused.hpp, but that all sums of a problem are made by one
// block, in one order. A covariance that is symmetric up to rounding is averaged with its transpose on its way in. A
// problem with anything else about it (values that are not finite, a direction at rounding level, a root that does not
// converge) is left where it was met, and its log says so.
//
// For compute capability 8 and above, up to 32 columns, and a Sigma that fits into shared memory.
#pragma once

#include "cuda/fused.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace itspace::cuda::kernels {

template <class T>
struct BatchJob {
  const T* sigma;  // `count` of them, dim x dim each
  // As many starts, dim x rank each; or one block for all that is multiplied by Sigma and scaled to ||Y||^2 = tr Sigma.
  const T* start;
  bool is_multiplied;
  T* y;  // the best iterates
  int count, dim, rank, steps;
  double alpha;  // in (0, 2)
  const FusedPolynomial* polynomials;
  int polynomial_count;
};

// Whether the current device takes problems of that size.
template <class T>
bool takes_batch(int dim, int rank);

// What is known of the problems afterwards, in memory of the device.
struct BatchLog {
  FusedRow* rows;  // steps + 1 for each; those behind the first that is not certifiable are not written
  double* traces;  // of each Sigma
};

// Launches. @pre takes_batch.
template <class T>
void launch_batch(cudaStream_t stream, const BatchJob<T>& job, const BatchLog& log);

}  // namespace itspace::cuda::kernels
