// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the fused run (fused.hpp) where the time of a step is that of waiting, not of multiplying: float, up to
// 16 columns, all of Sigma in shared memory, 16 rows to a block. For the file that launches it.
//
// Blocks never wait for all others at once. What a block has to say is a number with the pass that it is of, in 16
// bytes that are written and read whole: its part of each entry of G = Y'W, and, of the few entries that it is
// responsible for, the sum over all blocks, in one order. Or it is rows of Y, with the number of the iterate beside
// them. Whoever needs it looks until it is there. So a pass is: rows of Y from all others, straight into the registers
// of the warp that multiplies by them; rows of W, added up in the two blocks of a cluster; G to those responsible and
// back; the root by all warps; rows of Y+. What only the record needs is found in the next pass, while G is on its way.
#pragma once

#include "cuda/resident_record.cuh"
#include "cuda/resident_root.cuh"

#include <cooperative_groups.h>

namespace itspace::cuda::kernels {
namespace {

// sums <- 32 rows of Sigma, of this block's columns, times Y: of this warp's boxes. Each lane looks at the number of
// one of the warps that have made these boxes' rows, until it is `made`.
[[maybe_unused]] __device__ __forceinline__ void multiply_boxes(const Spoken& spoken, const float* y,
                                                                const float* sigma, int first_box, int boxes,
                                                                unsigned made, const ResidentPlace& of,
                                                                float (&sums)[2][2][4]) {
  constexpr int R = resident_rank, box_values = resident_pass_rows * box_columns;
  if (const int box = of.warp + cluster_warps * (of.lane >> 3); box < boxes) {
    const unsigned* const at = &spoken.rows_made[2 * (first_box + box) + ((of.lane >> 2) & 1)][of.lane & 3];
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(at) : "memory");
    } while (seen < made);
  }
  __syncwarp();
  float4 rows_of_y[resident_boxes_of_warp][4];
#pragma unroll
  for (int n = 0; n < resident_boxes_of_warp; ++n)
    if (const int b = of.warp + cluster_warps * n; b < boxes) {
      const float* const from = y + (first_box + b) * box_columns * R + of.lane * 4;
#pragma unroll
      for (int i = 0; i < 4; ++i) rows_of_y[n][i] = __ldcg(reinterpret_cast<const float4*>(from + i * 128));
    }
  const int turned = turned_row(of.lane >> 2);
#pragma unroll
  for (int n = 0; n < resident_boxes_of_warp; ++n)
    if (const int b = of.warp + cluster_warps * n; b < boxes)
      add_box<R>(
          sigma + b * box_values + turned * box_columns, [&](int h, int j) { return rows_of_y[n][2 * h + j]; }, turned,
          of.lane & 3, sums);
}

// shared.w <- this block's rows of W, of what all warps of the cluster have of them. Afterwards all threads have met.
[[maybe_unused]] __device__ __forceinline__ void exchange_rows(ResidentShared& shared, const ResidentPlace& of,
                                                               const float (&sums)[2][2][4], unsigned parity) {
  constexpr int R = resident_rank;
  const unsigned half = rank_in_cluster(), other = half ^ 1;
  const auto in_other = [&](const void* place) {
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(place)), "r"(other));
    return address;
  };
  if (of.thread == 0) expect_bytes(&shared.arrived, cluster_warps * resident_rows * R * 4u);
  const unsigned arrived = in_other(&shared.arrived);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    float* const place = shared.partial + (((half * cluster_warps + of.warp) * 2 + j) * 32 + of.lane) * 4;
    float own[4], others[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = half ? sums[1][j][i] : sums[0][j][i];
      others[i] = half ? sums[0][j][i] : sums[1][j][i];
    }
    *reinterpret_cast<float4*>(place) = {own[0], own[1], own[2], own[3]};
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     in_other(place)),
                 "f"(others[0]), "f"(others[1]), "f"(others[2]), "f"(others[3]), "r"(arrived)
                 : "memory");
  }
  __syncthreads();
  wait_for(&shared.arrived, parity);
  float sum = shared.partial[of.thread];
