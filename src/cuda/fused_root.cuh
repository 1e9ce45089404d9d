// SPDX-License-Identifier: Apache-2.0
//
// The inverse square root of an r x r matrix by one block of threads, in double on the tensor cores.
#pragma once

#include "cuda/double_tile.cuh"
#include "cuda/fused.hpp"
#include "cuda/row_product.cuh"
#include "cuda/warp_root.cuh"

namespace itspace::cuda::kernels {

// Rows of small matrices lie so far apart that half a warp meets no bank twice.
template <int R>
constexpr int m_stride = R + 4;

struct Root {
  double nuclear_norm, orthogonality, asymmetry, norm_squared, trace, g_norm;
  double largest_squared;  // a bound of ||M||_2^2
  int products;
  bool converged;
};

// Where one warp finds the root in its registers; elsewhere the whole block does.
template <int R, int Warps>
constexpr bool by_one_warp = R == 16 && Warps == warps;

template <int R, int Warps = warps>
struct RootWorkspace {
  alignas(16) double g[R * m_stride<R>], t[R * m_stride<R>], u[R * m_stride<R>], m[R * m_stride<R>];
  alignas(16) double z[2][by_one_warp<R, Warps> ? 1 : R * m_stride<R>];  // (of root_by_block)
  double sums[Warps][4];
  FusedPolynomial polynomials[most_fused_polynomials];
  Root found;  // by one warp, for the others
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

enum class Side { plain, transposed };

// How many tiles a warp has, where a block has so many warps; those without a tile have nothing to do.
template <int R, int Warps>
constexpr int tiles_of_warp = (tile_count<R> > Warps) ? tile_count<R> / Warps : 1;

// visit(place, c0, c1) for the tiles of this warp of op(a) b; entries (x, y) and (x, y + 1) of the product.
template <int R, Side side, int Warps, class Visit>
__device__ __forceinline__ void for_product(const double* a, const double* b, Visit visit) {
  constexpr int ld = m_stride<R>, tiles = R / 8, mine = tiles_of_warp<R, Warps>;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, quad = lane >> 2, k0 = lane & 3;
  if (mine == 1 && warp >= tile_count<R>) return;
#pragma unroll
  for (int m = 0; m < mine; ++m) {
    const int tile = warp * mine + m, row = (tile / tiles) * 8 + quad, col = (tile % tiles) * 8 + quad;
    double av[R / 4], bv[R / 4], c[2] = {0, 0}, d[2] = {0, 0};  // two chains, each half as long
#pragma unroll
    for (int k = 0; k < R / 4; ++k) {
      av[k] = side == Side::plain ? a[row * ld + 4 * k + k0] : a[(4 * k + k0) * ld + row];
      bv[k] = b[(4 * k + k0) * ld + col];
    }
#pragma unroll
    for (int k = 0; k < R / 4; k += 2) {
      multiply_double_tile(c, av[k], bv[k]);
      multiply_double_tile(d, av[k + 1], bv[k + 1]);
    }
    visit(m, int2{row, (tile % tiles) * 8 + 2 * k0}, c[0] + d[0], c[1] + d[1]);
  }
}

__device__ __forceinline__ void put(double* to, double c0, double c1) {
  *reinterpret_cast<double2*>(to) = {c0, c1};
}

constexpr int most_more_rounds = 12;          // after the last polynomial
constexpr double most_orthogonality = 1e-10;  // of ||M'GM - I||_F: converged

// ||G^2||_F^(1/2) >= lambda_max(G) from the sum of squares of G^2. A few digits will do. The exponent is taken apart,
// since squares are beyond float's range.
[[maybe_unused]] __device__ __forceinline__ double fourth_root(double squares) {
  const int exponent = (ilogb(squares) / 4) * 4;
  return ldexp(static_cast<double>(1.00001f * sqrtf(sqrtf(static_cast<float>(ldexp(squares, -exponent))))),
               exponent / 4);
}

// The last polynomial for an interval that begins at or below `lowest`.
[[maybe_unused]] __device__ __forceinline__ int first_polynomial(const FusedPolynomial* polynomials, int count,
                                                                 double lowest) {
  const int lane = threadIdx.x & 31;
  const unsigned fit = __ballot_sync(~0u, lane < count && (lane == 0 || polynomials[lane].lowest <= lowest));
  return 31 - __clz(static_cast<int>(fit));
}

// shared.m <- shared.g^(-1/2), shortened to feasibility, and its square in shared.t: the iteration of core/polar.hpp on
// X = G^(1/2) Z, of which only X'X = Z'GZ is needed. `lowest` is a guess of sqrt(lambda_min/lambda_max); where it is
// above the truth it costs rounds. By all threads of the block; the workspace is what the block's shared memory begins
// with. Not inlined: the registers that it needs are not those of the product.
template <int R, int Warps = warps>
__device__ __noinline__ Root root_by_block(int polynomial_count, double lowest, int rank) {
  extern __shared__ __align__(128) unsigned char memory[];
  RootWorkspace<R, Warps>& shared = *reinterpret_cast<RootWorkspace<R, Warps>*>(memory);
  constexpr int ld = m_stride<R>, mine = tiles_of_warp<R, Warps>, threads = 32 * Warps;
  Root root{};
  // lambda_max(G) <= ||G^2||_F^(1/2).
  double t[mine][2], f[mine][2], squares[1] = {0};
  for_product<R, Side::plain, Warps>(shared.g, shared.g, [&](int m, int2 at, double c0, double c1) {
    t[m][0] = shared.g[at.x * ld + at.y];
    t[m][1] = shared.g[at.x * ld + at.y + 1];
    f[m][0] = c0;
    f[m][1] = c1;
    squares[0] += c0 * c0 + c1 * c1;
  });
  block_sums(squares, shared.sums);
  if (!(squares[0] > 0) || !isfinite(squares[0])) return root;
  const double bound = fourth_root(squares[0]);
  root.g_norm = bound;
  const double inverse = __drcp_rn(bound), scale_squared = inverse;  // T = scale_squared Z'GZ
  int next = first_polynomial(shared.polynomials, polynomial_count, lowest);
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
  for (int more = 0;;) {
    ++next;
    const bool last = next >= polynomial_count;
    const FusedPolynomial p = shared.polynomials[last ? polynomial_count - 1 : next];
    double sums[3] = {0, 0, 0};
    const double* const z = shared.z[now];
    // U = GZ.
    for_product<R, Side::plain, Warps>(shared.g, z, [&](int, int2 at, double c0, double c1) {
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
    for_product<R, Side::transposed, Warps>(z, shared.u, [&](int m, int2 at, double c0, double c1) {
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
      for (int e = threadIdx.x; e < R * R; e += threads) {
        const int i = e / R, j = e % R;
        const double skew = 0.5 * (shared.u[i * ld + j] - shared.u[j * ld + i]);
        more_sums[1] += skew * skew;
        if (i == j && i < rank) more_sums[0] += shared.u[i * ld + i];
      }
      block_sums(sums, shared.sums);
      block_sums(more_sums, shared.sums);
      const double scale = sqrt(scale_squared);
      root.orthogonality = sqrt(sums[0]);
      root.norm_squared = root.largest_squared = scale_squared * sums[1];
      root.trace = scale * sums[2];
      root.nuclear_norm = scale * more_sums[0];
      root.asymmetry = scale * sqrt(more_sums[1]);
      root.converged = root.orthogonality < most_orthogonality;
      if (root.converged || more >= most_more_rounds || !(root.orthogonality < 1e3)) break;
      ++more;
    }
    __syncthreads();
    // S = a + b T + c T^2.
    for_product<R, Side::plain, Warps>(shared.t, shared.t, [&](int m, int2 at, double c0, double c1) {
      polynomial_of(p, at, t[m][0], t[m][1], c0, c1, shared.u);
    });
    __syncthreads();
    // Z <- Z S.
    for_product<R, Side::plain, Warps>(
        z, shared.u, [&](int, int2 at, double c0, double c1) { put(shared.z[now ^ 1] + at.x * ld + at.y, c0, c1); });
    now ^= 1;
    root.products += 2;
    __syncthreads();
  }
  // ||I + E|| <= 1 + ||E||_F: divided by its root, M is feasible.
  const double feasible = sqrt(scale_squared) / sqrt(1 + root.orthogonality);
  __syncthreads();
  for (int i = threadIdx.x; i < R * R; i += threads)
    shared.m[(i / R) * ld + i % R] = feasible * shared.z[now][(i / R) * ld + i % R];
  __syncthreads();
  // M^2, for the doubt of what is promised.
  for_product<R, Side::plain, Warps>(
      shared.m, shared.m, [&](int, int2 at, double c0, double c1) { put(shared.t + at.x * ld + at.y, c0, c1); });
  __syncthreads();
  return root;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // for its tensor cores' larger products
// The same for R = 16 by one warp; it holds A = M'.
__device__ __noinline__ inline void root_by_warp(int polynomial_count, double lowest, int rank) {
  extern __shared__ __align__(128) unsigned char memory[];
  RootWorkspace<16>& shared = *reinterpret_cast<RootWorkspace<16>*>(memory);
  constexpr int ld = m_stride<16>;
  Root root{};
  const WarpMatrix g = get(shared.g, ld);
  const WarpMatrix g_squared = times_transposed(g, g);
  double squares[1] = {0};
  for_each_entry(
      [&](WarpPlace, int j, int i) { squares[0] = fma(g_squared.of[j][i], g_squared.of[j][i], squares[0]); });
  warp_sums(squares);
  if (!(squares[0] > 0) || !isfinite(squares[0])) {
    if ((threadIdx.x & 31) == 0) shared.found = root;
    return;
  }
  root.g_norm = fourth_root(squares[0]);
  const double inverse = __drcp_rn(root.g_norm), scale = sqrt(inverse);  // T = inverse A G A'
  int next = first_polynomial(shared.polynomials, polynomial_count, lowest);
  const auto polynomial = [](const FusedPolynomial& p, const WarpMatrix& t, double of_t, const WarpMatrix& t_squared) {
    WarpMatrix s;
    for_each_entry([&](WarpPlace at, int j, int i) {
      s.of[j][i] =
          fma(of_t * of_t * p.c, t_squared.of[j][i], fma(of_t * p.b, t.of[j][i], at.row == at.column ? p.a : 0.0));
    });
    return s;
  };
  WarpMatrix a = polynomial(shared.polynomials[next], g, inverse, g_squared), h, h_transposed{};
  double sums[5];  // ||T - I||^2, ||A||^2, tr A, tr H, ||(H - H')/2||^2
  root.products = 1;
  for (int more = 0;;) {
    ++next;
    const bool last = next >= polynomial_count;
    put(a, shared.u, ld);  // for its transpose
    __syncwarp();
    h = times_transposed(a, g);  // M'G
    if (last) {
      put(h, shared.t, ld);
      __syncwarp();
      h_transposed = get_transposed(shared.t, ld);
    }
    WarpMatrix t = times_transposed(h, a);
    for_each_entry([&](WarpPlace, int j, int i) { t.of[j][i] *= inverse; });
    root.products += 2;
    if (last) {
      for (double& sum : sums) sum = 0;
      for_each_entry([&](WarpPlace at, int j, int i) {
        const bool diagonal = at.row == at.column;
        const double e = t.of[j][i] - (diagonal ? 1 : 0);
        const double skew = 0.5 * (h.of[j][i] - h_transposed.of[j][i]);
        sums[0] = fma(e, e, sums[0]);
        sums[4] = fma(skew, skew, sums[4]);
        if (at.row < rank) {
          sums[1] = fma(a.of[j][i], a.of[j][i], sums[1]);
          sums[2] += diagonal ? a.of[j][i] : 0;
          sums[3] += diagonal ? h.of[j][i] : 0;
        }
      });
      warp_sums(sums);
      root.orthogonality = sqrt(sums[0]);
      root.converged = root.orthogonality < most_orthogonality;
      if (root.converged || more >= most_more_rounds || !(root.orthogonality < 1e3)) break;
      ++more;
    }
    const FusedPolynomial p = shared.polynomials[last ? polynomial_count - 1 : next];
    const WarpMatrix s = polynomial(p, t, 1, times_transposed(t, t));
    a = times_transposed(s, get_transposed(shared.u, ld));  // M <- M S
    root.products += 2;
    __syncwarp();
  }
  const WarpMatrix m = get_transposed(shared.u, ld);
  root.norm_squared = inverse * sums[1];
  root.trace = scale * sums[2];
  root.nuclear_norm = scale * sums[3];
  root.asymmetry = scale * sqrt(sums[4]);
  // ||I + E|| <= 1 + e with e = ||E||_F, and (1 - e/2)^2 (1 + e) <= 1: shortened by that, M is feasible.
  const double feasible = scale * (1 - 0.5 * root.orthogonality);
  WarpMatrix m_squared = times_transposed(m, a);
  for_each_entry([&](WarpPlace, int j, int i) { m_squared.of[j][i] *= feasible * feasible; });
  for_each_entry([&](WarpPlace at, int j, int i) { shared.m[at.row * ld + at.column] = feasible * m.of[j][i]; });
  put(m_squared, shared.t, ld);
  double squares_of_squared[1] = {0};
  for_each_entry([&](WarpPlace, int j, int i) {
    squares_of_squared[0] = fma(m_squared.of[j][i], m_squared.of[j][i], squares_of_squared[0]);
  });
  warp_sums(squares_of_squared);
  root.largest_squared = sqrt(squares_of_squared[0]);  // ||M^2||_F
  if ((threadIdx.x & 31) == 0) shared.found = root;
}

#endif

// The root for all threads; `meanwhile` is what they do beside it where one warp finds it.
template <int R, class Meanwhile>
__device__ __forceinline__ Root inverse_root(int polynomial_count, double lowest, int rank, Meanwhile meanwhile) {
  if constexpr (by_one_warp<R, warps>) {
    extern __shared__ __align__(128) unsigned char memory[];
    if (threadIdx.x < 32) {
      root_by_warp(polynomial_count, lowest, rank);
    } else {
      meanwhile();
    }
    __syncthreads();
    return reinterpret_cast<RootWorkspace<R>*>(memory)->found;
  } else {
    meanwhile();
    return root_by_block<R>(polynomial_count, lowest, rank);
  }
}

}  // namespace itspace::cuda::kernels
