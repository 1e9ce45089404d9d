// SPDX-License-Identifier: Apache-2.0
//
// W = Sigma Y for some rows of a dense Sigma, by one block of threads: tiles of Sigma and the rows of Y that meet them
// are brought in by the copy engine of compute capability 9, several stages ahead; a lane multiplies its columns of
// some rows, and lanes are added up at the end. Sums are cut in the same way whatever the device does: same inputs,
// same bits.
#pragma once

#include "cuda/error.hpp"
#include "cuda/fused_device.cuh"

#include <algorithm>

namespace itspace::cuda::kernels {

constexpr int fused_threads = 256, warps = fused_threads / 32;
// A stage is a tile of Sigma and the rows of Y that meet its columns. A warp goes over it in so many rounds of 32
// columns.
constexpr int rounds = 4, round_columns = 32 * rounds, most_stages = 4;
constexpr int y_rows_unit = 4 * round_columns;  // the most columns of a stage

// How many rows of Sigma a warp multiplies at once: what registers hold.
template <class T, int R>
constexpr int rows_of_warp = (sizeof(T) == 4 ? 128 : 64) / R;
// Where column j of row k of Y lies: 16 bytes are exchanged within a row so that eight lanes, which read the same
// columns of eight rows, meet no bank twice.
template <class T, int R>
__device__ __forceinline__ std::size_t y_place(int k, int j) {
  constexpr int vector = 16 / static_cast<int>(sizeof(T)), quads = R / vector;
  const int turn = quads == 4 ? (k >> 1) & 3 : k & 7;
  return static_cast<std::size_t>(k) * R + (((j / vector) ^ turn) * vector) + j % vector;
}
struct RowLayout {
  int dim, rows_per_block, parts, stages, stages_at;
  bool resident;  // all of the block's rows fit beside the stages, and stay
};

template <class T, int R>
struct RowShared {
  alignas(16) T partial[warps * rows_of_warp<T, R> * R];
  unsigned long long arrived[most_stages + 1];
};

template <class T, int R>
class RowProduct {
 public:
  using Layout = RowLayout;
  using Shared = RowShared<T, R>;

  __device__ static void put_y(T* y, int row, int column, T value) { y[y_place<T, R>(row, column)] = value; }

  // `stages`: the shared memory at layout.stages_at, 128 bytes apart for the copy engine.
  __device__ RowProduct(const CUtensorMap* sigma, const RowLayout& layout, T* stages, RowShared<T, R>& shared)
      : sigma_(sigma),
        layout_(layout),
        stages_(stages),
        shared_(shared),
        first_row_(static_cast<int>(blockIdx.x) * layout.rows_per_block),
        groups_(layout.rows_per_block / rows_at_once),
        tile_rows_(min(groups_, warps / layout.parts) * rows_at_once),
        columns_(round_columns * layout.parts),
        stage_values_(((layout.resident ? 0 : tile_rows_) + R) * columns_),
        chunks_((layout.dim + columns_ - 1) / columns_) {
    if (threadIdx.x == 0)
      for (int i = 0; i <= most_stages; ++i) make_barrier(&shared_.arrived[i], 1);
    __syncthreads();
    if (layout_.resident && threadIdx.x == 0) {
      T* to = stages_ + layout_.stages * stage_values_;
      fence_copies();
      expect_bytes(&shared_.arrived[most_stages], chunks_ * tile_rows_ * columns_ * static_cast<unsigned>(sizeof(T)));
      for (int p = 0; p < chunks_ * layout_.parts; ++p)
        copy_box(to + p * tile_rows_ * round_columns, sigma_, p * round_columns, first_row_,
                 &shared_.arrived[most_stages]);
    }
  }

  // The i-th of this block's rows, and how many there are.
  __device__ int row(int i) const { return first_row_ + i; }
  __device__ int rows() const { return min(layout_.rows_per_block, layout_.dim - first_row_); }
  // Once, before the first run.
  __device__ void wait_for_resident_rows() {
    if (layout_.resident) wait_for(&shared_.arrived[most_stages], 0);
  }

