// SPDX-License-Identifier: Apache-2.0
//
// W = sum_i w_i (z_i - s)(z_i - s)'Y - total delta delta'Y in float for the rows z_i of a feature set, by the tensor
// cores: one sweep over Z, which comes from memory once.
//
// A cluster of blocks has some rows of Z, a block some of their columns, and a warp some of these, up to 128, of which
// it keeps the rows of Y and the sums of W in registers from the first row to the last. It goes over Z in tiles of 16
// rows, which the copy engine brings, several ahead, for this warp alone:
//
//   (Z - 1 s') Y of the warp's columns ─▶ sum over the block's warps ─▶ over the cluster's blocks, times w_i: P
//   of the tile before, meanwhile: W += (Z - 1 s')' P
//
// No warp waits for what is not long done: P of a tile is on its way while W takes in the tile before. At the end each
// cluster leaves its W in memory, and these are added up in one order: same inputs, same bits.
//
// The tensor cores multiply as in cluster_product.cuh, each number in two parts; of the features the second part is
// what the tensor cores cut off of the first. Their sums are of 32 columns, or 16 rows.
#pragma once

#include "cuda/features_layout.cuh"
#include "cuda/features_tile.cuh"

namespace itspace::cuda::kernels {

template <int Boxes>
struct FeaturesShared {
  alignas(16) float projected[cluster_warps][features_groups<Boxes> * 8 * features_rank];
  alignas(16) float shift[cluster_warps * Boxes * box_columns];
  // What a stage of a warp holds has come; all warps have projected; all blocks have.
  unsigned long long arrived[cluster_warps][most_features_stages], all_projected, whole[2];
};

// A number into another block's shared memory, where it is counted.
__device__ __forceinline__ void send_counted(unsigned to, unsigned counter, unsigned block, float value) {
  unsigned there, counter_there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(block));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counter_there) : "r"(counter), "r"(block));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there),
               "f"(value), "r"(counter_there)
               : "memory");
}
__device__ __forceinline__ void wait_for_cluster(unsigned long long* arrived, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(shared_address(arrived)),
      "r"(parity)
      : "memory");
}

template <int Boxes>
class FeaturesProduct {
 public:
  using Layout = FeaturesLayout;
  using Shared = FeaturesShared<Boxes>;
  static constexpr int groups = features_groups<Boxes>;
  static constexpr int R = features_rank, tiles = R / 8, tile_rows = 8 * groups;
  static constexpr int each = tile_rows * R / cluster_threads;  // numbers of a tile's P that a thread adds up
  static constexpr int box_values = tile_rows * box_columns, slice_values = Boxes * box_values;

  __device__ static void put_y(float* y, int row, int column, float value) { y[lane_place<R>(row, column)] = value; }

  // `stages`: [warps][stages][Boxes][box_values], then [2][rank_blocks][tile_rows R] for whole tiles of P.
  __device__ FeaturesProduct(const CUtensorMap* z, const Layout& layout, float* stages, Shared& shared)
      : z_(z),
        layout_(layout),
        shared_(shared),
        warp_(static_cast<int>(threadIdx.x) >> 5),
        lane_(static_cast<int>(threadIdx.x) & 31),
        rank_(static_cast<int>(rank_in_cluster())),
        slice_(stages + warp_ * layout.stages * slice_values),
        shift_(shared.shift + warp_ * Boxes * box_columns),
        whole_(stages + cluster_warps * layout.stages * slice_values),
        first_column_((rank_ * cluster_warps + warp_) * Boxes * box_columns) {
    const int cluster = static_cast<int>(blockIdx.x) / layout.rank_blocks;
    const auto begin = [&](int of) {
      return static_cast<int>(static_cast<long long>(of) * layout.tiles / layout.clusters);
    };
    const bool works = cluster < layout.clusters;
    first_tile_ = works ? begin(cluster) : 0;
    count_ = works ? begin(cluster + 1) - first_tile_ : 0;
    to_load_ = count_ * layout.sweeps;
    constexpr int columns = cluster_warps * Boxes * box_columns;
    for (int i = static_cast<int>(threadIdx.x); i < columns; i += cluster_threads)
      shared_.shift[i] = rank_ * columns + i < layout.dim ? layout.shift[rank_ * columns + i] : 0.0f;
    if (threadIdx.x == 0) {
      for (auto& of_warp : shared_.arrived)
        for (auto& stage : of_warp) make_barrier(&stage, 1);
      make_barrier(&shared_.all_projected, cluster_warps);
      for (auto& whole : shared_.whole) make_barrier(&whole, cluster_warps + 1);
      fence_copies();
    }
    __syncthreads();
    cluster_barrier();  // nobody writes into the memory of a block that has not begun
  }

