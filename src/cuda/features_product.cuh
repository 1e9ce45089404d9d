// SPDX-License-Identifier: Apache-2.0
//
// W = sum_i w_i (z_i - s)(z_i - s)'Y - total delta delta'Y in float for the rows z_i of a feature set, by the tensor
// cores: one sweep over Z, which comes from memory once.
//
// A cluster of blocks has some rows of Z, a block some of their columns, and two of its warps some of these, up to 256.
// One of the two projects: it keeps the rows of Y in registers from the first row of Z to the last. The other one keeps
// the sums of W:
//
//   16 rows or more by the copy engine ─▶ (Z - 1 s') Y of the projecting warp's columns ─▶ to all blocks of the cluster
//   ─▶ the other warps: their sum, times w_i: P ─▶ W += (Z - 1 s')' P ─▶ the next rows, into the same memory
//
// Memory holds few rows, each for as long as it takes to go through all of this: so a warp asks for the next rows of
// half of its columns as soon as it has done with these. At the end each cluster leaves its W in memory, and these are
// added up in one order: same inputs, same bits. How numbers are multiplied: features_tile.cuh.
#pragma once

#include "cuda/features_layout.cuh"
#include "cuda/features_tile.cuh"

namespace itspace::cuda::kernels {

template <int Boxes>
struct FeaturesShared {
  static constexpr int columns = column_warps * Boxes * box_columns;
  alignas(16) float shift[columns];          // -s c
  alignas(16) unsigned char scale[columns];  // c
  // What a stage of a warp holds has come; what was projected is there from all warps, and was read by all of them.
  unsigned long long arrived[column_warps][most_features_stages], whole[features_slots], read[features_slots];
};

// Four numbers into the same place of another block's shared memory, where they are counted.
__device__ __forceinline__ void send_counted(float4* to, unsigned long long* counter, unsigned block, float4 values) {
  unsigned there, counter_there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(to)), "r"(block));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counter_there) : "r"(shared_address(counter)), "r"(block));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
      "f"(values.x), "f"(values.y), "f"(values.z), "f"(values.w), "r"(counter_there)
      : "memory");
}
__device__ __forceinline__ void arrive_at(unsigned long long* barrier, unsigned block) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(barrier)), "r"(block));
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
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
  static constexpr int sixteens = features_sixteens<Boxes>, groups = 2 * sixteens, tile_rows = 16 * sixteens;
  static constexpr int R = features_rank, tiles = R / 8, tile_values = tile_rows * R;
  static constexpr int box_values = tile_rows * box_columns;
  static constexpr int unit_boxes = features_unit_boxes<Boxes>, units = Boxes / unit_boxes;
  static constexpr int unit_values = unit_boxes * box_values;

  __device__ static void put_y(float* y, int row, int column, float value) { y[lane_place<R>(row, column)] = value; }

  // `stages`: [column_warps][stages][unit_values], then [features_slots][rank_blocks][column_warps][tile_values] for P.
  __device__ FeaturesProduct(const CUtensorMap* z, const Layout& layout, float* stages, Shared& shared)
      : z_(z),
        layout_(layout),
        shared_(shared),
        projects_(threadIdx.x < column_threads),
        warp_(static_cast<int>(threadIdx.x) % column_threads >> 5),
        lane_(static_cast<int>(threadIdx.x) & 31),
        rank_(static_cast<int>(rank_in_cluster())),
        units_(stages + warp_ * layout.stages * unit_values),
        scale_(shared.scale + warp_ * Boxes * box_columns),
        shift_(shared.shift + warp_ * Boxes * box_columns),
        slots_(stages + column_warps * layout.stages * unit_values),
        first_column_((rank_ * column_warps + warp_) * Boxes * box_columns) {
    const int cluster = static_cast<int>(blockIdx.x) / layout.rank_blocks;
    const auto begin = [&](int of) {
      return static_cast<int>(static_cast<long long>(of) * layout.tiles / layout.clusters);
    };
    const bool works = cluster < layout.clusters;
    first_tile_ = works ? begin(cluster) : 0;
    count_ = works ? begin(cluster + 1) - first_tile_ : 0;
    to_load_ = count_ * layout.sweeps * units;
    for (int i = static_cast<int>(threadIdx.x); i < Shared::columns; i += cluster_threads) {
      const int column = rank_ * Shared::columns + i;
      const float scale = column < layout.dim ? __ldg(layout.scale + column) : 1.0f;
      shared_.scale[i] = scale_byte(scale);
      shared_.shift[i] = column < layout.dim ? -__ldg(layout.shift + column) * scale : 0.0f;
    }
    if (threadIdx.x == 0) {
      for (auto& of_warp : shared_.arrived)
        for (auto& stage : of_warp) make_barrier(&stage, 1);
      for (auto& whole : shared_.whole) make_barrier(&whole, column_threads);
      for (auto& read : shared_.read)
        make_barrier(&read, static_cast<unsigned>(column_warps * (32 + layout.rank_blocks - 1)));
      fence_copies();
    }
    __syncthreads();
    if (!projects_)
      while (loaded_ < min(to_load_, layout_.stages)) load_next();
    cluster_barrier();  // nobody writes into the memory of a block that has not begun
  }

  // The i-th of this block's rows of W, and how many there are.
  __device__ int row(int i) const { return static_cast<int>(blockIdx.x) * layout_.rows_per_block + i; }
  __device__ int rows() const { return max(0, min(layout_.rows_per_block, layout_.dim - row(0))); }

  // One sweep. y: by put_y(), rows to a multiple of the cluster's columns, of zeros. Sweeps go back and forth:
  // what was read last is still in the second-level cache.
  __device__ void multiply(const float* y, bool backwards) {
    if (count_ == 0) return;
    if (projects_)
      project_all(y, backwards);
    else
      take_in_all(y, backwards);
  }

  // This block's rows of W, once all blocks have made their sweep.
  __device__ void add_up(float* w_rows) {
    const int values = cluster_columns(layout_.rank_blocks, Boxes) * R, count = rows();
    for (int first = 0; first < layout_.rows_per_block * R; first += cluster_threads) {
      const int e = (first + static_cast<int>(threadIdx.x)) / 4, four = 4 * (e / R), column = e % R;
      const int i = four + static_cast<int>(threadIdx.x) % 4;
      const float w = finished_row(layout_, values, row(four), column);
      if (i < count) w_rows[i * R + column] = w;
    }
    __syncthreads();
  }

  // Nothing may be on its way into the shared memory of a block that has ended.
  __device__ void finish() {
    if (!projects_)
      for (; taken_ < loaded_; ++taken_, stage_.advance(layout_.stages))
        wait_for(&shared_.arrived[warp_][stage_.stage], stage_.turn & 1);
    cluster_barrier();
  }
  __device__ void wait_for_resident_rows() {}

 private:
  // What the warps of a block have projected of a tile.
  __device__ float* slot(int tile, int block) const {
    return slots_ + (tile % features_slots * layout_.rank_blocks + block) * column_warps * tile_values;
  }
  __device__ static unsigned turn_of_slot(int tile) { return static_cast<unsigned>(tile / features_slots); }
  __device__ int nth(int tile, bool backwards) const { return first_tile_ + (backwards ? count_ - 1 - tile : tile); }

  // --- Projecting warps.

  __device__ __forceinline__ void project_all(const float* y, bool backwards) {
    SplitRows of_y[2 * Boxes];
    const float back = read_y(y, of_y);
#pragma unroll 1
    for (int tile = 0; tile < count_; ++tile, ++used_) {
      const long long left = layout_.samples - static_cast<long long>(nth(tile, backwards)) * tile_rows;
      float* at = nullptr;  // the unit that is read
      const auto lanes_of = [&](int box) {
        if (box % unit_boxes == 0) {
          wait_for(&shared_.arrived[warp_][stage_.stage], stage_.turn & 1);
          at = units_ + stage_.stage * unit_values;
          stage_.advance(layout_.stages);
          if (left < tile_rows) fill_rows(at, box, static_cast<int>(left));
        }
        return LanesOfBox<groups>(at + box % unit_boxes * box_values, scale_ + box * box_columns,
                                  shift_ + box * box_columns, lane_);
      };
      float p[groups][4] = {};
      LanesOfBox<groups> next = lanes_of(0);
#pragma unroll
      for (int box = 0; box < Boxes; ++box) {
        const LanesOfBox<groups> of = next;
        float* const here = at + box % unit_boxes * box_values;
        if (box + 1 < Boxes) next = lanes_of(box + 1);  // before anything is written
        project<groups>(here, of, of_y[2 * box], of_y[2 * box + 1], lane_, p);
      }
      publish(p, back);
    }
  }

  // What this warp has projected of a tile, to the warps of all blocks that add up.
  __device__ __forceinline__ void publish(const float (&p)[groups][4], float back) {
    unsigned long long* const whole = &shared_.whole[used_ % features_slots];
    if (used_ >= features_slots) wait_for_cluster(&shared_.read[used_ % features_slots], (turn_of_slot(used_) - 1) & 1);
    float4* const to = reinterpret_cast<float4*>(slot(used_, rank_) + warp_ * tile_values) + lane_;
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const float4 values = {p[m][0] * back, p[m][1] * back, p[m][2] * back, p[m][3] * back};
      to[32 * m] = values;
#pragma unroll 1
      for (int other = 1; other < layout_.rank_blocks; ++other) {
        const int block = rank_ + other < layout_.rank_blocks ? rank_ + other : rank_ + other - layout_.rank_blocks;
        send_counted(to + 32 * m, whole, static_cast<unsigned>(block), values);
      }
    }
    if (threadIdx.x == 0)
      expect_bytes(whole, static_cast<unsigned>((layout_.rank_blocks - 1) * column_warps * tile_values) * 4u);
    else
      arrive(whole);
  }

  // The rows of Y that meet this warp's columns, divided by these columns' scales and split; what undoes their own.
  __device__ __forceinline__ float read_y(const float* y, SplitRows (&of_y)[2 * Boxes]) {
    float values[2 * Boxes][tiles][4];
#pragma unroll
    for (int h = 0; h < 2 * Boxes; ++h)
#pragma unroll
      for (int j = 0; j < tiles; ++j) *reinterpret_cast<float4*>(values[h][j]) = four_of_y(y, h, j);
    float largest = 0;
#pragma unroll
    for (int h = 0; h < 2 * Boxes; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float of_column = inverse_scale(scale_[column_of(h) + i]);
#pragma unroll
        for (int j = 0; j < tiles; ++j) {
          values[h][j][i] *= of_column;
          largest = fmaxf(largest, fabsf(values[h][j][i]));
        }
      }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
    const PowerOfTwo power(largest);
#pragma unroll
    for (int h = 0; h < 2 * Boxes; ++h)
#pragma unroll
      for (int k = 0; k < 4; ++k) {  // columns g and g + 8 of the first two rows, then of the others
        const float* const pair = &values[h][k & 1][k & 2];
        split_pair(pair[0] * power.scale, pair[1] * power.scale, of_y[h].high[k], of_y[h].low[k]);
      }
    return power.back;
  }

  // Where the four columns of this warp's begin that a lane has in the h-th place.
  __device__ int column_of(int h) const {
    return (h >> 1) * box_columns + 8 * (lane_ & 3) + 4 * (h & 1);
  }

  // Rows beyond the last come as zeros; scaled, the mean may be too far from these. It becomes zero. `box`: the unit's
  // first.
  __device__ void fill_rows(float* unit, int box, int first) const {
    for (int b = 0; b < unit_boxes; ++b)
      for (int row = first; row < tile_rows; ++row) {
        const int column = (box + b) * box_columns + lane_;
        unit[b * box_values + row * box_columns + ((lane_ >> 2) ^ (row & 7)) * 4 + (lane_ & 3)] =
            -shift_[column] * inverse_scale(scale_[column]);
      }
    __syncwarp();
  }

  // Of Y: the row of each of the four columns in the h-th place, column 8 j + g.
  __device__ __forceinline__ float4 four_of_y(const float* y, int h, int j) const {
    const int g = lane_ >> 2, t = lane_ & 3;
    const int sixteen = first_column_ / 16 + (h & ~1) + (t >> 1), of_lane = 4 * g + ((2 * t + (h & 1)) & 3);
    return __ldcg(reinterpret_cast<const float4*>(y) + (sixteen * tiles + j) * 32 + of_lane);
  }

  // --- Warps that add up.

  __device__ __forceinline__ void take_in_all(const float* y, bool backwards) {
    const int g = lane_ >> 2, t = lane_ & 3;
    // While the others begin.
    if (blockIdx.x < static_cast<unsigned>(layout_.rank_blocks)) leave_delta_y(y);
    float sums[Boxes][4][4];  // [u]: columns g and g + 8 of rows 8 u + 2 t and the next of a box
#pragma unroll
    for (int box = 0; box < Boxes; ++box)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[box][i][k] = 0;
#pragma unroll 1
    for (int tile = 0; tile < count_; ++tile, ++used_) {
      SplitRows p[sixteens];
      const float back = read_projected(nth(tile, backwards), p);
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const unsigned here = split_place(units_ + stage_.stage * unit_values, lane_);
#pragma unroll
        for (int b = 0; b < unit_boxes; ++b)
          take_in<sixteens>(here + static_cast<unsigned>(b * box_values * 4), p, back, sums[unit * unit_boxes + b]);
        stage_.advance(layout_.stages);
        ++taken_;
        __syncwarp();
        if (loaded_ < to_load_) load_next();  // of the next sweep, too
      }
    }
    float* const to = layout_.partial + static_cast<std::size_t>(blockIdx.x / layout_.rank_blocks) *
                                            cluster_columns(layout_.rank_blocks, Boxes) * R;
