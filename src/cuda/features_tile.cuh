// SPDX-License-Identifier: Apache-2.0
//
// What a warp does with a box of features, 32 columns of some groups of eight rows, for features_product.cuh: both
// products are made transposed, so that the 16 columns of Y, P and W are the 16 rows that a tensor core multiplies.
//
// Boxes lie as the copy engine writes them: rows of 128 bytes, whose 16-byte units are exchanged by the number of the
// row modulo 8. A lane is 4 g + t.
#pragma once

#include "cuda/cluster_product.cuh"

namespace itspace::cuda::kernels {

// What the tensor cores cut off of x.
__device__ __forceinline__ unsigned cut_off(float x) {
  return __float_as_uint(x - __uint_as_float(__float_as_uint(x) & 0xffffe000u));
}

__device__ __forceinline__ void subtract(const float* from, const float4& shift, float (&z)[4]) {
  const float4 of_z = *reinterpret_cast<const float4*>(from);
  z[0] = of_z.x - shift.x;
  z[1] = of_z.y - shift.y;
  z[2] = of_z.z - shift.z;
  z[3] = of_z.w - shift.w;
}

// p += (box - 1 s') Y: columns g and g + 8 of P, rows turned_row(2 t) and turned_row(2 t + 1) of each eight. y0, y1: of
// the box's first 16 rows of Y and of the others those from 4 t on, columns g and g + 8.
template <int Groups>
__device__ __forceinline__ void project(const float* box, const float* shift, const float (&y0)[2][4],
                                        const float (&y1)[2][4], int lane, float (&p)[Groups][4]) {
  const int t = lane & 3, at = turned_row(lane >> 2);
  float large[Groups][4] = {}, small[Groups][4] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const auto& y = h == 0 ? y0 : y1;
    const float4 s = *reinterpret_cast<const float4*>(shift + 16 * h + 4 * t);
    float z[Groups][4];
#pragma unroll
    for (int m = 0; m < Groups; ++m) subtract(box + (8 * m + at) * box_columns + ((4 * h + t) ^ at) * 4, s, z[m]);
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      unsigned high[4], low[4];
      split(y[0][e], high[0], low[0]);
      split(y[1][e], high[1], low[1]);
      split(y[0][e + 1], high[2], low[2]);
      split(y[1][e + 1], high[3], low[3]);
#pragma unroll
      for (int m = 0; m < Groups; ++m)
        multiply_tile(small[m], low, __float_as_uint(z[m][e]), __float_as_uint(z[m][e + 1]));
#pragma unroll
      for (int m = 0; m < Groups; ++m)
        multiply_tile(large[m], high, __float_as_uint(z[m][e]), __float_as_uint(z[m][e + 1]));
#pragma unroll
      for (int m = 0; m < Groups; ++m) multiply_tile(small[m], high, cut_off(z[m][e]), cut_off(z[m][e + 1]));
    }
  }
#pragma unroll
  for (int m = 0; m < Groups; ++m)
#pragma unroll
    for (int k = 0; k < 4; ++k) p[m][k] += large[m][k] + small[m][k];
}

// P of a tile in two parts: columns g and g + 8 of row 2 t, then of row 2 t + 1, of each eight.
template <int Groups>
struct TileParts {
  unsigned high[Groups][4], low[Groups][4];
};

// sums += (box - 1 s')' P: sums[i] has columns g and g + 8 of W, of rows 8 t + i and 8 t + 4 + i.
template <int Groups>
__device__ __forceinline__ void take_in(const float* box, const float* shift, const TileParts<Groups>& p, int lane,
                                        float (&sums)[4][4]) {
  const int g = lane >> 2, t = lane & 3;
  const float4 s = *reinterpret_cast<const float4*>(shift + 4 * g);
  float of_box[4][4] = {};
#pragma unroll
  for (int m = 0; m < Groups; ++m) {
    float z[2][4];  // of rows 2 t and 2 t + 1
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      subtract(box + (8 * m + 2 * t + odd) * box_columns + (g ^ (2 * t + odd)) * 4, s, z[odd]);
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_tile(of_box[i], p.low[m], __float_as_uint(z[0][i]), __float_as_uint(z[1][i]));
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_tile(of_box[i], p.high[m], cut_off(z[0][i]), cut_off(z[1][i]));
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply_tile(of_box[i], p.high[m], __float_as_uint(z[0][i]), __float_as_uint(z[1][i]));
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[i][k] += of_box[i][k];
}

}  // namespace itspace::cuda::kernels
