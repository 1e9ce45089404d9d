// SPDX-License-Identifier: Apache-2.0
//
// What the blocks of resident_steps.cuh tell each other, and what the warps of one share.
#pragma once

#include "cuda/cluster_product.cuh"
#include "cuda/fused_steps.cuh"

namespace itspace::cuda::kernels {
namespace {

constexpr int resident_rank = 16, resident_rows = 16, resident_boxes_of_warp = 4;
constexpr int resident_most_blocks = 160;
constexpr int resident_pass_rows = cluster_blocks * resident_rows;

// A number and the pass that it is of: 1, 2, ... It is written and read whole.
struct alignas(16) Dated {
  double value;
  unsigned long long date;
};
[[maybe_unused]] __device__ __forceinline__ void say(Dated& to, double value, unsigned date) {
  asm volatile("{\n.reg .b128 both;\nmov.b128 both, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], both;\n}" ::"l"(&to),
               "l"(__double_as_longlong(value)), "l"(static_cast<unsigned long long>(date))
               : "memory");
}
// Several at once: they are on their way together. Zeros where from[n] is null.
template <int N>
__device__ __forceinline__ void hear(const Dated* const (&from)[N], const unsigned (&dates)[N], double (&values)[N]) {
  bool waits;
  do {
    long long value[N];
    unsigned long long seen[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      value[n] = 0;
      seen[n] = dates[n];
      if (from[n])
        asm volatile("{\n.reg .b128 both;\nld.relaxed.gpu.global.b128 both, [%2];\nmov.b128 {%0, %1}, both;\n}"
                     : "=l"(value[n]), "=l"(seen[n])
                     : "l"(from[n])
                     : "memory");
    }
    waits = false;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      waits |= seen[n] != dates[n];
      values[n] = __longlong_as_double(value[n]);
    }
  } while (waits);
}

// The numbers that are added up over all blocks: the upper half of G and of Y'Y, column by column; the diagonal of W'W;
// ||B||^2, ||B - Y||^2, ||BM||^2. Who adds up a number may be a pass behind the others, so that each has two places.
struct Spoken {
  static constexpr int pairs = resident_rank * (resident_rank + 1) / 2;
  static constexpr int g = 0, yy = pairs, ww = 2 * pairs, norms = ww + resident_rank, values = norms + norm_count;
  // Looked at by all blocks at once, each at one of several copies: a line of memory serves one of them at a time.
  static constexpr int copies = 16;
  struct Place {
    Dated parts[values][resident_most_blocks], sums[copies][values];
  } places[2];
  unsigned rows_made[resident_most_blocks][4];  // iterates whose rows lie in y, of each warp that makes them
  double start_squares[resident_most_blocks];
  float y[2][resident_most_blocks * resident_rows * resident_rank];  // by lane_place()
};

struct ResidentArguments {
  CUtensorMap sigma;
  int dim, boxes_per_block, rank, steps;
  const float* start;
  float* best;
  std::size_t start_stride, best_stride;
  Spoken* spoken;
  double* log;  // [steps + 1][log_scalars]
  double alpha, growth, trace, least_norm;
  PolynomialLists polynomials;
};

constexpr int resident_stride = m_stride<resident_rank>;
using SmallMatrix = double[resident_rank * resident_stride];

// What is found of a root: M = scale m.
struct ResidentRoot {
  double scale, orthogonality;  // what ||M'GM - I||_F may be
  int now, products;            // m is shared.m[now]
  bool converged;
};

struct ResidentShared {
  alignas(16) float partial[2 * cluster_warps * resident_rows * resident_rank];
  // g and y of the last passes, too. Y, W and B are this block's rows.
  alignas(16) SmallMatrix g[2], w, y[3], m[2], u[2], t, s, b, scratch;
  FusedPolynomial polynomials[PolynomialLists::lists][PolynomialLists::most];
  double sums[cluster_warps][4], heard[Spoken::values - Spoken::yy];
  double y_squared, longest_squared, target_squared;
  double logged[log_scalars];
  double best_objective;
  ResidentRoot root;
  float scale;      // of G: lambda_max(scale^2 G/unit) <= 1
  float excess[4];  // ||T - I||_F^2, by tiles
  int list, first;  // of the polynomials to begin with
  Ended ended;
  bool is_best;
  unsigned long long arrived, resident;
  unsigned long long rest_heard;  // by the lanes of the first warp
};

// Which thread this is.
struct ResidentPlace {
  int thread, warp, lane, block, blocks;
  int quad, tile_i, tile_j;  // of a product by four warps: the first four make one, the others another
  bool leads;
  int at;                 // of the thread's two entries, side by side
  double on_diagonal[2];  // 1 where it is

