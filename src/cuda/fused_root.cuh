// SPDX-License-Identifier: Apache-2.0
//
// The inverse square root of an r x r matrix by one block of threads, in double on the tensor cores.
#pragma once

#include "cuda/fused.hpp"
#include "cuda/row_product.cuh"

namespace itspace::cuda::kernels {

// Rows of small matrices lie so far apart that half a warp meets no bank twice.
template <int R>
constexpr int m_stride = R + 4;

template <int R>
struct RootWorkspace {
  alignas(16) double g[R * m_stride<R>], z[2][R * m_stride<R>], t[R * m_stride<R>], u[R * m_stride<R>],
      m[R * m_stride<R>];
  double sums[warps][4];
  FusedPolynomial polynomials[most_fused_polynomials];
};

// The first of the two entries, side by side, that this thread holds of an 8 x 8 tile of a product.
template <int R>
__device__ __forceinline__ int2 tile_place(int tile, int lane) {
  constexpr int tiles = R / 8;
  return {(tile / tiles) * 8 + (lane >> 2), (tile % tiles) * 8 + 2 * (lane & 3)};
}

// Tiles are shared out over the warps.
template <int R>
constexpr int tile_count = (R / 8) * (R / 8);

struct Root {
  double nuclear_norm, orthogonality, asymmetry, norm_squared, trace, g_norm;
  int products;
  bool converged;
};

enum class Side { plain, transposed };

// visit(place, c0, c1) for the tiles of this warp of op(a) b; entries (x, y) and (x, y + 1) of the product.
template <int R, Side side, class Visit>
__device__ __forceinline__ void for_product(const double* a, const double* b, Visit visit) {
  constexpr int ld = m_stride<R>, tiles = R / 8, mine = tile_count < R >> warps ? tile_count<R> / warps : 1;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, quad = lane >> 2, k0 = lane & 3;
  if (mine == 1 && warp >= tile_count<R>) return;
#pragma unroll
  for (int m = 0; m < mine; ++m) {
    const int tile = warp * mine + m, row = (tile / tiles) * 8 + quad, col = (tile % tiles) * 8 + quad;
    double av[R / 4], bv[R / 4], c0 = 0, c1 = 0, d0 = 0, d1 = 0;  // two chains, each half as long
#pragma unroll
    for (int k = 0; k < R / 4; ++k) {
      av[k] = side == Side::plain ? a[row * ld + 4 * k + k0] : a[(4 * k + k0) * ld + row];
      bv[k] = b[(4 * k + k0) * ld + col];
    }
#pragma unroll
    for (int k = 0; k < R / 4; k += 2) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(c0), "+d"(c1)
          : "d"(av[k]), "d"(bv[k]));
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(d0), "+d"(d1)
          : "d"(av[k + 1]), "d"(bv[k + 1]));
    }
    visit(m, int2{row, (tile % tiles) * 8 + 2 * k0}, c0 + d0, c1 + d1);
  }
}

__device__ __forceinline__ void put(double* to, double c0, double c1) {
  *reinterpret_cast<double2*>(to) = {c0, c1};
}

