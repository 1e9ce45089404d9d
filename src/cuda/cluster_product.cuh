// SPDX-License-Identifier: Apache-2.0
//
// W = Sigma Y in float for a dense Sigma, by the tensor cores, two blocks of threads (a cluster) at a time.
//
// A cluster makes some rows of W. Each of its blocks has half of Sigma's columns, so that it needs half of Y only, and
// leaves partial sums of all of the cluster's rows; these go to the block that owns the row through the cluster's
// shared memory, and are added up there in one order. Tiles of Sigma (and Y, in the order in which lanes need it) are
// brought in by the copy engine, or stay in shared memory from step to step where they fit.
//
// Tensor cores multiply 11 digits at a time. Each number is split, x = high + low, and high·high + high·low + low·high
// is summed: of a product 2^-21 is lost at most, about what float32 loses. Tensor cores cut sums off rather than round
// them, so that only 32 terms are summed there; these sums are added up by rounded additions.
#pragma once

#include "cuda/fused_device.cuh"
#include "cuda/row_product.cuh"

#include <algorithm>
#include <cstdint>

namespace itspace::cuda::kernels {

constexpr int cluster_blocks = 2;  // (of four an H200 runs 30 clusters at once, of two 66: all of its multiprocessors)
constexpr int cluster_threads = 256, cluster_warps = cluster_threads / 32;
constexpr int box_columns = 32;                 // of Sigma: 128 bytes, the unit that the copy engine permutes
constexpr int warp_rows = 32, pass_most = 256;  // rows of a warp, and of all warps
constexpr int cluster_most_stages = 4;

// Where a number of Y lies: the four rows of Y that a lane meets in one load of a row of Sigma side by side.
template <int R>
__device__ __forceinline__ std::size_t lane_place(int row, int column) {
  const int lane = (column & 7) * 4 + ((row >> 2) & 3);
  return ((static_cast<std::size_t>(row >> 4) * (R / 8) + (column >> 3)) * 32 + lane) * 4 + (row & 3);
}

struct ClusterLayout {
  int dim, pass_rows, passes;  // of a cluster
  int boxes_per_block;         // half of the columns
  int boxes_per_stage, stages, stages_at;
  bool resident;
};

// How many warps share the same rows.
__host__ __device__ constexpr int slices_of(int pass_rows) {
  const int groups = pass_rows / warp_rows;
  return groups <= 1 ? 8 : groups <= 2 ? 4 : groups <= 4 ? 2 : 1;
}

template <int R>
struct ClusterShared {
  // Partial sums of this block's rows: from each block of the cluster and each of its warps that have the same rows.
  alignas(16) float partial[2][pass_most * R];
  // Of each stage: what it holds has come; all warps have done with it. And all of Sigma that stays.
  unsigned long long arrived[cluster_most_stages], done[cluster_most_stages], resident;
};

__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Two numbers into the same place of another block's shared memory.
__device__ __forceinline__ void send(float* to, unsigned block, float a, float b) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(to)), "r"(block));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(a), "f"(b) : "memory");
}

