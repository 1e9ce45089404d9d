// SPDX-License-Identifier: Apache-2.0
//
// How a product with features (features_product.cuh) is laid out on a device and in its memory.
#pragma once

#include "cuda/cluster_product.cuh"
#include "cuda/kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

namespace itspace::cuda::kernels {

constexpr int features_rank = 16;
constexpr int most_features_stages = 16, most_features_cluster = 8;
constexpr int features_slots = 1;       // for what was projected of a tile: it is read at once
constexpr int most_features_boxes = 8;  // of 32 columns, of a warp
// Half of a block's warps project, the others add up: so many have columns of their own in each.
constexpr int column_warps = cluster_warps / 2, column_threads = 32 * column_warps;

struct FeaturesLayout {
  int dim, rank_blocks, tiles, clusters;  // blocks of a cluster, tiles of all of Z
  int sweeps, stages, stages_at, rows_per_block;
  bool whole_slices;  // boxes of a unit come in one copy
  long long samples;
  const float* shift;     // s
  const float* scale;     // c, powers of four
  const double* weights;  // w_i; none: all 1
  const double* delta;
  double factor, total;  // of the sum of the rows
  float* partial;        // [clusters], by partial_place()
  double* delta_y;       // [rank_blocks][column_warps][features_rank]
};

// Columns of a cluster, of which the last may be beyond Z; and values of W in the order of the warps.
__host__ __device__ constexpr int cluster_columns(int rank_blocks, int boxes) {
  return rank_blocks * column_warps * boxes * box_columns;
}
// Where W of a cluster lies in memory: four rows of a column side by side, then the columns, so that both the lanes
// that hold it and those that add it up meet whole lines.
__device__ __forceinline__ int partial_place(int row, int column) {
  return ((row >> 2) * features_rank + column) * 4 + (row & 3);
}

// Sixteens of rows of a tile: what registers and shared memory hold.
template <int Boxes>
constexpr int features_sixteens = Boxes <= 2 ? 2 : 1;

// Boxes of a warp's part of a tile that come and go together.
template <int Boxes>
constexpr int features_unit_boxes = Boxes <= 2 ? Boxes : Boxes / 2;

// Four rows of a column of W, `row` a multiple of 4, by four lanes side by side, each of which gets one of them: the
// sum of what all clusters have left of it. By all lanes of a warp; nothing of use where `row` is beyond W.
//
// What is read has come from other blocks, each time some 700 clocks away: all of it is asked for before any is used.
// What may not be there is read elsewhere, since a condition would keep the compiler from that.
__device__ __forceinline__ float finished_row(const FeaturesLayout& layout, int cluster_values, int row, int column) {
  constexpr int lanes = 4, at_once = 17;
  constexpr int most_delta_parts = most_features_cluster * column_warps / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  if (row >= layout.dim) row = 0;
  const double delta = __ldg(layout.delta + min(row + lane, layout.dim - 1));
  double delta_parts[most_delta_parts];
#pragma unroll
  for (int n = 0; n < most_delta_parts; ++n)
    delta_parts[n] = n < layout.rank_blocks * column_warps / lanes
                         ? __ldcg(layout.delta_y + (n * lanes + lane) * features_rank + column)
                         : 0;
  double sums[4] = {};
  const auto* from = reinterpret_cast<const float4*>(layout.partial + partial_place(row, column));
  const int apart = cluster_values / 4;
  const auto add = [&](int first) {
    float4 parts[at_once];
#pragma unroll
    for (int n = 0; n < at_once; ++n)
      parts[n] = __ldcg(from + min(first + n * lanes + lane, layout.clusters - 1) * apart);
#pragma unroll
    for (int n = 0; n < at_once; ++n) {
      const bool is_there = first + n * lanes + lane < layout.clusters;
      sums[0] += is_there ? parts[n].x : 0;
      sums[1] += is_there ? parts[n].y : 0;
      sums[2] += is_there ? parts[n].z : 0;
      sums[3] += is_there ? parts[n].w : 0;
    }
  };
  add(0);
#pragma unroll 1
  for (int first = at_once * lanes; first < layout.clusters; first += at_once * lanes) add(first);
  double delta_y = 0;
#pragma unroll
  for (const double part : delta_parts) delta_y += part;
  delta_y += __shfl_xor_sync(~0u, delta_y, 1);
  delta_y += __shfl_xor_sync(~0u, delta_y, 2);
#pragma unroll
  for (double& sum : sums) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
  }
  const double sum = lane < 2 ? (lane == 0 ? sums[0] : sums[1]) : lane == 2 ? sums[2] : sums[3];
  return static_cast<float>(layout.factor * sum - layout.total * delta * delta_y);
}