#pragma unroll
  for (int s = 1; s < cluster_blocks * cluster_warps; ++s) sum += shared.partial[s * R * R + of.thread];
  const int of_lane = (of.thread >> 2) & 31, row = turned_row(of_lane >> 2) + 8 * ((of.thread >> 1) & 1);
  shared.w[row * resident_stride + 8 * (of.thread >> 7) + 2 * (of_lane & 3) + (of.thread & 1)] = sum;
  __syncthreads();
}

// g <- the sums of G, by the three warps from the second on, two entries to a thread.
[[maybe_unused]] __device__ __forceinline__ void hear_g(const Spoken& spoken, const ResidentPlace& of, int rank,
                                                        const int (&columns)[2], unsigned date, double* g) {
  const Dated* const sums = spoken.places[date & 1].sums[of.block % Spoken::copies] + Spoken::g;
  const Dated* from[2];
  int rows[2];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const int pair = of.thread - 32 + 96 * n, j = columns[n];
    rows[n] = pair - j * (j + 1) / 2;
    // Columns that Y does not have: another direction as long as the first, by itself.
    from[n] = pair >= Spoken::pairs ? nullptr : rows[n] == j && j >= rank ? sums : sums + pair;
  }
  double of_g[2];
  hear(from, {date, date}, of_g);
#pragma unroll
  for (int n = 0; n < 2; ++n)
    if (from[n]) {
      g[rows[n] * resident_stride + columns[n]] = of_g[n];
      g[columns[n] * resident_stride + rows[n]] = of_g[n];
    }
}

// This block's rows of B = WM, M = feasible m, and of Y+, by the first four warps, for all blocks where `says`.
[[maybe_unused]] __device__ __forceinline__ void blend_rows(ResidentShared& shared, Spoken& spoken,
                                                            const ResidentPlace& of, const double* m, double feasible,
                                                            double alpha, int step, bool says) {
  constexpr int R = resident_rank, ld = resident_stride;
  const double* const y = shared.y[step % 3];
  double* const next_y = shared.y[(step + 1) % 3];
  // B' = M'W': columns of B down, rows across.
  const double2 c = tile_product<true, true>(m, shared.w, of.tile_i, of.tile_j);
  const int column = 8 * of.tile_i + (of.lane >> 2), row = 8 * of.tile_j + 2 * (of.lane & 3);
  const int at = row * ld + column;
  const float b0 = static_cast<float>(feasible * c.x), b1 = static_cast<float>(feasible * c.y);
  const float v0 = static_cast<float>((1 - alpha) * y[at] + alpha * b0);
  const float v1 = static_cast<float>((1 - alpha) * y[at + ld] + alpha * b1);
  if (says)
    *reinterpret_cast<float2*>(spoken.y[(step + 1) & 1] + (of.block * 2 + of.tile_i) * 128 + (of.lane >> 2) * R +
                               row) = {v0, v1};
  shared.b[at] = b0;
  shared.b[at + ld] = b1;
  next_y[at] = v0;
  next_y[at + ld] = v1;
  __syncwarp();
  if (says && of.lane == 0) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(&spoken.rows_made[of.block][of.quad]), "r"(step + 1)
                 : "memory");
  }
}