// c += a b, a 16 x 8, b 8 x 8.
__device__ __forceinline__ void multiply_tile(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// x = high + low, high rounded to 11 digits; of low the tensor cores take as many.
__device__ __forceinline__ void split(float x, unsigned& high, unsigned& low) {
  high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(x - __uint_as_float(high));
}

// Lanes that load together meet rows four apart: these are in the other half of the banks.
__device__ __forceinline__ int turned_row(int row) {
  return (row & 1) << 2 | (row & 2) | row >> 2;
}

// sums += 32 rows of a box times the box's rows of Y. `tile` is at the lane's first row, whose number modulo 8 is
// `turned`: the copy engine has exchanged 16-byte units by it. rows_of_y(h, j): rows 16 h + 4 t + i of Y, of column
// 8 j + g.
template <int R, class RowsOfY>
__device__ __forceinline__ void add_box(const float* tile, RowsOfY rows_of_y, int turned, int t,
                                        float (&sums)[2][R / 8][4]) {
  constexpr int tiles = R / 8;
  float of_box[2][tiles][4];
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int j = 0; j < tiles; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) of_box[m][j][i] = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    // b[j][i]: row 16 h + 4 t + i of Y, column 8 j + g.
    unsigned b_high[tiles][4], b_low[tiles][4];
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      const float4 b = rows_of_y(h, j);
      split(b.x, b_high[j][0], b_low[j][0]);
      split(b.y, b_high[j][1], b_low[j][1]);
      split(b.z, b_high[j][2], b_low[j][2]);
      split(b.w, b_high[j][3], b_low[j][3]);
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      // a: columns 16 h + 4 t + i of rows g and g + 8.
      unsigned a_high[2][4], a_low[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 a =
            *reinterpret_cast<const float4*>(tile + (m * 16 + half * 8) * box_columns + ((4 * h + t) ^ turned) * 4);
        split(a.x, a_high[half][0], a_low[half][0]);
        split(a.y, a_high[half][1], a_low[half][1]);
        split(a.z, a_high[half][2], a_low[half][2]);
        split(a.w, a_high[half][3], a_low[half][3]);
      }
      // Which eight columns are multiplied at once, and in which order, does not matter.
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const unsigned high[4] = {a_high[0][e], a_high[1][e], a_high[0][e + 1], a_high[1][e + 1]};
        const unsigned low[4] = {a_low[0][e], a_low[1][e], a_low[0][e + 1], a_low[1][e + 1]};
#pragma unroll
        for (int j = 0; j < tiles; ++j) multiply_tile(of_box[m][j], low, b_high[j][e], b_high[j][e + 1]);
#pragma unroll
        for (int j = 0; j < tiles; ++j) multiply_tile(of_box[m][j], high, b_low[j][e], b_low[j][e + 1]);
#pragma unroll
        for (int j = 0; j < tiles; ++j) multiply_tile(of_box[m][j], high, b_high[j][e], b_high[j][e + 1]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int j = 0; j < tiles; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[m][j][i] += of_box[m][j][i];
}

template <int R>
class ClusterProduct {
 public:
  using Layout = ClusterLayout;
  using Shared = ClusterShared<R>;
  static constexpr int tiles = R / 8;

  __device__ static void put_y(float* y, int row, int column, float value) { y[lane_place<R>(row, column)] = value; }

  __device__ ClusterProduct(const CUtensorMap* sigma, const Layout& layout, float* stages, Shared& shared)
      : sigma_(sigma),
        layout_(layout),
        stages_(stages),
        shared_(shared),
        rank_(static_cast<int>(rank_in_cluster())),
        cluster_first_(static_cast<int>(blockIdx.x) / cluster_blocks * layout.pass_rows * layout.passes),
        owned_(layout.pass_rows / cluster_blocks),
        box_values_(layout.pass_rows * box_columns),
        stage_values_(layout.boxes_per_stage * ((layout.resident ? 0 : layout.pass_rows) + R) * box_columns) {
    const int all = (layout.dim + box_columns - 1) / box_columns;
    first_box_ = min(rank_ * layout.boxes_per_block, all);
    boxes_ = min(layout.boxes_per_block, all - first_box_);
    if (threadIdx.x == 0) {
      for (int i = 0; i < cluster_most_stages; ++i) {
        make_barrier(&shared_.arrived[i], 1);
        make_barrier(&shared_.done[i], cluster_warps);
      }
      make_barrier(&shared_.resident, 1);
    }
    __syncthreads();
    if (layout_.resident && threadIdx.x == 0 && boxes_ > 0) {
      fence_copies();
      expect_bytes(&shared_.resident, boxes_ * box_values_ * 4u);
      for (int b = 0; b < boxes_; ++b)
        copy_box(resident_box(b), sigma_, (first_box_ + b) * box_columns, cluster_first_, &shared_.resident);
    }
    cluster_barrier();  // nobody writes into the memory of a block that has not begun
  }

  // The i-th of this block's rows, and how many there are; they ascend.
  __device__ int row(int i) const {
    if (layout_.passes == 1) return cluster_first_ + rank_ * owned_ + i;
    return cluster_first_ + i / owned_ * layout_.pass_rows + rank_ * owned_ + i % owned_;
  }
  __device__ int rows() const {
    int count = 0;
    for (int pass = 0; pass < layout_.passes; ++pass)
      count += max(0, min(owned_, layout_.dim - (cluster_first_ + pass * layout_.pass_rows + rank_ * owned_)));
    return count;
  }
  __device__ void wait_for_resident_rows() {
    if (layout_.resident && boxes_ > 0) wait_for(&shared_.resident, 0);
  }

  // w_rows: this block's rows of W. y: by put_y(), rows to a multiple of box_columns, of zeros. All blocks of the
  // cluster run together.
  __device__ void run(const float* y, bool backwards, float* w_rows) {
    const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31, g = lane >> 2, t = lane & 3;
    // Rows of the pass are shared out over groups of warps, boxes of a stage over the warps of a group.
    const int groups = layout_.pass_rows / warp_rows, slices = slices_of(layout_.pass_rows);
    const int groups_at_once = cluster_warps / slices, group = warp % groups_at_once, slice = warp / groups_at_once;
    const bool works = group < groups;
    const int per_stage = layout_.boxes_per_stage, chunks = (boxes_ + per_stage - 1) / per_stage;
    // Clusters begin at different columns: at the same ones, the same lines of Y and the same banks of memory would be
    // asked for by all of them at once. Backwards every other time, what was read last is still in the second-level
    // cache.
    const int clusters = static_cast<int>(gridDim.x) / cluster_blocks;
    const int start = static_cast<int>(static_cast<long long>(blockIdx.x / cluster_blocks) * chunks / clusters);
    const auto nth = [&](int chunk) {
      const int at = start + (backwards ? chunks - 1 - chunk : chunk);
      return at < chunks ? at : at - chunks;
    };
    const int turned = turned_row(g);
    for (int pass = 0; pass < layout_.passes; ++pass) {
      const auto load = [&](int chunk) {
        const int first = nth(chunk) * per_stage, count = min(per_stage, boxes_ - first);
        unsigned long long* const arrived = &shared_.arrived[load_.stage];
        float* to = stages_ + load_.stage * stage_values_;
        if (load_.turn > 0) wait_for(&shared_.done[load_.stage], (load_.turn - 1) & 1);
        expect_bytes(arrived,
                     static_cast<unsigned>(count * ((layout_.resident ? 0 : box_values_) + R * box_columns)) * 4u);
        copy_bulk(to, y + static_cast<std::size_t>(first_box_ + first) * box_columns * R,
                  static_cast<unsigned>(count) * box_columns * R * 4u, arrived);
        if (!layout_.resident)
          for (int b = 0; b < count; ++b)
            copy_box(to + per_stage * R * box_columns + b * box_values_, sigma_, (first_box_ + first + b) * box_columns,
                     cluster_first_ + pass * layout_.pass_rows, arrived);
        load_.advance(layout_.stages);
      };
      float sums[2][tiles][4];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < tiles; ++j)
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[m][j][i] = 0;
      if (thread == 0)
        for (int chunk = 0; chunk < min(layout_.stages, chunks); ++chunk) load(chunk);
      for (int chunk = 0; chunk < chunks; ++chunk) {
        // Into the stage of the chunk before this one, with which all warps have done, or nearly.
        if (thread == 0 && chunk >= 1 && chunk + layout_.stages - 1 < chunks) load(chunk + layout_.stages - 1);
        wait_for(&shared_.arrived[use_.stage], use_.turn & 1);
        const int first = nth(chunk) * per_stage, count = min(per_stage, boxes_ - first);
        const float* const ys = stages_ + use_.stage * stage_values_;
        if (works)
          for (int b = slice; b < count; b += slices) {
            const float* const tile =
                layout_.resident ? resident_box(first + b) : ys + per_stage * R * box_columns + b * box_values_;
            const float* const of_y = ys + b * box_columns * R + lane * 4;
            add_box<R>(
                tile + (group * warp_rows + turned) * box_columns,
                [&](int h, int j) { return *reinterpret_cast<const float4*>(of_y + (h * tiles + j) * 128); }, turned, t,
                sums);
          }
        __syncwarp();
        if (lane == 0) arrive(&shared_.done[use_.stage]);
        use_.advance(layout_.stages);
      }
      // To the owners of the rows.
      float* const partial = shared_.partial[(exchanged_ & 1)];
      if (works) {
        const int source = rank_ * slices + slice;
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = group * warp_rows + m * 16 + half * 8 + turned;
            float* to = partial + (source * owned_ + row % owned_) * R + 2 * t;
#pragma unroll
            for (int j = 0; j < tiles; ++j)
              send(to + 8 * j, static_cast<unsigned>(row / owned_), sums[m][j][2 * half], sums[m][j][2 * half + 1]);
          }
      }
      ++exchanged_;
      cluster_barrier();
      const int values = owned_ * R, sources = cluster_blocks * slices;
      for (int e = thread; e < values; e += cluster_threads) {
        float sum = partial[e];
        for (int s = 1; s < sources; ++s) sum += partial[s * values + e];
        w_rows[pass * values + e] = sum;
      }
      __syncthreads();
    }
  }

 private:
  __device__ float* resident_box(int box) {
    return stages_ + layout_.stages * stage_values_ + box * box_values_;
  }

  const CUtensorMap* sigma_;
  const Layout& layout_;
  float* stages_;
  Shared& shared_;
  int rank_, cluster_first_, owned_, box_values_, stage_values_, first_box_, boxes_;
  StageTurn load_, use_;
  unsigned exchanged_ = 0;
};