  // w_rows: this block's rows of W, R columns each. y: by y_place(), rows to a multiple of y_rows_unit, of zeros.
  // Backwards every other time, what was read last is still in the second-level cache.
  __device__ void run(const T* y, bool backwards, T* w_rows) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), all = rows_at_once * R;
    const int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
    // Where a block has few groups of rows, several warps share one, each with a part of the columns.
    const int parts = layout_.parts, groups = groups_, groups_at_once = warps / parts, part = warp / groups_at_once;
    const int tile_rows = tile_rows_, columns = columns_, stage_values = stage_values_, chunks = chunks_;
    const int first_row = first_row_;
    const bool resident = layout_.resident;
    for (int base = 0; base < groups; base += groups_at_once) {
      const int tile_row = first_row + base * rows_at_once;
      // By one thread. What lies beyond Sigma comes as zeros.
      const auto load = [&](int chunk) {
        // Back and forth: what was read last is still in the second-level cache.
        const int stage = static_cast<int>(loaded_ % layout_.stages),
                  begin = (backwards ? chunks - 1 - chunk : chunk) * columns;
        T* to = stages_ + stage * stage_values;
        expect_bytes(&shared_.arrived[stage], stage_values * static_cast<unsigned>(sizeof(T)));
        if (!resident)
          for (int p = 0; p < parts; ++p)
            copy_box(to + p * tile_rows * round_columns, sigma_, begin + p * round_columns, tile_row,
                     &shared_.arrived[stage]);
        copy_bulk(to + stage_values - R * columns, y + static_cast<std::size_t>(begin) * R,
                  columns * R * static_cast<unsigned>(sizeof(T)), &shared_.arrived[stage]);
        ++loaded_;
      };
      T products[all];  // [row][column], of this lane's columns of Sigma
#pragma unroll
      for (int i = 0; i < all; ++i) products[i] = T(0);
      if (thread == 0)
        for (int chunk = 0; chunk < min(layout_.stages - 1, chunks); ++chunk) load(chunk);
      const int group = warp % groups_at_once;
      const bool works = base + group < groups;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = static_cast<int>(used_ % layout_.stages);
        wait_for(&shared_.arrived[stage], (used_ / layout_.stages) & 1);
        ++used_;
        __syncthreads();  // every warp is past the stage that is loaded next
        if (thread == 0 && chunk + layout_.stages - 1 < chunks) load(chunk + layout_.stages - 1);
        const T* tile = stages_ + stage * stage_values;
        const T* ys = tile + stage_values - R * columns;
        if (resident)
          tile =
              stages_ + layout_.stages * stage_values + (backwards ? chunks - 1 - chunk : chunk) * tile_rows * columns;
        const int first = part * rounds * 32 + lane;
        tile += (part * tile_rows + group * rows_at_once) * round_columns + lane;
        if (works)
#pragma unroll
          for (int round = 0; round < rounds; ++round) {
            T values[rows_at_once];
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i) values[i] = tile[i * round_columns + round * 32];
#pragma unroll
            for (int j = 0; j < R; j += vector) {
              T yk[vector];
              *reinterpret_cast<float4*>(yk) =
                  *reinterpret_cast<const float4*>(ys + y_place<T, R>(first + round * 32, j));
#pragma unroll
              for (int i = 0; i < rows_at_once; ++i)
#pragma unroll
                for (int v = 0; v < vector; ++v)
                  products[i * R + j + v] = fma(values[i], yk[v], products[i * R + j + v]);
            }
          }
      }
      int kept = 0;
      scatter_sums<all / 2, 16>(products, lane, kept);
      constexpr int left = all / 32;
      __syncthreads();
      if (parts == 1) {
#pragma unroll
        for (int i = 0; i < left; ++i)
          if (works) w_rows[(base + group) * all + kept + i] = products[i];
      } else {
        T* partial = shared_.partial;
#pragma unroll
        for (int i = 0; i < left; ++i) partial[warp * all + kept + i] = products[i];
        __syncthreads();
        for (int i = thread; i < groups_at_once * all; i += fused_threads) {
          const int of = i / all, at = i % all;
          T sum = partial[of * all + at];
          for (int p = 1; p < parts; ++p) sum += partial[(p * groups_at_once + of) * all + at];
          if (base + of < groups) w_rows[(base + of) * all + at] = sum;
        }
      }
      __syncthreads();
    }
  }

 private:
  static constexpr int rows_at_once = rows_of_warp<T, R>;

  const CUtensorMap* sigma_;
  const RowLayout& layout_;
  T* stages_;
  RowShared<T, R>& shared_;
  int first_row_, groups_, tile_rows_, columns_, stage_values_, chunks_;
  unsigned loaded_ = 0, used_ = 0;  // stages so far, over all runs
};

// How a product is laid out on a device.
struct Limits {
  int processors = 0, shared_bytes = 0, major = 0;

