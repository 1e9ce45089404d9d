// SPDX-License-Identifier: Apache-2.0
//
// What warps do with a box of features, 32 columns of some groups of eight rows, for features_product.cuh: both
// products are made transposed, so that the 16 columns of Y, P and W are the 16 rows that a tensor core multiplies.
//
// Each number is split into two halves of 11 digits, x = high + low, and high·high + high·low + low·high is summed: of
// a product 2^-21 is lost at most, about what float32 loses. Halves reach from 2^-24 to 2^16 only. So features are
// shifted and scaled, (z_ij - s_j) c_j, with powers of four c_j that bring each column to at most 2^15: what is below
// 2^-38 of the largest number of a column is lost. Y and P are scaled likewise where they are split.
//
// Boxes come as the copy engine writes them: rows of 128 bytes, whose 16-byte units are exchanged by the number of the
// row modulo 8. The warp that projects leaves them split: of eight columns the high halves in one unit, the low ones in
// the next, where the tensor cores' own loads turn rows into columns. A lane is 4 g + t.
#pragma once

#include "cuda/cluster_product.cuh"

#include <cuda_fp16.h>

namespace itspace::cuda::kernels {

// c += a b, a 16 x 16, b 16 x 8.
__device__ __forceinline__ void multiply_halves(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers side by side, the first in the lower half of a word.
__device__ __forceinline__ unsigned halves_of(float first, float second) {
  const __half2 both = __floats2half2_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&both);
}
__device__ __forceinline__ void split_pair(float first, float second, unsigned& high, unsigned& low) {
  const __half2 rounded = __floats2half2_rn(first, second);
  const float2 back = __half22float2(rounded);
  high = *reinterpret_cast<const unsigned*>(&rounded);
  low = halves_of(first - back.x, second - back.y);
}

// A power of two that brings numbers up to `largest` below 2^15, and what undoes it. Exponents of floats as they are
// stored; those of numbers below 2^-112 are left, so that both are floats.
struct PowerOfTwo {
  float scale, back;
  __device__ explicit PowerOfTwo(float largest) {
    const unsigned exponent = max(__float_as_uint(largest) >> 23, 15u);
    scale = __uint_as_float((268u - exponent) << 23);
    back = __uint_as_float((exponent - 14u) << 23);
  }
};

__device__ __forceinline__ float4 four(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

// Rows of Y of 16 columns of features, split: what the first factor of multiply_halves() is made of.
struct SplitRows {
  unsigned high[4], low[4];
};

// Shared memory is what is busiest. So a scale lies there as one byte: of an odd exponent all but its last bit.
__device__ __forceinline__ unsigned char scale_byte(float power_of_four) {
  return static_cast<unsigned char>(__float_as_uint(power_of_four) >> 24);
}
// Of the `at`-th of four.
__device__ __forceinline__ float scale_of(unsigned bytes, int at) {
  return __uint_as_float(__byte_perm(bytes, 0x80u, 0x0455u | static_cast<unsigned>(at) << 12));
}
__device__ __forceinline__ float inverse_scale(unsigned char byte) {
  return __uint_as_float((254u << 23) - (static_cast<unsigned>(byte) << 24 | 1u << 23));
}

// What a lane has of a box: columns 8 t to 8 t + 7 of row g of each eight, and their scales and shifts.
template <int Groups>
struct LanesOfBox {
  float4 z[2][Groups], shift[2];
  uint2 scales;

  __device__ __forceinline__ LanesOfBox(const float* box, const unsigned char* scale, const float* shifts, int lane) {
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int m = 0; m < Groups; ++m) z[h][m] = four(box + (8 * m + g) * box_columns + ((2 * t + h) ^ g) * 4);
      shift[h] = four(shifts + 8 * t + 4 * h);
    }
    scales = *reinterpret_cast<const uint2*>(scale + 8 * t);
  }
};