  // The i-th of this block's rows of W, and how many there are.
  __device__ int row(int i) const { return static_cast<int>(blockIdx.x) * layout_.rows_per_block + i; }
  __device__ int rows() const { return max(0, min(layout_.rows_per_block, layout_.dim - row(0))); }

  // Brings what a sweep begins with, unless that is on its way.
  __device__ void prefetch() {
    const int most = min(to_load_, static_cast<int>(used_) + min(layout_.stages, count_));
    while (loaded_ < most) load_next();
  }

  // One sweep. y: by put_y(), rows to a multiple of the cluster's columns, of zeros. Sweeps go back and forth:
  // what was read last is still in the second-level cache.
  __device__ void multiply(const float* y, bool backwards) {
    const int g = lane_ >> 2, t = lane_ & 3;
    if (count_ == 0) return;
    prefetch();
    float of_y[2 * Boxes][tiles][4];  // row 16 h + 4 t + i of this warp's rows, column 8 j + g
#pragma unroll
    for (int h = 0; h < 2 * Boxes; ++h)
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        const auto* from = reinterpret_cast<const float4*>(y) + ((first_column_ / 16 + h) * tiles + j) * 32 + lane_;
        *reinterpret_cast<float4*>(of_y[h][j]) = __ldcg(from);
      }
    if (blockIdx.x < static_cast<unsigned>(layout_.rank_blocks)) leave_delta_y(of_y);
    float sums[Boxes][4][4];  // column g (and + 8) of rows 8 t + i (and + 4) of a box: [i][...]
#pragma unroll
    for (int box = 0; box < Boxes; ++box)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[box][i][k] = 0;