[[maybe_unused]] __global__ void __launch_bounds__(cluster_threads, 1)
    resident_steps(const __grid_constant__ ResidentArguments arguments) {
#if __CUDA_ARCH__ >= 900
  constexpr int R = resident_rank, ld = resident_stride, box_values = resident_pass_rows * box_columns;
  extern __shared__ __align__(1024) unsigned char memory[];
  float* const sigma = reinterpret_cast<float*>(memory);  // boxes of 32 x 32, of the cluster's rows
  ResidentShared& shared = *reinterpret_cast<ResidentShared*>(
      memory + static_cast<std::size_t>(arguments.boxes_per_block) * box_values * sizeof(float));
  Spoken& spoken = *arguments.spoken;
  const ResidentPlace of;
  const int half = static_cast<int>(rank_in_cluster()), rank = arguments.rank, dim = arguments.dim;
  const int first_row = of.block * R, all_boxes = (dim + box_columns - 1) / box_columns;
  const int first_box = min(half * arguments.boxes_per_block, all_boxes);
  const int boxes = min(arguments.boxes_per_block, all_boxes - first_box);
  const bool logs = of.block == of.blocks - 1;

  if (of.thread == 0) {
    make_barrier(&shared.arrived, 1);
    make_barrier(&shared.resident, 1);
    make_barrier(&shared.rest_heard, 32);
    fence_copies();
    if (boxes > 0) expect_bytes(&shared.resident, static_cast<unsigned>(boxes) * box_values * 4u);
    for (int b = 0; b < boxes; ++b)
      copy_box(sigma + b * box_values, &arguments.sigma, (first_box + b) * box_columns,
               of.block / cluster_blocks * resident_pass_rows, &shared.resident);
    shared.best_objective = INFINITY;
  }
  for (int i = of.thread; i < PolynomialLists::lists * PolynomialLists::most; i += cluster_threads)
    shared.polynomials[0][i] = arguments.polynomials.of[0][i];
  // Nothing is dated yet. (Both halves: what is looked at is read whole, and initcheck names what was not written.)
  for (Spoken::Place& place : spoken.places)
    for (int v = of.thread; v < Spoken::values; v += cluster_threads) {
      place.parts[v][of.block] = {0, 0};
      if (v % of.blocks == of.block)
        for (Dated(&copy)[Spoken::values] : place.sums) copy[v] = {0, 0};
    }
  if (of.thread < 4) spoken.rows_made[of.block][of.thread] = 0;
  {
    const int row = first_row + of.thread / R, column = of.thread % R;
    const float value = row < dim && column < rank ? arguments.start[row * arguments.start_stride + column] : 0.0f;
    shared.y[0][of.thread / R * ld + column] = value;
    spoken.y[0][lane_place<R>(row, column)] = value;
    double squares[1] = {static_cast<double>(value) * static_cast<double>(value)};
    block_sums(squares, shared.sums);
    if (of.thread == 0) spoken.start_squares[of.block] = squares[0];
  }
  cluster_barrier();  // nobody writes into the memory of a block that has not begun
  cooperative_groups::this_grid().sync();
  double all_squared[1] = {of.thread < of.blocks ? __ldcg(&spoken.start_squares[of.thread]) : 0.0};
  block_sums(all_squared, shared.sums);
  // ||Y|| stays below this: ||Y+|| <= |1 - alpha| ||Y|| + alpha (tr Sigma)^(1/2).
  const double most_y = 1.01 * fmax(all_squared[0], arguments.growth * arguments.trace);
  if (boxes > 0) wait_for(&shared.resident, 0);
  if (!(all_squared[0] > least_squared && most_y < most_squared)) return;  // as not rooted
  // One over the root of a power of four about as large as G may be.
  const double per_root_of_unit = ldexp(1.0, -ilogb(most_y * arguments.trace) / 2);
  int columns[2] = {0, 0};  // of the thread's entries in hear_g()
#pragma unroll
  for (int n = 0; n < 2; ++n)
    while ((columns[n] + 1) * (columns[n] + 2) / 2 <= min(of.thread - 32 + 96 * n, Spoken::pairs - 1)) ++columns[n];
  if (of.warp == 4) choose_polynomials(shared, arguments, static_cast<float>(first_lowest), of.lane);

  // The best iterate so far is the caller's. By one warp.
  const auto copy_best = [&](const double* y) {
    for (int e = of.lane; e < R * R; e += 32)
      if (const int row = first_row + e / R; row < dim && e % R < rank)
        arguments.best[row * arguments.best_stride + e % R] = static_cast<float>(y[e / R * ld + e % R]);
  };
  // What the pass at iterate `step` showed, by the first and the fifth warp. They meet at a barrier in memory, where
  // every lane arrives: racecheck takes a bar.sync of two warps for one of all, and names races where there are none.
  const auto record = [&](int step) {
    const unsigned date = static_cast<unsigned>(step) + 1;
    if (of.warp == 0) {
      say_norms(shared, spoken, of, shared.y[step % 3], date);
      hear_rest(shared, spoken, of, date);
      arrive(&shared.rest_heard);
      return;
    }
    const MeasuredRoot measured = measure_root(shared, shared.g[step & 1], rank, of.lane);
    wait_for(&shared.rest_heard, step & 1);
    if (logs && step > 0) write_log(shared, arguments.log, step - 1, of.lane);
    __syncwarp();
    if (of.lane == 0) decide(shared, arguments, measured);
    // sqrt(lambda_min/lambda_max) >= 1/||m||, ||m||^4 <= ||m^4||_F; the next G is another one, at first by much.
    const float other = step < 3 ? 0.05f : step < 6 ? 0.6f : 0.8f;
    choose_polynomials(shared, arguments, other * rsqrtf(sqrtf(static_cast<float>(measured.largest_fourth))), of.lane);
  };

  int step = 0;
  for (;; ++step) {
    const unsigned date = static_cast<unsigned>(step) + 1;
    const double* const y = shared.y[step % 3];
    double* const g = shared.g[step & 1];
    if (of.warp >= 4 && of.warp < 7) {
      const int which = of.warp - 4;
      say_tile(spoken, of, Spoken::yy, which, tile_product<true, false>(y, y, which == 2, which > 0), date);
    }
    float sums[2][2][4] = {};
    multiply_boxes(spoken, spoken.y[step & 1], sigma, first_box, boxes, static_cast<unsigned>(step), of, sums);
    exchange_rows(shared, of, sums, step & 1);

    // The symmetric part of Y'W, and the sums over all blocks.
    if (of.warp >= 1 && of.warp < 4) {
      const int which = of.warp - 1;
      const double2 yw = tile_product<true, false>(y, shared.w, which == 2, which > 0),
                    wy = tile_product<true, false>(shared.w, y, which == 2, which > 0);
      say_tile(spoken, of, Spoken::g, which, {0.5 * (yw.x + wy.x), 0.5 * (yw.y + wy.y)}, date);
      hear_g(spoken, of, rank, columns, date, g);
    } else if (of.warp >= 5) {
      add_up_own(spoken, of, Spoken::g, Spoken::yy, date);
    } else {
      if (of.warp == 0 && of.lane < R) {
        double squares = 0;
        for (int row = 0; row < R; ++row)
          squares = fma(shared.w[row * ld + of.lane], shared.w[row * ld + of.lane], squares);
        say(spoken.places[date & 1].parts[Spoken::ww + of.lane][of.block], squares, date);
      }
      __syncwarp();
      if (step > 0) record(step - 1);
    }
    __syncthreads();
    if (step > 0 && shared.ended != Ended::stepped) {
      --step;
      break;
    }

    const ResidentRoot root = find_root(shared, of, g, per_root_of_unit, arguments.polynomials.count);
    // Shortened by half of what it may be too long, M is feasible.
    const double feasible = root.scale * (1 - 0.5 * root.orthogonality);
    const bool steps_on = step < arguments.steps;
    if (of.leads) {
      blend_rows(shared, spoken, of, shared.m[root.now], feasible, arguments.alpha, step, steps_on);
    } else if (of.warp >= 5) {
      add_up_own(spoken, of, Spoken::yy, Spoken::norms, date);
      if (step > 0) add_up_own(spoken, of, Spoken::norms, Spoken::values, date - 1);
    } else {
      if (of.lane == 0) shared.root = root;
      if (step > 0 && shared.is_best) copy_best(shared.y[(step - 1) % 3]);
    }
    __syncthreads();
    if (!steps_on) {
      if (of.warp == 0 || of.warp == 4) record(step);
      break;
    }
  }
  // The norms of the last pass are still to be added up.
  __syncthreads();
  const unsigned date = static_cast<unsigned>(step) + 1;
  if (of.warp >= 5) add_up_own(spoken, of, Spoken::norms, Spoken::values, date);
  if (of.warp == 4 && shared.is_best) copy_best(shared.y[step % 3]);
  if (of.warp == 4 && logs) {
    const Dated* const from[1] = {of.lane < norm_count ? &spoken.places[date & 1].sums[0][Spoken::norms + of.lane]
                                                       : nullptr};
    double norm[1];
    hear(from, {date}, norm);
    if (of.lane < norm_count) shared.heard[Spoken::norms - Spoken::yy + of.lane] = norm[0];
    __syncwarp();
    write_log(shared, arguments.log, step, of.lane);
  }
  cluster_barrier();  // nobody leaves while the other block still writes into its memory
#endif
}

}  // namespace
}  // namespace itspace::cuda::kernels