  __device__ ResidentPlace()
      : thread(static_cast<int>(threadIdx.x)),
        warp(thread >> 5),
        lane(thread & 31),
        block(static_cast<int>(blockIdx.x)),
        blocks(static_cast<int>(gridDim.x)),
        quad(warp & 3),
        tile_i(quad >> 1),
        tile_j(quad & 1),
        leads(warp < 4) {
    const int i = 8 * tile_i + (lane >> 2), j = 8 * tile_j + 2 * (lane & 3);
    at = i * resident_stride + j;
    on_diagonal[0] = i == j ? 1.0 : 0.0;
    on_diagonal[1] = i == j + 1 ? 1.0 : 0.0;
  }
};

// Two entries side by side, (8 i + lane/4, 8 j + 2 (lane%4)) the first, of op(a) op(b): one 8 x 8 tile by a warp.
template <bool a_transposed, bool b_transposed>
__device__ __forceinline__ double2 tile_product(const double* a, const double* b, int i, int j) {
  constexpr int ld = resident_stride;
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  double av[4], bv[4], c[2] = {0, 0}, d[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    av[k] = a_transposed ? a[(4 * k + t) * ld + 8 * i + g] : a[(8 * i + g) * ld + 4 * k + t];
    bv[k] = b_transposed ? b[(8 * j + g) * ld + 4 * k + t] : b[(4 * k + t) * ld + 8 * j + g];
  }
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    multiply_double_tile(c, av[k], bv[k]);
    multiply_double_tile(d, av[k + 1], bv[k + 1]);
  }
  return {c[0] + d[0], c[1] + d[1]};
}

template <class T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(~0u, v, offset);
  return v;
}

// The sum over all blocks of what they say of a number, for all of them, by one warp: in one order.
[[maybe_unused]] __device__ inline void add_up(Spoken& spoken, const ResidentPlace& of, int value, unsigned date) {
  constexpr int of_lane = resident_most_blocks / 32;
  Spoken::Place& place = spoken.places[date & 1];
  const Dated* from[of_lane];
  unsigned dates[of_lane];
  double parts[of_lane], sum = 0;
#pragma unroll
  for (int n = 0; n < of_lane; ++n) {
    const int block = of.lane + 32 * n;
    from[n] = block < of.blocks ? &place.parts[value][block] : nullptr;
    dates[n] = date;
  }
  hear(from, dates, parts);
#pragma unroll
  for (const double part : parts) sum += part;
  sum = warp_sum(sum);
  if (of.lane < Spoken::copies) say(place.sums[of.lane][value], sum, date);
}
// Of the numbers from `first` on those that are this block's to add up, by the last three warps.
[[maybe_unused]] __device__ inline void add_up_own(Spoken& spoken, const ResidentPlace& of, int first, int end,
                                                   unsigned date) {
  for (int v = first + of.block + of.blocks * (7 - of.warp); v < end; v += 3 * of.blocks) add_up(spoken, of, v, date);
}
// Says the entries on and above the diagonal of tile `which` of three of this block's part of a symmetric matrix.
[[maybe_unused]] __device__ inline void say_tile(Spoken& spoken, const ResidentPlace& of, int first, int which,
                                                 double2 c, unsigned date) {
  const int i = (which == 2 ? 8 : 0) + (of.lane >> 2), j = (which == 0 ? 0 : 8) + 2 * (of.lane & 3);
  auto* const parts = spoken.places[date & 1].parts + first;
  if (i <= j) say(parts[j * (j + 1) / 2 + i][of.block], c.x, date);
  if (i <= j + 1) say(parts[(j + 1) * (j + 2) / 2 + i][of.block], c.y, date);
}

}  // namespace
}  // namespace itspace::cuda::kernels