    // Of a tile's P this thread adds up the numbers of this column and row, 16 rows apart.
    const int of_lane = (static_cast<int>(threadIdx.x) >> 2) & 31, i = static_cast<int>(threadIdx.x) & 3;
    const int row = (static_cast<int>(threadIdx.x) >> 7) * 8 + turned_row(2 * (of_lane & 3) + (i & 1));
    const int column = (of_lane >> 2) + 8 * (i >> 1);
    const auto weights_of = [&](int tile, double(&weights)[each]) {
      const long long first = static_cast<long long>(nth(tile, backwards)) * tile_rows + row;
#pragma unroll
      for (int n = 0; n < each; ++n) {
        weights[n] = 0;
        if (tile < count_ && first + 16 * n < layout_.samples)
          weights[n] = layout_.weights != nullptr ? __ldg(layout_.weights + first + 16 * n) : 1;
      }
    };
    double coming[each];
    weights_of(0, coming);
    for (int tile = -1; tile < count_; ++tile) {
      const bool projects = tile + 1 < count_;
      float p[groups][4] = {};
      double weights[each];
#pragma unroll
      for (int n = 0; n < each; ++n) weights[n] = coming[n];
      weights_of(tile + 2, coming);
      if constexpr (Boxes > 2) {  // split anew for each tile: both parts would take all registers
#pragma unroll
        for (int h = 0; h < 2 * Boxes; ++h)
#pragma unroll
          for (int j = 0; j < tiles; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k) asm volatile("" : "+f"(of_y[h][j][k]));
      }
      if (projects) {
        wait_for(&shared_.arrived[warp_][project_.stage], project_.turn & 1);
        const float* const next = slice_ + project_.stage * slice_values;
#pragma unroll
        for (int box = 0; box < Boxes; ++box)
          project<groups>(next + box * box_values, shift_ + box * box_columns, of_y[2 * box], of_y[2 * box + 1], lane_,
                          p);
        project_.advance(layout_.stages);
        ++arrived_;
      }
      // Once P of the tile before is whole, all have read what the warps had projected of it.
      if (tile >= 0) wait_for_cluster(&shared_.whole[used_ & 1], (used_ >> 1) & 1);
      if (projects) {
        auto* to = reinterpret_cast<float4*>(shared_.projected[warp_]) + lane_;
#pragma unroll
        for (int m = 0; m < groups; ++m) to[32 * m] = {p[m][0], p[m][1], p[m][2], p[m][3]};
        __syncwarp();
        if (lane_ == 0) arrive(&shared_.all_projected);
      }
      if (tile >= 0) {
        const TileParts<groups> whole = read_whole();
        const float* const here = slice_ + add_.stage * slice_values;
#pragma unroll
        for (int box = 0; box < Boxes; ++box)
          take_in<groups>(here + box * box_values, shift_ + box * box_columns, whole, lane_, sums[box]);
        add_.advance(layout_.stages);
        ++used_;
        __syncwarp();
        if (tile + layout_.stages < count_) load_next();
      }
      if (projects) send_sums(weights, row, column);
    }
    float* const to = layout_.partial + static_cast<std::size_t>(blockIdx.x / layout_.rank_blocks) *
                                            cluster_columns(layout_.rank_blocks, Boxes) * R;
#pragma unroll
    for (int box = 0; box < Boxes; ++box)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        auto* at =
            reinterpret_cast<float4*>(to + partial_place(first_column_ + box * box_columns + 8 * t, g + 8 * half));
        const auto& of = sums[box];
        __stcg(at, float4{of[0][2 * half], of[1][2 * half], of[2][2 * half], of[3][2 * half]});
        __stcg(at + 1, float4{of[0][2 * half + 1], of[1][2 * half + 1], of[2][2 * half + 1], of[3][2 * half + 1]});
      }
  }

  // This block's rows of W, once all blocks have made their sweep. What clusters have left is added up by four threads.
  __device__ void add_up(float* w_rows) {
    constexpr int parts = 4, at_once = cluster_threads / parts;
    const int values = cluster_columns(layout_.rank_blocks, Boxes) * R, fours = layout_.rows_per_block / 4;
    const int part = static_cast<int>(threadIdx.x) / at_once, mine = static_cast<int>(threadIdx.x) % at_once;
    const int count = rows();
    auto* const of_parts = reinterpret_cast<double(*)[at_once][4]>(shared_.projected);
    for (int first = 0; first < fours * R; first += at_once) {
      const int e = first + mine, four = 4 * (e % fours), column = e / fours;
      const bool any = four < count && column < R;
      double sums[4] = {};
      if (any) add_parts_of(layout_, values, row(four), column, part, parts, sums);
      for (int i = 0; i < 4; ++i) of_parts[part][mine][i] = sums[i];
      const double delta_y = any && part == 0 ? delta_times_y(layout_, column) : 0;
      __syncthreads();
      if (any && part == 0)
        for (int i = 0; i < 4 && four + i < count; ++i) {
          for (int p = 1; p < parts; ++p) sums[i] += of_parts[p][mine][i];
          w_rows[(four + i) * R + column] = finished(layout_, row(four + i), sums[i], delta_y);
        }
      __syncthreads();
    }
  }

  // Nothing may be on its way into the shared memory of a block that has ended.
  __device__ void finish() {
    for (; arrived_ < loaded_; ++arrived_, project_.advance(layout_.stages))
      wait_for(&shared_.arrived[warp_][project_.stage], project_.turn & 1);
  }
  __device__ void wait_for_resident_rows() {}

 private:
  __device__ int nth(int tile, bool backwards) const {
    return first_tile_ + (backwards ? count_ - 1 - tile : tile);
  }

  // The tile that comes next into the next stage.
  __device__ void load_next() {
    if (lane_ == 0) {
      unsigned long long* const arrived = &shared_.arrived[warp_][load_.stage];
      expect_bytes(arrived, slice_values * 4u);
#pragma unroll
      for (int box = 0; box < Boxes; ++box)
        copy_box(slice_ + load_.stage * slice_values + box * box_values, z_, first_column_ + box * box_columns,
                 nth(load_tile_, load_backwards_) * tile_rows, arrived);
    }
    load_.advance(layout_.stages);
    ++loaded_;
    if (++load_tile_ == count_) {
      load_tile_ = 0;
      load_backwards_ = !load_backwards_;
    }
  }

  // delta'Y of this warp's columns.
  __device__ void leave_delta_y(const float (&of_y)[2 * Boxes][tiles][4]) const {
    const int t = lane_ & 3;
    double sums[tiles] = {};
#pragma unroll
    for (int h = 0; h < 2 * Boxes; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = first_column_ + 16 * h + 4 * t + i;
        const double delta = column < layout_.dim ? __ldg(layout_.delta + column) : 0;
#pragma unroll
        for (int j = 0; j < tiles; ++j) sums[j] = fma(delta, static_cast<double>(of_y[h][j][i]), sums[j]);
      }
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      sums[j] += __shfl_xor_sync(~0u, sums[j], 1);
      sums[j] += __shfl_xor_sync(~0u, sums[j], 2);
      if (t == 0) __stcg(layout_.delta_y + (rank_ * cluster_warps + warp_) * R + 8 * j + (lane_ >> 2), sums[j]);
    }
  }

  // The sums over this block's warps of what they have projected, some of each thread, to all blocks.
  __device__ __forceinline__ void send_sums(const double (&weights)[each], int row, int column) {
    const unsigned tile = sent_++;
    unsigned long long* const counter = &shared_.whole[tile & 1];
    const int others = layout_.rank_blocks - 1;
    wait_for(&shared_.all_projected, tile & 1);
    if (threadIdx.x == 0) expect_bytes(counter, static_cast<unsigned>(others) * tile_rows * R * 4u);
#pragma unroll
    for (int n = 0; n < each; ++n) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < cluster_warps; ++w) sum += shared_.projected[w][threadIdx.x + n * cluster_threads];
      sum *= static_cast<float>(weights[n]);
      // Where take_in() looks for it.
      const int place =
          ((((row >> 3) + 2 * n) * 32 + (column & 7) * 4 + ((row & 7) >> 1)) * 2 + (row & 1)) * 2 + (column >> 3);
      float* const to = whole_ + ((tile & 1) * layout_.rank_blocks + rank_) * tile_rows * R + place;
      *to = sum;