// shared.m <- shared.g^(-1/2), shortened to feasibility, and its square in shared.t: the iteration of core/polar.hpp on
// X = G^(1/2) Z, of which only X'X = Z'GZ is needed. `lowest` is a guess of sqrt(lambda_min/lambda_max); where it is
// above the truth it costs rounds. By all threads of the block; the workspace is what the block's shared memory begins
// with. Not inlined: the registers that it needs are not those of the product.
template <int R>
__device__ __noinline__ Root inverse_root(int polynomial_count, double lowest, int rank) {
  extern __shared__ __align__(128) unsigned char memory[];
  RootWorkspace<R>& shared = *reinterpret_cast<RootWorkspace<R>*>(memory);
  constexpr int ld = m_stride<R>, mine = tile_count < R >> warps ? tile_count<R> / warps : 1;
  Root root{};
  // lambda_max(G) <= ||G^2||_F^(1/2).
  double t[mine][2], f[mine][2], squares[1] = {0};
  for_product<R, Side::plain>(shared.g, shared.g, [&](int m, int2 at, double c0, double c1) {
    t[m][0] = shared.g[at.x * ld + at.y];
    t[m][1] = shared.g[at.x * ld + at.y + 1];
    f[m][0] = c0;
    f[m][1] = c1;
    squares[0] += c0 * c0 + c1 * c1;
  });
  block_sums(squares, shared.sums);
  // A few digits will do. The exponent is taken apart, since squares are beyond float's range.
  if (!(squares[0] > 0) || !isfinite(squares[0])) return root;
  const int exponent = (ilogb(squares[0]) / 4) * 4;
  const double bound = ldexp(
      static_cast<double>(1.00001f * sqrtf(sqrtf(static_cast<float>(ldexp(squares[0], -exponent))))), exponent / 4);
  root.g_norm = bound;
  const double inverse = __drcp_rn(bound), scale_squared = inverse;  // T = scale_squared Z'GZ
  // The last polynomial for an interval that begins at or below `lowest`.
  const int lane_of = threadIdx.x & 31;
  const unsigned fit =
      __ballot_sync(~0u, lane_of < polynomial_count && (lane_of == 0 || shared.polynomials[lane_of].lowest <= lowest));
  int next = 31 - __clz(static_cast<int>(fit));
  int now = 0;  // which of shared.z holds Z
  const auto polynomial_of = [&](const FusedPolynomial& p, int2 at, double t0, double t1, double f0, double f1,
                                 double* to) {
    put(to + at.x * ld + at.y, (at.x == at.y ? p.a : 0.0) + p.b * t0 + p.c * f0,
        (at.x == at.y + 1 ? p.a : 0.0) + p.b * t1 + p.c * f1);
  };
  {
    const FusedPolynomial p = shared.polynomials[next];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (mine > 1 || warp < tile_count<R>)
#pragma unroll
      for (int m = 0; m < mine; ++m)
        polynomial_of(p, tile_place<R>(warp * mine + m, lane), inverse * t[m][0], inverse * t[m][1],
                      inverse * inverse * f[m][0], inverse * inverse * f[m][1], shared.z[0]);
  }
  root.products = 1;
  __syncthreads();
  constexpr int most_more = 12;
  for (int more = 0;;) {
    ++next;
    const bool last = next >= polynomial_count;
    const FusedPolynomial p = shared.polynomials[last ? polynomial_count - 1 : next];
    double sums[3] = {0, 0, 0};
    const double* const z = shared.z[now];
    // U = GZ.
    for_product<R, Side::plain>(shared.g, z, [&](int, int2 at, double c0, double c1) {
      put(shared.u + at.x * ld + at.y, c0, c1);
      if (last && at.x < rank) {
        const double z0 = z[at.x * ld + at.y], z1 = z[at.x * ld + at.y + 1];
        sums[1] += z0 * z0 + z1 * z1;
        if (at.x == at.y) sums[2] += z0;
        if (at.x == at.y + 1) sums[2] += z1;
      }
    });
    __syncthreads();
    // T = Z'U.
    for_product<R, Side::transposed>(z, shared.u, [&](int m, int2 at, double c0, double c1) {
      t[m][0] = scale_squared * c0;
      t[m][1] = scale_squared * c1;
      put(shared.t + at.x * ld + at.y, t[m][0], t[m][1]);
      if (last) {
        const double e0 = t[m][0] - (at.x == at.y ? 1 : 0), e1 = t[m][1] - (at.x == at.y + 1 ? 1 : 0);
        sums[0] += e0 * e0 + e1 * e1;
      }
    });
    root.products += 2;
    if (last) {
      double more_sums[2] = {0, 0};  // of H = Z'G = U': its trace and its skew part
      for (int e = threadIdx.x; e < R * R; e += fused_threads) {
        const int i = e / R, j = e % R;
        const double skew = 0.5 * (shared.u[i * ld + j] - shared.u[j * ld + i]);
        more_sums[1] += skew * skew;
        if (i == j && i < rank) more_sums[0] += shared.u[i * ld + i];
      }
      block_sums(sums, shared.sums);
      block_sums(more_sums, shared.sums);
      const double scale = sqrt(scale_squared);
      root.orthogonality = sqrt(sums[0]);
      root.norm_squared = scale_squared * sums[1];
      root.trace = scale * sums[2];
      root.nuclear_norm = scale * more_sums[0];
      root.asymmetry = scale * sqrt(more_sums[1]);
      root.converged = root.orthogonality < 1e-10;
      if (root.converged || more >= most_more || !(root.orthogonality < 1e3)) break;
      ++more;
    }
    __syncthreads();
    // S = a + b T + c T^2.
    for_product<R, Side::plain>(shared.t, shared.t, [&](int m, int2 at, double c0, double c1) {
      polynomial_of(p, at, t[m][0], t[m][1], c0, c1, shared.u);
    });
    __syncthreads();
    // Z <- Z S.
    for_product<R, Side::plain>(
        z, shared.u, [&](int, int2 at, double c0, double c1) { put(shared.z[now ^ 1] + at.x * ld + at.y, c0, c1); });
    now ^= 1;
    root.products += 2;
    __syncthreads();
  }
  // ||I + E|| <= 1 + ||E||_F: divided by its root, M is feasible.
  const double feasible = sqrt(scale_squared) / sqrt(1 + root.orthogonality);
  __syncthreads();
  for (int i = threadIdx.x; i < R * R; i += fused_threads)
    shared.m[(i / R) * ld + i % R] = feasible * shared.z[now][(i / R) * ld + i % R];
  __syncthreads();
  // M^2, for the doubt of what is promised.
  for_product<R, Side::plain>(shared.m, shared.m,
                              [&](int, int2 at, double c0, double c1) { put(shared.t + at.x * ld + at.y, c0, c1); });
  __syncthreads();
  return root;
}

}  // namespace itspace::cuda::kernels