// p += box Y: columns g and g + 8 of P, rows 2 t and 2 t + 1 of each eight. first, second: of Y, for columns 8 t to
// 8 t + 3 and for the four after them. Leaves the box split.
template <int Groups>
__device__ __forceinline__ void project(float* box, const LanesOfBox<Groups>& of, const SplitRows& first,
                                        const SplitRows& second, int lane, float (&p)[Groups][4]) {
  const int g = lane >> 2, t = lane & 3;
  unsigned high[2][Groups][2], low[2][Groups][2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const unsigned scales = h == 0 ? of.scales.x : of.scales.y;
    const float4 c = {scale_of(scales, 0), scale_of(scales, 1), scale_of(scales, 2), scale_of(scales, 3)};
    const float4 s = of.shift[h];
#pragma unroll
    for (int m = 0; m < Groups; ++m) {
      const float4 z = of.z[h][m];  // (z - s) c = c z - s c, rounded once
      split_pair(fmaf(z.x, c.x, s.x), fmaf(z.y, c.y, s.y), high[h][m][0], low[h][m][0]);
      split_pair(fmaf(z.z, c.z, s.z), fmaf(z.w, c.w, s.w), high[h][m][1], low[h][m][1]);
    }
  }
#pragma unroll
  for (int m = 0; m < Groups; ++m) {
    auto* const units = reinterpret_cast<uint4*>(box + (8 * m + g) * box_columns);
    units[(2 * t) ^ g] = {high[0][m][0], high[0][m][1], high[1][m][0], high[1][m][1]};
    units[(2 * t + 1) ^ g] = {low[0][m][0], low[0][m][1], low[1][m][0], low[1][m][1]};
  }
  // The tensor cores cut sums off: the small ones first.
  float of_box[Groups][4] = {};
#pragma unroll
  for (int m = 0; m < Groups; ++m) multiply_halves(of_box[m], first.low, high[0][m]);
#pragma unroll
  for (int m = 0; m < Groups; ++m) multiply_halves(of_box[m], second.low, high[1][m]);
#pragma unroll
  for (int m = 0; m < Groups; ++m) multiply_halves(of_box[m], first.high, low[0][m]);
#pragma unroll
  for (int m = 0; m < Groups; ++m) multiply_halves(of_box[m], second.high, low[1][m]);
#pragma unroll
  for (int m = 0; m < Groups; ++m) multiply_halves(of_box[m], first.high, high[0][m]);
#pragma unroll
  for (int m = 0; m < Groups; ++m) multiply_halves(of_box[m], second.high, high[1][m]);
#pragma unroll
  for (int m = 0; m < Groups; ++m)
#pragma unroll
    for (int k = 0; k < 4; ++k) p[m][k] += of_box[m][k];
}

// Where a lane asks for rows of a split box that is at `box`, of 16 rows and the first eight columns.
__device__ __forceinline__ unsigned split_place(const float* box, int lane) {
  const int row = lane & 15, low = lane >> 4;
  return shared_address(box) + static_cast<unsigned>(row * box_columns * 4 + ((low ^ (row & 7)) << 4));
}
// 16 rows of eight columns, turned: the second factor of multiply_halves(), of the high and of the low halves.
__device__ __forceinline__ void load_turned(unsigned from, unsigned (&high)[2], unsigned (&low)[2]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(high[0]), "=r"(high[1]), "=r"(low[0]), "=r"(low[1])
               : "r"(from)
               : "memory");
}

// sums += box' P / scale of P for a split box: sums[u] has columns g and g + 8 of W, of rows 8 u + 2 t and the next. p:
// of each 16 rows, in the places of project(). from: split_place(). The tensor cores add up 32 rows at most.
template <int Sixteens>
__device__ __forceinline__ void take_in(unsigned from, const SplitRows (&p)[Sixteens], float back,
                                        float (&sums)[4][4]) {
  static_assert(Sixteens <= 2);
  float of_box[4][4] = {};
#pragma unroll
  for (int k = 0; k < Sixteens; ++k) {
    unsigned high[4][2], low[4][2];
#pragma unroll
    for (int u = 0; u < 4; ++u)
      load_turned((from + static_cast<unsigned>(k * 16 * box_columns * 4)) ^ static_cast<unsigned>(u << 5), high[u],
                  low[u]);
#pragma unroll
    for (int u = 0; u < 4; ++u) multiply_halves(of_box[u], p[k].low, high[u]);
#pragma unroll
    for (int u = 0; u < 4; ++u) multiply_halves(of_box[u], p[k].high, low[u]);
#pragma unroll
    for (int u = 0; u < 4; ++u) multiply_halves(of_box[u], p[k].high, high[u]);
  }
#pragma unroll
  for (int u = 0; u < 4; ++u)
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[u][k] = fmaf(of_box[u][k], back, sums[u][k]);
}

}  // namespace itspace::cuda::kernels