  bool operator!=(const Limits& other) const {
    return processors != other.processors || shared_bytes != other.shared_bytes || major != other.major;
  }
};
inline Limits limits_of_device() {
  int device = 0;
  Limits limits;
  check(cudaGetDevice(&device), "asking for the current device");
  check(cudaDeviceGetAttribute(&limits.processors, cudaDevAttrMultiProcessorCount, device), "asking for processors");
  check(cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for shared memory");
  check(cudaDeviceGetAttribute(&limits.major, cudaDevAttrComputeCapabilityMajor, device), "asking for the capability");
  return limits;
}

struct BoxSize {
  int columns, rows;
  bool swizzled;         // 16-byte units exchanged by the number of the row modulo 8
  int side_by_side = 1;  // boxes that come in one copy, one after the other; rows are whole boxes then
};

template <class T, int R>
struct RowPlan {
  RowLayout layout;
  BoxSize box;
  int blocks, cluster = 1, most_rows;
  bool fits;
  std::size_t shared_bytes, part_values = 0;
  static constexpr int y_values = 1;

  // `bytes_before` and `bytes_of_row`: of shared memory before the stages, and for each of the block's rows.
  RowPlan(int dim, const Limits& limits, std::size_t bytes_before, std::size_t bytes_of_row, bool may_stay) {
    constexpr int group = rows_of_warp<T, R>;
    const std::size_t most = static_cast<std::size_t>(limits.shared_bytes);
    const int per = ((dim + limits.processors - 1) / limits.processors + group - 1) / group * group;
    blocks = (dim + per - 1) / per;
    most_rows = per;
    const int groups = per / group;
    const std::size_t stages_at = (bytes_before + per * bytes_of_row + 127) / 128 * 128;
    const auto stage_bytes = [&](int of_parts, bool with_sigma) {
      const int rows_in = with_sigma ? std::min(groups, warps / of_parts) * group : 0;
      return static_cast<std::size_t>(rows_in + R) * round_columns * of_parts * sizeof(T);
    };
    int parts = groups >= 5 ? 1 : groups >= 3 ? 2 : 4, stages = 2;
    while (parts > 1 && stages_at + 2 * stage_bytes(parts, true) > most) parts /= 2;
    const int tile_rows = std::min(groups, warps / parts) * group;
    box = {round_columns, tile_rows, false};
    const std::size_t columns = static_cast<std::size_t>(round_columns) * parts;
    const std::size_t all_of_sigma = per * ((dim + columns - 1) / columns * columns) * sizeof(T);
    const bool resident =
        may_stay && tile_rows == per && stages_at + all_of_sigma + 2 * stage_bytes(parts, false) <= most;
    const std::size_t fixed = stages_at + (resident ? all_of_sigma : 0), each = stage_bytes(parts, !resident);
    while (stages < most_stages && fixed + (stages + 1) * each <= most) ++stages;
    shared_bytes = fixed + stages * each;
    fits = shared_bytes <= most;
    layout = {dim, per, parts, stages, static_cast<int>(stages_at), resident};
  }
};

// Rows of Y as the copy engine needs them.
inline std::size_t padded_rows(int dim) {
  return static_cast<std::size_t>((dim + y_rows_unit - 1) / y_rows_unit) * y_rows_unit;
}

// Boxes of a matrix by rows for the copy engine; false where it does not take them.
template <class T>
bool describe_rows(const T* matrix, std::size_t stride, std::size_t rows, int columns, const BoxSize& size,
                   CUtensorMap* map) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) !=
        cudaSuccess) {
      cudaGetLastError();
      function = nullptr;
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  if (encode == nullptr) return false;
  const auto width = static_cast<cuuint64_t>(size.columns), across = static_cast<cuuint64_t>(columns);
  const bool several = size.side_by_side > 1;  // a third dimension, along the rows
  const cuuint64_t sizes[] = {several ? width : across, static_cast<cuuint64_t>(rows), across / width};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(stride * sizeof(T)), width * sizeof(T)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(size.columns), static_cast<cuuint32_t>(size.rows),
                            static_cast<cuuint32_t>(size.side_by_side)},
                   one[] = {1, 1, 1};
  return encode(map, sizeof(T) == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
                several ? 3 : 2, const_cast<T*>(matrix), sizes, strides, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                size.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
template <class T>
bool describe_sigma(const T* sigma, std::size_t stride, int dim, const BoxSize& size, CUtensorMap* map) {
  return describe_rows(sigma, stride, static_cast<std::size_t>(dim), dim, size, map);
}

}  // namespace itspace::cuda::kernels
