// SPDX-License-Identifier: Apache-2.0
//
// The root of resident_steps.cuh, by all warps of a block.
//
// The iteration of core/polar.hpp on X = G^(1/2) Z, of which only T = X'X is needed, as in fused_root.cuh; beside m =
// Z, u = G m is kept, so that a polynomial takes three products one after the other: T = m'u, T^2, and both of m S and
// u S by half of the warps each. The last step is not followed by a look: what it leaves of T - I is known from T - I,
// and whether it was so is measured for the record (resident_record.cuh), when nobody waits for it.
#pragma once

#include "cuda/resident_shared.cuh"

namespace itspace::cuda::kernels {
namespace {

[[maybe_unused]] constexpr double most_for_one = 1e-5;  // of ||T - I||_F before a last step by one power of it: 1e-10
[[maybe_unused]] constexpr double most_for_two = 4e-4;  // and by two

// By one warp: 1.001 lambda_max(scale^2 g/unit) <= 1, from lambda_max <= mean + sqrt((n - 1)/n (||G||_F^2 - n mean^2))
// of n eigenvalues. Some digits will do.
[[maybe_unused]] __device__ inline void scale_for_root(ResidentShared& shared, const double* g, double per_unit,
                                                       int lane) {
  constexpr int R = resident_rank;
  float trace = 0, squares = 0;
#pragma unroll
  for (int n = 0; n < R * R / 32; ++n) {
    const int i = (lane + 32 * n) / R, j = lane % R;
    const float v = static_cast<float>(g[i * resident_stride + j] * per_unit);
    squares = fmaf(v, v, squares);
    if (i == j) trace += v;
  }
  trace = warp_sum(trace);
  squares = warp_sum(squares);
  const float mean = trace / R, spread = fmaxf(0.0f, (R - 1.0f) / R * (squares - trace * mean));
  if (lane == 0) shared.scale = rsqrtf(1.001f * (mean + sqrtf(spread)));
}

// shared.m[root.now] <- m, M = scale m the symmetric G^(-1/2), from the polynomials that shared.list and shared.first
// say. `unit` is a power of four. By all threads; afterwards they have met.
[[maybe_unused]] __device__ inline ResidentRoot find_root(ResidentShared& shared, const ResidentPlace& of,
                                                          const double* g, double per_root_of_unit,
                                                          const int (&counts)[PolynomialLists::lists]) {
  const int at = of.at;
  const auto tile = [&](const double* a, const double* b) {
    return tile_product<false, false>(a, b, of.tile_i, of.tile_j);
  };
  const auto polynomial = [&](const FusedPolynomial& p, double2 t, double2 squared, double* to) {
    put(to + at, fma(p.c, squared.x, fma(p.b, t.x, p.a * of.on_diagonal[0])),
        fma(p.c, squared.y, fma(p.b, t.y, p.a * of.on_diagonal[1])));
  };
  double2 c = {0, 0};
  if (of.leads) {
    c = tile(g, g);
  } else if (of.warp == 4) {
    scale_for_root(shared, g, per_root_of_unit * per_root_of_unit, of.lane);
  }
  __syncthreads();
  ResidentRoot root{};
  root.scale = shared.scale * per_root_of_unit;
  root.converged = true;
  const double inverse = root.scale * root.scale;
  const FusedPolynomial* const polynomials = shared.polynomials[shared.list];
  const int count = counts[shared.list];
  bool by_one = 1 - polynomials[count - 1].lowest <= PolynomialLists::left_for_one;
  int next = min(shared.first, count - 2), now = 0;
  if (of.leads)
    polynomial(polynomials[next], {inverse * g[at], inverse * g[at + 1]},
               {inverse * inverse * c.x, inverse * inverse * c.y}, shared.m[0]);
  __syncthreads();
  if (of.leads) {
    c = tile(g, shared.m[0]);
    put(shared.u[0] + at, inverse * c.x, inverse * c.y);
  }
  root.products = 2;
  __syncthreads();
  float excess = 0;  // ||T - I||_F^2 before the last step
  for (int more = 0;;) {
    ++next;
    const bool last = next >= count - 1;
    const FusedPolynomial p = polynomials[last ? count - 1 : next];
    if (of.leads) {
      c = tile_product<true, false>(shared.m[now], shared.u[now], of.tile_i, of.tile_j);
      put(shared.t + at, c.x, c.y);
      if (last && by_one)
        put(shared.s + at, fma(-0.5, c.x, 1.5 * of.on_diagonal[0]), fma(-0.5, c.y, 1.5 * of.on_diagonal[1]));
    }
    __syncthreads();
    if (!(last && by_one)) {
      if (of.leads) polynomial(p, c, tile(shared.t, shared.t), shared.s);
      ++root.products;
      __syncthreads();
    }
    const double2 moved = tile(of.leads ? shared.m[now] : shared.u[now], shared.s);
    put((of.leads ? shared.m[now ^ 1] : shared.u[now ^ 1]) + at, moved.x, moved.y);
    if (last && !of.leads) {
      // Some digits will do, a little too large.
      const float e0 = static_cast<float>(shared.t[at] - of.on_diagonal[0]),
                  e1 = static_cast<float>(shared.t[at + 1] - of.on_diagonal[1]);
      const float of_tile = 1.0001f * warp_sum(fmaf(e0, e0, e1 * e1));
      if (of.lane == 0) shared.excess[of.quad] = of_tile;
    }
    now ^= 1;
    root.products += 3;
    __syncthreads();
    if (!last) continue;
    excess = (shared.excess[0] + shared.excess[1]) + (shared.excess[2] + shared.excess[3]);
    const double most = by_one ? most_for_one : most_for_two;
    if (excess <= most * most) break;
    by_one = false;
    root.converged = more < most_more_rounds && excess < 1e6f;
    if (!root.converged) break;
    ++more;
  }
  root.now = now;
  // With T = I + E: (I + E)(I - E/2)^2 - I is at most E^2, and with 3 E^2/8 more in the last factor |E|^3.
  constexpr double of_rounding = 1e-11;
  root.orthogonality = (by_one ? excess : most_for_two * excess) + of_rounding;
  return root;
}

}  // namespace
}  // namespace itspace::cuda::kernels