template <int R>
struct ClusterPlan {
  ClusterLayout layout;
  BoxSize box;
  int blocks, cluster = cluster_blocks, most_rows;
  bool fits;
  std::size_t shared_bytes, part_values = 0;
  static constexpr int y_values = 1;

  // `bytes_before` and `bytes_of_row`: of shared memory before the stages, and for each of the block's rows.
  ClusterPlan(int dim, const Limits& limits, std::size_t bytes_before, std::size_t bytes_of_row, bool may_stay) {
    const auto up = [](int count, int size) { return (count + size - 1) / size; };
    const std::size_t most = static_cast<std::size_t>(limits.shared_bytes);
    const int clusters = std::max(1, limits.processors / cluster_blocks), rows = up(dim, clusters);
    const int passes = up(rows, pass_most), pass_rows = up(up(rows, passes), warp_rows) * warp_rows;
    blocks = up(dim, passes * pass_rows) * cluster_blocks;
    most_rows = passes * pass_rows / cluster_blocks;
    box = {box_columns, pass_rows, true};
    const int boxes_per_block = up(up(dim, box_columns), cluster_blocks);
    const int boxes_per_stage = slices_of(pass_rows);
    constexpr std::size_t atom = 1024;  // in which the copy engine exchanges units
    const std::size_t stages_at =
        (bytes_before + static_cast<std::size_t>(most_rows) * bytes_of_row + atom - 1) / atom * atom;
    const std::size_t row_bytes = box_columns * sizeof(float),
                      sigma_box = static_cast<std::size_t>(pass_rows) * row_bytes;
    const std::size_t all_of_sigma = static_cast<std::size_t>(boxes_per_block) * sigma_box;
    const std::size_t y_bytes = static_cast<std::size_t>(boxes_per_stage) * R * row_bytes;
    const bool resident = may_stay && passes == 1 && stages_at + all_of_sigma + 2 * y_bytes <= most;
    const std::size_t fixed = stages_at + (resident ? all_of_sigma : 0);
    const std::size_t each = y_bytes + (resident ? 0 : static_cast<std::size_t>(boxes_per_stage) * sigma_box);
    int stages = 2;
    while (stages < cluster_most_stages && fixed + static_cast<std::size_t>(stages + 1) * each <= most) ++stages;
    shared_bytes = fixed + static_cast<std::size_t>(stages) * each;
    fits = shared_bytes <= most;
    layout = {dim, pass_rows, passes, boxes_per_block, boxes_per_stage, stages, static_cast<int>(stages_at), resident};
  }
};

}  // namespace itspace::cuda::kernels
