// SPDX-License-Identifier: Apache-2.0
//
// src/cuda/double_tile.cuh by lanes that show each other what they hold.
#pragma once

#include "emulated/launch.hpp"

namespace itspace::cuda::kernels {

// c += a b for a 8 x 4, b 4 x 8: a lane has a(lane / 4, lane % 4), b(lane % 4, lane / 4), and c(lane / 4, 2 (lane % 4))
// with the entry beside it.
inline void multiply_double_tile(double (&c)[2], double a, double b) {
  const auto* of = test::emulated::exchange({a, b});
  const int lane = test::emulated::this_lane(), row = lane / 4;
  for (int e = 0; e < 2; ++e) {
    const int column = 2 * (lane % 4) + e;
    for (int k = 0; k < 4; ++k) c[e] += of[4 * row + k].a * of[4 * column + k].b;
  }
}

}  // namespace itspace::cuda::kernels
