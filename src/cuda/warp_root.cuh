// SPDX-License-Identifier: Apache-2.0
//
// The inverse square root of a 16 x 16 matrix by one warp, in double on the tensor cores, without leaving the
// registers.
//
// A warp holds a matrix as the tensor cores leave it. Which terms of a sum are multiplied at once does not matter, so
// these registers are also what they take: as the left factor, and, row for column, as the right one. A B' is then two
// instructions and no exchange.
#pragma once

#include "cuda/fused_device.cuh"

namespace itspace::cuda::kernels {

// of[j][i] is entry (g + 8 (i/2), 8 j + 2 t + i%2), g = lane/4, t = lane%4.
struct WarpMatrix {
  double of[2][4];
};

struct WarpPlace {
  int row, column;
};
__device__ __forceinline__ WarpPlace warp_place(int lane, int j, int i) {
  return {(lane >> 2) + 8 * (i >> 1), 8 * j + 2 * (lane & 3) + (i & 1)};
}

template <class Visit>
__device__ __forceinline__ void for_each_entry(Visit visit) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) visit(warp_place(lane, j, i), j, i);
}

// a b'.
__device__ __forceinline__ WarpMatrix times_transposed(const WarpMatrix& a, const WarpMatrix& b) {
  WarpMatrix c{};
#pragma unroll
  for (int j = 0; j < 2; ++j)
    // Term 4 k + t of the instruction is column 8 (k/2) + 2 t + k%2.
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
        "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(c.of[j][0]), "+d"(c.of[j][1]), "+d"(c.of[j][2]), "+d"(c.of[j][3])
        : "d"(a.of[0][0]), "d"(a.of[0][2]), "d"(a.of[0][1]), "d"(a.of[0][3]), "d"(a.of[1][0]), "d"(a.of[1][2]),
          "d"(a.of[1][1]), "d"(a.of[1][3]), "d"(b.of[0][2 * j]), "d"(b.of[0][2 * j + 1]), "d"(b.of[1][2 * j]),
          "d"(b.of[1][2 * j + 1]));
  return c;
}

// Rows of `memory` are `stride` apart.
__device__ __forceinline__ void put(const WarpMatrix& a, double* memory, int stride) {
  for_each_entry([&](WarpPlace at, int j, int i) { memory[at.row * stride + at.column] = a.of[j][i]; });
}
__device__ __forceinline__ void put_transposed(const WarpMatrix& a, double* memory, int stride) {
  for_each_entry([&](WarpPlace at, int j, int i) { memory[at.column * stride + at.row] = a.of[j][i]; });
}
__device__ __forceinline__ WarpMatrix get(const double* memory, int stride) {
  WarpMatrix a;
  for_each_entry([&](WarpPlace at, int j, int i) { a.of[j][i] = memory[at.row * stride + at.column]; });
  return a;
}
__device__ __forceinline__ WarpMatrix get_transposed(const double* memory, int stride) {
  WarpMatrix a;
  for_each_entry([&](WarpPlace at, int j, int i) { a.of[j][i] = memory[at.column * stride + at.row]; });
  return a;
}

}  // namespace itspace::cuda::kernels
