// SPDX-License-Identifier: Apache-2.0
//
// Double on the tensor cores, of compute capability 8.0 on.
#pragma once

namespace itspace::cuda::kernels {

// c += a b for a 8 x 4, b 4 x 8: a lane has a(lane / 4, lane % 4), b(lane % 4, lane / 4), and c(lane / 4, 2 (lane % 4))
// with the entry beside it.
__device__ __forceinline__ void multiply_double_tile(double (&c)[2], double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
}

}  // namespace itspace::cuda::kernels
