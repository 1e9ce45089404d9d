// SPDX-License-Identifier: Apache-2.0
//
// How a product with features (features_product.cuh) is laid out on a device and in its memory.
#pragma once

#include "cuda/cluster_product.cuh"
#include "cuda/kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace itspace::cuda::kernels {

constexpr int features_rank = 16;
constexpr int most_features_stages = 8, most_features_cluster = 8;
constexpr int most_features_boxes = 4;  // of 32 columns, of a warp

struct FeaturesLayout {
  int dim, rank_blocks, tiles, clusters;  // blocks of a cluster, tiles of all of Z
  int sweeps, stages, stages_at, rows_per_block;
  long long samples;
  const float* shift;     // s
  const double* weights;  // w_i; none: all 1
  const double* delta;
  double factor, total;  // of the sum of the rows
  float* partial;        // [clusters][features_values()]
  double* delta_y;       // [rank_blocks][warps][features_rank]
};

// Columns of a cluster, of which the last may be beyond Z; and values of W in the order of the warps.
__host__ __device__ constexpr int cluster_columns(int rank_blocks, int boxes) {
  return rank_blocks * cluster_warps * boxes * box_columns;
}
// Where W of a cluster lies in memory: as the lanes that hold it write it.
__device__ __forceinline__ int partial_place(int row, int column) {
  return ((row >> 5) * features_rank + column) * box_columns + (row & 31);
}

// Groups of eight rows of a tile: what registers and shared memory hold.
template <int Boxes>
constexpr int features_groups = Boxes <= 2 ? 4 : 2;

// The sum of what clusters `first`, first + step, ... have left of four rows of W, `row` a multiple of 4.
__device__ __forceinline__ void add_parts_of(const FeaturesLayout& layout, int cluster_values, int row, int column,
                                             int first, int step, double (&sums)[4]) {
  const auto* from = reinterpret_cast<const float4*>(layout.partial + partial_place(row, column));
#pragma unroll 17
  for (int c = first; c < layout.clusters; c += step) {
    const float4 part = __ldcg(from + static_cast<std::size_t>(c) * (cluster_values / 4));
    sums[0] += part.x;
    sums[1] += part.y;
    sums[2] += part.z;
    sums[3] += part.w;
  }
}

__device__ __forceinline__ double delta_times_y(const FeaturesLayout& layout, int column) {
  double sum = 0;
#pragma unroll 8
  for (int w = 0; w < layout.rank_blocks * cluster_warps; ++w)
    sum += __ldcg(layout.delta_y + w * features_rank + column);
  return sum;
}
// An entry of W from the sum of its parts.
__device__ __forceinline__ float finished(const FeaturesLayout& layout, int row, double sum, double delta_y) {
  return static_cast<float>(layout.factor * sum - layout.total * __ldg(layout.delta + row) * delta_y);
}

// Blocks of a cluster for rows of this length, and boxes of a warp.
struct FeaturesShape {
  int cluster, boxes;
};
inline FeaturesShape features_shape(int dim) {
  constexpr int box_of_block = cluster_warps * box_columns, most = most_features_boxes * box_of_block;
  const int cluster = (dim + most - 1) / most;
  return {cluster, (dim + cluster * box_of_block - 1) / (cluster * box_of_block)};
}

// Calls visit(std::integral_constant<int, boxes>).
template <class Visit>
auto with_boxes(int boxes, const Visit& visit) {
  switch (boxes) {
    case 1:
      return visit(std::integral_constant<int, 1>{});
    case 2:
      return visit(std::integral_constant<int, 2>{});
    case 3:
      return visit(std::integral_constant<int, 3>{});
    default:
      return visit(std::integral_constant<int, 4>{});
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
    constexpr int tile_rows = 8 * features_groups<Boxes>;
    constexpr Index most_tiles = 1 << 30;  // of all sweeps
    const auto over = [](Index count, Index size) { return (count + size - 1) / size; };
    const Index tiles = over(samples, tile_rows), most_clusters = limits.processors / cluster;
    if (cluster > most_features_cluster || most_clusters == 0 || tiles > most_tiles / sweeps) return;
    // As many as there are tiles, or more where that leaves a block with few rows of W.
    const Index launched = std::min(most_clusters, std::max(tiles, over(dim, cluster * 16)));
    blocks = static_cast<int>(launched) * cluster;
    most_rows = static_cast<int>(over(over(dim, blocks), 4)) * 4;
    box = {box_columns, tile_rows, true};
    constexpr std::size_t atom = 1024;  // in which the copy engine exchanges units
    constexpr std::size_t stage = cluster_warps * Boxes * tile_rows * box_columns * sizeof(float);
    const std::size_t stages_at =
        (bytes_before + static_cast<std::size_t>(most_rows) * bytes_of_row + atom - 1) / atom * atom;
    const std::size_t fixed =
        stages_at + 2 * static_cast<std::size_t>(cluster) * tile_rows * features_rank * sizeof(float);
    const std::size_t most = static_cast<std::size_t>(limits.shared_bytes);
    const int stages =
        most < fixed ? 0 : static_cast<int>(std::min<std::size_t>(most_features_stages, (most - fixed) / stage));
    shared_bytes = fixed + static_cast<std::size_t>(stages) * stage;
    fits = stages >= 2;
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
    return static_cast<std::size_t>(cluster) * cluster_warps * features_rank * sizeof(double);
  }

  FeaturesLayout layout_for(const FeaturesTerms<float>& terms, unsigned char* memory) const {
    FeaturesLayout full = layout;
    full.shift = terms.shift;
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