// Blocks of a cluster for rows of this length, and boxes of a warp.
struct FeaturesShape {
  int cluster, boxes;
};
inline FeaturesShape features_shape(int dim) {
  constexpr int box_of_block = column_warps * box_columns, most = most_features_boxes * box_of_block;
  const int cluster = (dim + most - 1) / most;
  const int boxes = (dim + cluster * box_of_block - 1) / (cluster * box_of_block);
  return {cluster, boxes + boxes % 2};
}

// Calls visit(std::integral_constant<int, boxes>).
template <class Visit>
auto with_boxes(int boxes, const Visit& visit) {
  switch (boxes) {
    case 2:
      return visit(std::integral_constant<int, 2>{});
    case 4:
      return visit(std::integral_constant<int, 4>{});
    case 6:
      return visit(std::integral_constant<int, 6>{});
    default:
      return visit(std::integral_constant<int, 8>{});
  }
}

template <int Boxes>
struct FeaturesPlan {
  FeaturesLayout layout{};
  BoxSize box{};
  int blocks = 0, cluster, most_rows = 0;
  bool fits = false;
  std::size_t shared_bytes = 0;

  // `bytes_before` and `bytes_of_row`: of shared memory before the stages, and for each of the block's rows of W.
  FeaturesPlan(int dim, Index samples, int sweeps, const Limits& limits, std::size_t bytes_before,
               std::size_t bytes_of_row)
      : cluster(features_shape(dim).cluster) {
    constexpr int tile_rows = 16 * features_sixteens<Boxes>;
    constexpr int unit_boxes = features_unit_boxes<Boxes>;
    constexpr Index most_tiles = 1 << 29;  // of all sweeps
    const auto over = [](Index count, Index size) { return (count + size - 1) / size; };
    const Index tiles = over(samples, tile_rows), most_clusters = limits.processors / cluster;
    if (cluster > most_features_cluster || most_clusters == 0 || tiles > most_tiles / sweeps) return;
    if (samples > std::numeric_limits<int>::max()) return;
    // As many as there are tiles, or more where that leaves a block with few rows of W.
    const Index launched = std::min(most_clusters, std::max(tiles, over(dim, cluster * 16)));
    blocks = static_cast<int>(launched) * cluster;
    most_rows = static_cast<int>(over(over(dim, blocks), 4)) * 4;
    // (Where a row ends within a box, a copy of several boxes would read what follows it.)
    layout.whole_slices = dim % box_columns == 0;
    box = {box_columns, tile_rows, true, layout.whole_slices ? unit_boxes : 1};
    constexpr std::size_t atom = 1024;  // in which the copy engine exchanges units
    constexpr std::size_t stage = column_warps * unit_boxes * tile_rows * box_columns * sizeof(float);
    const std::size_t stages_at =
        (bytes_before + static_cast<std::size_t>(most_rows) * bytes_of_row + atom - 1) / atom * atom;
    const std::size_t fixed = stages_at + features_slots * column_warps * static_cast<std::size_t>(cluster) *
                                              tile_rows * features_rank * sizeof(float);
    const std::size_t most = static_cast<std::size_t>(limits.shared_bytes);
    const int stages =
        most < fixed ? 0 : static_cast<int>(std::min<std::size_t>(most_features_stages, (most - fixed) / stage));
    shared_bytes = fixed + static_cast<std::size_t>(stages) * stage;
    fits = stages >= 2 * (Boxes / unit_boxes);
    layout.dim = dim;
    layout.rank_blocks = cluster;
    layout.tiles = static_cast<int>(tiles);
    layout.clusters = static_cast<int>(std::min(launched, tiles));
    layout.sweeps = sweeps;
    layout.stages = stages;
    layout.stages_at = static_cast<int>(stages_at);
    layout.rows_per_block = most_rows;
    layout.samples = samples;
  }

  int columns() const { return cluster_columns(cluster, Boxes); }
  // Of W that clusters leave, and of delta'Y.
  std::size_t partial_bytes() const {
    return static_cast<std::size_t>(layout.clusters) * static_cast<std::size_t>(columns()) * features_rank *
           sizeof(float);
  }
  std::size_t delta_bytes() const {
    return static_cast<std::size_t>(cluster) * column_warps * features_rank * sizeof(double);
  }

  FeaturesLayout layout_for(const FeaturesTerms<float>& terms, unsigned char* memory) const {
    FeaturesLayout full = layout;
    full.shift = terms.shift;
    full.scale = terms.scale;
    full.weights = terms.weights;
    full.delta = terms.delta;
    full.factor = terms.factor;
    full.total = terms.total;
    full.partial = reinterpret_cast<float*>(memory);
    full.delta_y = reinterpret_cast<double*>(memory + partial_bytes());
    return full;
  }
};

}  // namespace itspace::cuda::kernels
