// SPDX-License-Identifier: Apache-2.0
//
// All steps of the paper's solver on a dense Sigma, or on features, in one launch: nothing comes back to the host
// between them.
//
// Each block of threads, or two of them together, has some rows of Sigma, in shared memory where they fit. A step is
// W = Sigma Y by rows; G = Y'W, summed over blocks in fixed point, so that the order does not matter and the same
// inputs give the same bits; a barrier over the grid; M = G^(-1/2) by products in double, which every block makes for
// itself from the same numbers; the rows of B = W M and of Y+ = (1 - alpha) Y + alpha B; a second barrier. The last
// block logs what the certificate of each iterate is made of, while the next root is found. Of features each cluster
// of blocks has some rows and leaves a part of all of W (features_product.cuh), which are added up after a barrier
// more.
//
// Where a step would be waiting for the most part, it is made in another way (resident_steps.cuh).
//
// For devices of compute capability 9, whose copy engine it needs, and up to 32 columns. Where it meets what it cannot
// certify (a direction at rounding level, a root that does not converge) it stops, and says so.
#pragma once

#include "cuda/kernels.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace itspace::cuda::kernels {

constexpr int most_fused_rank = 32, most_fused_polynomials = 24;

// One of core/polar.hpp.
struct FusedPolynomial {
  double a, b, c, lowest;
};

// Several sequences of them, whose intervals begin at other places, each up to the first where the rest is one step of
// Taylor's: of T, whose eigenvalues are the squares, by one power where a millionth is missing, by two elsewhere.
struct PolynomialLists {
  static constexpr int lists = 3, most = 16;
  static constexpr double left = 5e-5, left_for_one = 1.2e-6;  // of 1 - lowest
  FusedPolynomial of[lists][most] = {};
  int count[lists] = {};
};

template <class T>
struct FusedJob {
  const T* sigma;  // or features: by rows, `stride` apart; both a multiple of 16 bytes
  std::size_t stride;
  int dim, rank, steps;
  const T* start;
  std::size_t start_stride;
  T* best;  // where the best iterate goes
  std::size_t best_stride;
  double alpha;  // in (0, 2)
  double trace;  // of Sigma
  const FusedPolynomial* polynomials;
  int polynomial_count;
  const PolynomialLists* lists;
};

// What one pass showed at an iterate.
struct FusedRow {
  double objective = 0;
  double y_squared = 0;           // ||Y||^2
  double b_squared = 0;           // ||B||^2
  double difference_squared = 0;  // ||B - Y||^2
  double nuclear_norm = 0;        // tr(M'G), M before it was shortened
  double orthogonality = 0;       // ||M'GM - I||_F or a bound of it, likewise
  double asymmetry = 0;           // ||(M'G - GM)/2||_F
  double root_norm_squared = 0;   // ||M||_F^2
  double root_trace = 0;          // tr M
  double doubtful_image = 0;      // ||BM||_F^2
  double g_norm = 0;              // lambda_max(G), at most r^(1/4) or 2.5 times
  double target_norm = 0;         // an estimate of ||Sigma||_2 from below
  double longest_squared = 0;     // ||Y'Y||_F
  int products = 0;               // r x r products that the root took
  bool certifiable = false;
};

struct FusedPlan {
  bool possible = false;
  std::size_t memory_bytes = 0, log_values = 0;
};

// Whether the current device can, and what it takes.
template <class T>
FusedPlan plan_fused(int dim, int rank, int steps);
template <class T>
FusedPlan plan_fused_features(int dim, Index samples, int rank, int steps);

// Launches; `memory` is the device's, `log` pinned memory that the device can write. False where the copy engine cannot
// read this Sigma: nothing was launched then.
template <class T>
bool launch_fused(cudaStream_t stream, const FusedJob<T>& job, unsigned char* memory, double* log);
template <class T>
bool launch_fused_features(cudaStream_t stream, const FusedJob<T>& job, const FeaturesTerms<T>& terms,
                           unsigned char* memory, double* log);

// The rows of iterates 0, 1, ..., once all is done: steps + 1 of them, or up to the first that is not certifiable.
std::vector<FusedRow> read_fused(const double* log, int steps);

}  // namespace itspace::cuda::kernels