#pragma unroll
    for (int box = 0; box < Boxes; ++box)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int column = box * box_columns + 8 * u + 2 * t;
        const float first = inverse_scale(scale_[column]), second = inverse_scale(scale_[column + 1]);
        const auto& of = sums[box][u];
        const auto leave = [&](int of_y, float a, float b) {
          float* const at = to + partial_place(first_column_ + column, of_y);
          __stcg(reinterpret_cast<float2*>(at), float2{a * first, b * second});
        };
        leave(g, of[0], of[1]);
        leave(g + 8, of[2], of[3]);
      }
  }

  // delta'Y of this warp's columns.
  __device__ void leave_delta_y(const float* y) const {
    double sums[tiles] = {};
    for (int h = 0; h < 2 * Boxes; ++h) {
      double delta[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = first_column_ + column_of(h) + i;
        delta[i] = column < layout_.dim ? __ldg(layout_.delta + column) : 0;
      }
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        const float4 of_y = four_of_y(y, h, j);
        sums[j] = fma(delta[0], static_cast<double>(of_y.x), sums[j]);
        sums[j] = fma(delta[1], static_cast<double>(of_y.y), sums[j]);
        sums[j] = fma(delta[2], static_cast<double>(of_y.z), sums[j]);
        sums[j] = fma(delta[3], static_cast<double>(of_y.w), sums[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      sums[j] += __shfl_xor_sync(~0u, sums[j], 1);
      sums[j] += __shfl_xor_sync(~0u, sums[j], 2);
      if ((lane_ & 3) == 0)
        __stcg(layout_.delta_y + (rank_ * column_warps + warp_) * R + 8 * j + (lane_ >> 2), sums[j]);
    }
  }

  // P of a tile: what all warps have projected of it, added up in their order, times w_i; scaled and split. Returns
  // what undoes the scale.
  __device__ __forceinline__ float read_projected(int tile, SplitRows (&parts)[sixteens]) const {
    const long long first = static_cast<long long>(tile) * tile_rows + 2 * (lane_ & 3);
    float weights[groups][2];
#pragma unroll
    for (int m = 0; m < groups; ++m)
#pragma unroll
      for (int i = 0; i < 2; ++i) weights[m][i] = weight_of(first + 8 * m + i);
    wait_for_cluster(&shared_.whole[used_ % features_slots], turn_of_slot(used_) & 1);
    float p[groups][4] = {};
#pragma unroll 2
    for (int block = 0; block < layout_.rank_blocks; ++block) {
      const float4* const from = reinterpret_cast<const float4*>(slot(used_, block)) + lane_;
#pragma unroll
      for (int m = 0; m < groups; ++m)
#pragma unroll
        for (int w = 0; w < column_warps; ++w) {
          const float4 more = from[w * (tile_values / 4) + 32 * m];
          p[m][0] += more.x;
          p[m][1] += more.y;
          p[m][2] += more.z;
          p[m][3] += more.w;
        }
    }
    float largest = 0;
#pragma unroll
    for (int m = 0; m < groups; ++m)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        p[m][k] *= weights[m][k & 1];
        largest = fmaxf(largest, fabsf(p[m][k]));
      }
    // (Numbers that are not negative are ordered as their bits are; what is no number is the largest.)
    const PowerOfTwo power(__uint_as_float(__reduce_max_sync(~0u, __float_as_uint(largest))));
    // Every lane for itself in this block, so that racecheck can follow; in the others one for its warp.
    unsigned long long* const read = &shared_.read[used_ % features_slots];
    arrive(read);
    if (lane_ < layout_.rank_blocks && lane_ != rank_) arrive_at(read, static_cast<unsigned>(lane_));
#pragma unroll
    for (int k = 0; k < sixteens; ++k)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int at = 0; at < 2; ++at) {
          const float* const pair = &p[2 * k + half][2 * at];
          split_pair(pair[0] * power.scale, pair[1] * power.scale, parts[k].high[2 * half + at],
                     parts[k].low[2 * half + at]);
        }
    return power.back;
  }
  __device__ __forceinline__ float weight_of(long long row) const {
    if (row >= layout_.samples) return 0;
    return layout_.weights != nullptr ? static_cast<float>(__ldg(layout_.weights + row)) : 1;
  }

  // The unit that comes next into the next stage.
  __device__ __forceinline__ void load_next() {
    if (lane_ == 0) {
      unsigned long long* const arrived = &shared_.arrived[warp_][load_stage_];
      float* const to = units_ + load_stage_ * unit_values;
      const int row = nth(load_tile_, load_backwards_) * tile_rows;
      const int column = first_column_ + load_unit_ * unit_boxes * box_columns;
      fence_shared_copies();  // after what the projecting warp has written there
      expect_bytes(arrived, unit_values * 4u);
      if (layout_.whole_slices) {
        copy_boxes<Caching::brief>(to, z_, column / box_columns, row, arrived);
      } else {
#pragma unroll 1
        for (int b = 0; b < unit_boxes; ++b)
          copy_box<Caching::brief>(to + b * box_values, z_, column + b * box_columns, row, arrived);
      }
    }
    load_stage_ = load_stage_ + 1 < layout_.stages ? load_stage_ + 1 : 0;
    ++loaded_;
    if (++load_unit_ < units) return;
    load_unit_ = 0;
    if (++load_tile_ == count_) {
      load_tile_ = 0;
      load_backwards_ = !load_backwards_;
    }
  }

  const CUtensorMap* z_;
  const Layout& layout_;
  Shared& shared_;
  const bool projects_;  // or adds up
  int warp_, lane_, rank_;
  float* units_;
  const unsigned char* scale_;  // of this warp's columns
  const float* shift_;
  float* slots_;
  int first_column_, first_tile_, count_;
  // Over all sweeps: tiles that this warp has done with; units that it has taken in, and that it has asked for.
  StageTurn stage_;
  int used_ = 0, taken_ = 0, loaded_ = 0, to_load_, load_stage_ = 0, load_tile_ = 0, load_unit_ = 0;
  bool load_backwards_ = false;
};

}  // namespace itspace::cuda::kernels
