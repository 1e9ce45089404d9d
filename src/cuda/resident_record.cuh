// SPDX-License-Identifier: Apache-2.0
//
// The record of resident_steps.cuh: what a pass showed at an iterate, found during the next pass, when there is time
// for it; and whether to go on.
#pragma once

#include "cuda/resident_shared.cuh"
#include "cuda/warp_root.cuh"

namespace itspace::cuda::kernels {
namespace {

// The sequence of fewest products for a G whose eigenvalues have roots from `lowest` on, by one warp.
[[maybe_unused]] __device__ inline void choose_polynomials(ResidentShared& shared, const ResidentArguments& arguments,
                                                           float lowest, int lane) {
  int list = 0, first = 0, least = 1 << 20;
  for (int n = 0; n < PolynomialLists::lists; ++n) {
    const int count = arguments.polynomials.count[n];
    const double begins = shared.polynomials[n][min(lane, count - 1)].lowest;
    const unsigned fit = __ballot_sync(~0u, lane < count && (lane == 0 || begins <= lowest));
    const int begin = 31 - __clz(static_cast<int>(fit));
    const bool by_one = 1 - shared.polynomials[n][count - 1].lowest <= PolynomialLists::left_for_one;
    const int products = 3 * (count - begin) + (by_one ? 0 : 1);
    if (products < least) {
      least = products;
      list = n;
      first = begin;
    }
  }
  if (lane == 0) {
    shared.list = list;
    shared.first = first;
  }
}

// This block's parts of ||B||^2, ||B - Y||^2 and ||BM||^2 are said, by one warp.
[[maybe_unused]] __device__ inline void say_norms(ResidentShared& shared, Spoken& spoken, const ResidentPlace& of,
                                                  const double* y, unsigned date) {
  constexpr int ld = resident_stride;
  const WarpMatrix b = get(shared.b, ld), of_y = get(y, ld);
  const WarpMatrix bm = times_transposed(b, get_transposed(shared.m[shared.root.now], ld));
  double sums[norm_count] = {};
  for_each_entry([&](WarpPlace, int j, int i) {
    const double difference = b.of[j][i] - of_y.of[j][i];
    sums[0] = fma(b.of[j][i], b.of[j][i], sums[0]);
    sums[1] = fma(difference, difference, sums[1]);
    sums[2] = fma(bm.of[j][i], bm.of[j][i], sums[2]);
  });
  warp_sums(sums);
  sums[2] *= shared.root.scale * shared.root.scale;
  if (of.lane < norm_count)
    say(spoken.places[date & 1].parts[Spoken::norms + of.lane][of.block],
        of.lane == 0   ? sums[0]
        : of.lane == 1 ? sums[1]
                       : sums[2],
        date);
}

// The sums of the pass of that date that only the record needs, and the norms of the one before it: by one warp.
[[maybe_unused]] __device__ inline void hear_rest(ResidentShared& shared, const Spoken& spoken, const ResidentPlace& of,
                                                  unsigned date) {
  constexpr int values = Spoken::values - Spoken::yy, of_lane = (values + 31) / 32;
  const Dated* from[of_lane];
  unsigned dates[of_lane];
  double heard[of_lane], of_yy[2] = {0, 0}, of_column = 0;  // ||Y'Y||_F^2, ||Y||^2, ||w_j||^2/||y_j||^2 <= ||Sigma||^2
#pragma unroll
  for (int n = 0; n < of_lane; ++n) {
    const int v = Spoken::yy + of.lane + 32 * n;
    dates[n] = v < Spoken::norms ? date : date - 1;
    const bool is_there = v < Spoken::values && dates[n] > 0;
    from[n] = is_there ? &spoken.places[dates[n] & 1].sums[of.block % Spoken::copies][v] : nullptr;
  }
  hear(from, dates, heard);
#pragma unroll
  for (int n = 0; n < of_lane; ++n) {
    if (of.lane + 32 * n < values) shared.heard[of.lane + 32 * n] = heard[n];
    if (of.lane + 32 * n < Spoken::pairs) of_yy[0] = fma(2 * heard[n], heard[n], of_yy[0]);
  }
  __syncwarp();
  if (of.lane < resident_rank) {
    const double of_y = shared.heard[of.lane * (of.lane + 3) / 2], of_w = shared.heard[Spoken::pairs + of.lane];
    of_yy[0] = fma(-of_y, of_y, of_yy[0]);
    of_yy[1] = of_y;
    of_column = of_y > 0 ? of_w / of_y : 0;
  }
  warp_sums(of_yy);
  of_column = warp_largest(of_column);
  if (of.lane == 0) {
    shared.longest_squared = sqrt(of_yy[0]);
    shared.y_squared = of_yy[1];
    shared.target_squared = of_column;
  }
}

// What is measured of the root of a pass, by one warp, with m = M/scale.
struct MeasuredRoot {
  double excess, norm_squared, trace, trace_of_product, skew, largest_fourth;
};
[[maybe_unused]] __device__ inline MeasuredRoot measure_root(ResidentShared& shared, const double* g, int rank,
                                                             int lane) {
  constexpr int ld = resident_stride;
  const double scale = shared.root.scale, inverse = scale * scale;
  const WarpMatrix m = get(shared.m[shared.root.now], ld), transposed = get_transposed(shared.m[shared.root.now], ld);
  WarpMatrix h = times_transposed(transposed, get(g, ld));  // M'G
  for_each_entry([&](WarpPlace, int j, int i) { h.of[j][i] *= inverse; });
  put(h, shared.scratch, ld);
  __syncwarp();
  const WarpMatrix t = times_transposed(h, transposed), squared = times_transposed(m, transposed),
                   h_transposed = get_transposed(shared.scratch, ld), fourth = times_transposed(squared, squared);
  double sums[6] = {};
  for_each_entry([&](WarpPlace at, int j, int i) {
    const bool diagonal = at.row == at.column;
    const double e = t.of[j][i] - (diagonal ? 1 : 0), skew = 0.5 * (h.of[j][i] - h_transposed.of[j][i]);
    sums[0] = fma(e, e, sums[0]);
    sums[4] = fma(skew, skew, sums[4]);
    sums[5] = fma(fourth.of[j][i], fourth.of[j][i], sums[5]);
    if (at.row < rank) {
      sums[1] = fma(m.of[j][i], m.of[j][i], sums[1]);
      sums[2] += diagonal ? m.of[j][i] : 0;
      sums[3] += diagonal ? h.of[j][i] : 0;
    }
  });
  warp_sums(sums);
  const double root = sqrt(lane == 0 ? sums[0] : lane == 1 ? sums[4] : sums[5]);
  return {__shfl_sync(~0u, root, 0), sums[1], sums[2], sums[3], __shfl_sync(~0u, root, 1), __shfl_sync(~0u, root, 2)};
}

// The row of the log, by one warp of the last block, with shared.logged of that pass.
[[maybe_unused]] __device__ inline void write_log(const ResidentShared& shared, double* log, int step, int lane) {
  const double* const norms = &shared.heard[Spoken::norms - Spoken::yy];
  double* const to = log + static_cast<std::size_t>(step) * log_scalars;
  if (lane < log_scalars)
    to[lane] = lane == 1 ? norms[0] : lane == 2 ? norms[1] : lane == 14 ? norms[2] : shared.logged[lane];
}

// Whether that pass was certifiable and the best, and which polynomials the next root begins with. By one thread.
[[maybe_unused]] __device__ inline void decide(ResidentShared& shared, const ResidentArguments& arguments,
                                               const MeasuredRoot& of) {
  const ResidentRoot& root = shared.root;
  const double per_scale = 1 / root.scale, norm_squared = root.scale * root.scale * of.norm_squared;
  const double target_norm = fmax(sqrt(shared.target_squared), arguments.least_norm);
  const bool rooted = root.converged && of.excess <= root.orthogonality;
  // The share of the energies that may be rounding: noise ||Y||^2 ||M||^2, noise = 2 eps ||Sigma||.
  const double doubt = 2 * epsilon<float> * target_norm * shared.longest_squared * norm_squared;
  shared.ended = !rooted ? Ended::not_rooted : !(doubt <= most_doubt) ? Ended::doubtful : Ended::stepped;
  const double nuclear_norm = per_scale * of.trace_of_product;
  const double objective = fmax(0.0, shared.y_squared + arguments.trace - 2 * nuclear_norm);
  shared.is_best = shared.ended == Ended::stepped && objective <= shared.best_objective;
  if (shared.is_best) shared.best_objective = objective;
  double* const logged = shared.logged;
  logged[0] = shared.y_squared;
  logged[3] = nuclear_norm;
  logged[4] = root.orthogonality;
  logged[5] = per_scale * of.skew;
  logged[6] = norm_squared;
  logged[7] = root.scale * of.trace;
  logged[8] = per_scale * per_scale;
  logged[9] = target_norm;
  logged[10] = shared.longest_squared;
  logged[11] = root.products;
  logged[12] = static_cast<double>(shared.ended);
  logged[13] = objective;
}

}  // namespace
}  // namespace itspace::cuda::kernels