#pragma unroll 1
      for (int other = 1; other <= others; ++other) {
        const int block = rank_ + other <= others ? rank_ + other : rank_ + other - layout_.rank_blocks;
        send_counted(shared_address(to), shared_address(counter), static_cast<unsigned>(block), sum);
      }
    }
    __syncwarp();
    if (lane_ == 0) arrive(counter);
  }

  // The next tile's P, of all blocks.
  __device__ __forceinline__ TileParts<groups> read_whole() const {
    TileParts<groups> parts;
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const auto* from = reinterpret_cast<const float4*>(whole_) +
                         ((used_ & 1) * layout_.rank_blocks * groups + static_cast<unsigned>(m)) * 32 + lane_;
      float4 p = from[0];
#pragma unroll 1
      for (int block = 1; block < layout_.rank_blocks; ++block) {
        const float4 more = from[block * groups * 32];
        p.x += more.x;
        p.y += more.y;
        p.z += more.z;
        p.w += more.w;
      }
      split(p.x, parts.high[m][0], parts.low[m][0]);
      split(p.y, parts.high[m][1], parts.low[m][1]);
      split(p.z, parts.high[m][2], parts.low[m][2]);
      split(p.w, parts.high[m][3], parts.low[m][3]);
    }
    return parts;
  }

  const CUtensorMap* z_;
  const Layout& layout_;
  Shared& shared_;
  int warp_, lane_, rank_;
  float* slice_;
  const float* shift_;  // of this warp's columns
  float* whole_;
  int first_column_, first_tile_, count_;
  StageTurn project_, add_, load_;
  unsigned used_ = 0, sent_ = 0;  // tiles so far, over all sweeps
  int loaded_ = 0, arrived_ = 0, to_load_, load_tile_ = 0;
  bool load_backwards_ = false;
};

}  // namespace itspace::cuda::kernels
