// SPDX-License-Identifier: Apache-2.0
//
// How the product that reads half of Sigma (half_product.cuh) is shared out, and how its parts become rows of W.
#pragma once

#include "cuda/half_box.cuh"
#include "cuda/row_product.cuh"

#include <algorithm>

namespace itspace::cuda::kernels {

// From here on it takes less time than reading all of Sigma: below, a large part of it stays in the second-level cache,
// and its parts have to be added up.
template <class T>
constexpr int least_half_dim = sizeof(T) == 4 ? 5120 : 3072;

constexpr int half_threads = 256, half_warps = half_threads / 32;
constexpr int half_panels = 2 * half_warps;  // boxes side by side of a block of columns
constexpr int half_most_slots = 6, half_most_blocks = 256;
constexpr int box_bytes = box_rows * 128;
constexpr int owned_together = 4;  // rows of W

template <class T>
struct HalfShape {
  static constexpr int box_columns = HalfBox<T>::columns, columns = half_panels * box_columns;  // of a block of columns
  static constexpr int strip_boxes = 16 / static_cast<int>(sizeof(T));                          // above each other
  static constexpr int rows_of_columns = columns / box_rows;  // rows of boxes as high as a block of columns is wide
  static constexpr int box_values = box_bytes / static_cast<int>(sizeof(T));
  static constexpr int part_values = box_rows * half_rank;      // of rows of W, from a row of boxes
  static constexpr int panel_values = box_columns * half_rank;  // of rows of W or Y
  static constexpr int column_values = half_panels * panel_values;
  static constexpr int strip_values = strip_boxes * part_values;         // of rows of W or Y
  static constexpr int y_row_values = half_rank * HalfBox<T>::y_values;  // of a row of Y
  static constexpr int y_strip_values = strip_boxes * box_rows * y_row_values;
};

// Rows of boxes before those of a block of columns.
template <class T>
__host__ __device__ constexpr int rows_before(int block) {
  return HalfShape<T>::rows_of_columns * (block * (block + 1) / 2);
}

struct HalfLayout {
  int dim, blocks, slots, stages_at;
  int column_blocks, all_rows;      // of boxes
  int first[half_most_blocks + 1];  // of the rows of boxes of each block of threads
  // By who launches: global memory for part_values of a plan; how many products follow each other, back and forth over
  // Sigma, so that boxes of the next one are asked for ahead.
  void* parts;
  int products;
};

// The i-th of this block's rows of W, and how many there are; they ascend. Some from all over W: rows far up and far
// down are sums of more or fewer parts.
__device__ __forceinline__ int half_row(int i) {
  return (i / owned_together * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x)) * owned_together +
         i % owned_together;
}
__device__ __forceinline__ int half_rows(int dim) {
  const int all = (dim + owned_together - 1) / owned_together, blocks = static_cast<int>(gridDim.x);
  const int owned = (all - static_cast<int>(blockIdx.x) + blocks - 1) / blocks;
  if (owned <= 0) return 0;
  const int before = (owned - 1) * owned_together;
  return before + min(owned_together, dim - half_row(before));
}

// Which block of threads has a row of boxes: in shared memory, where it is looked for quickly.
struct HalfOwners {
  int blocks, first[half_most_blocks];

  // By all threads; a barrier follows.
  __device__ void set(const HalfLayout& layout) {
    for (int b = static_cast<int>(threadIdx.x); b < layout.blocks; b += half_threads) first[b] = layout.first[b];
    if (threadIdx.x == 0) blocks = layout.blocks;
  }
  __device__ int of(int row) const {
    int low = 0, high = blocks;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first[middle] <= row ? low : high) = middle;
    }
    return low;
  }
};

template <class T>
__device__ __forceinline__ void load_vector(const T* from, T* to) {
  if constexpr (sizeof(T) == 4) {
    const float4 of = __ldcg(reinterpret_cast<const float4*>(from));
    to[0] = of.x, to[1] = of.y, to[2] = of.z, to[3] = of.w;
  } else {
    const double2 of = __ldcg(reinterpret_cast<const double2*>(from));
    to[0] = of.x, to[1] = of.y;
  }
}
template <class T>
__device__ __forceinline__ void put_vector(const T* from, T* to) {
  if constexpr (sizeof(T) == 4)
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  else
    *reinterpret_cast<double2*>(to) = make_double2(from[0], from[1]);
}

// This block's rows of W from the parts, 16 bytes at a time: visit(i, first column, values) of the i-th.
template <class T, class Visit>
__device__ __forceinline__ void for_half_rows(const HalfLayout& layout, const HalfOwners& owners, const T* parts,
                                              Visit visit) {
  using Shape = HalfShape<T>;
  constexpr int vector = 16 / static_cast<int>(sizeof(T)), vectors = half_rank / vector;
  const T* const columns = parts + static_cast<std::size_t>(layout.all_rows) * Shape::part_values;
  const int values = half_rows(layout.dim) * vectors;
  for (int e = static_cast<int>(threadIdx.x); e < values; e += half_threads) {
    const int i = e / vectors, j = e % vectors * vector, row = half_row(i), block = row / Shape::columns;
    // The parts from rows of boxes, then those from boxes turned over.
    const T* const in_box = parts + static_cast<std::size_t>(row / box_rows) * Shape::part_values +
                            static_cast<std::size_t>(row % box_rows) * half_rank + j;
    const int first = owners.of(rows_before<T>(block)), from_rows = layout.column_blocks - block;
    const int last = owners.of(min(rows_before<T>(block + 1), layout.all_rows) - 1);
    const int all = from_rows + last - first + 1;
    const T* const in_block = columns + static_cast<std::size_t>(first + block) * Shape::column_values +
                              static_cast<std::size_t>(row % Shape::columns) * half_rank + j;
    T sum[vector] = {};
    constexpr int at_once = 10;  // on their way together
    for (int base = 0; base < all; base += at_once) {
      // (What may not be there is read elsewhere: loads behind a condition wait for each other.)
      T of[at_once][vector];
#pragma unroll
      for (int n = 0; n < at_once; ++n) {
        const int part = min(base + n, all - 1);
        load_vector(part < from_rows
                        ? in_box + static_cast<std::size_t>(rows_before<T>(block + part)) * Shape::part_values
                        : in_block + static_cast<std::size_t>(part - from_rows) * Shape::column_values,
                    of[n]);
      }
#pragma unroll
      for (int n = 0; n < at_once; ++n)
#pragma unroll
        for (int v = 0; v < vector; ++v) sum[v] += base + n < all ? of[n][v] : T(0);
    }
    visit(i, j, sum);
  }
}

template <class T>
struct HalfPlan {
  HalfLayout layout{};
  BoxSize box{HalfShape<T>::box_columns, box_rows, true};
  int blocks, cluster = 1, most_rows;
  bool fits;
  std::size_t shared_bytes, part_values;                 // of global memory
  static constexpr int y_values = HalfBox<T>::y_values;  // for one of Y

  HalfPlan(int dim, const Limits& limits, std::size_t bytes_before, std::size_t bytes_of_row, bool) {
    using Shape = HalfShape<T>;
    const auto up = [](int count, int size) { return (count + size - 1) / size; };
    const int box_row_count = up(dim, box_rows), panels = up(dim, Shape::box_columns);
    layout.dim = dim;
    layout.column_blocks = up(dim, Shape::columns);
    layout.all_rows = rows_before<T>(layout.column_blocks - 1) + box_row_count;
    blocks = std::min({limits.processors, half_most_blocks, layout.all_rows});
    layout.blocks = blocks;
    most_rows = up(up(dim, owned_together), blocks) * owned_together;
    part_values = static_cast<std::size_t>(layout.all_rows) * Shape::part_values +
                  static_cast<std::size_t>(blocks + layout.column_blocks) * Shape::column_values;
    fits = cut(box_row_count, panels);
    constexpr std::size_t atom = 1024;  // in which the copy engine exchanges units
    const std::size_t most = static_cast<std::size_t>(limits.shared_bytes);
    const std::size_t stages_at =
        (bytes_before + static_cast<std::size_t>(most_rows) * bytes_of_row + atom - 1) / atom * atom;
    const std::size_t fixed = stages_at + (Shape::column_values + 2 * Shape::y_strip_values) * sizeof(T);
    constexpr std::size_t each = half_warps * box_bytes;
    layout.slots = 2;
    while (layout.slots < half_most_slots && fixed + static_cast<std::size_t>(layout.slots + 1) * each <= most)
      ++layout.slots;
    layout.stages_at = static_cast<int>(stages_at);
    shared_bytes = fixed + static_cast<std::size_t>(layout.slots) * each;
    fits = fits && shared_bytes <= most;
  }

 private:
  // As much work for each block of threads, to one row of boxes. On the diagonal not all warps have boxes, and the
  // others wait for those that do: the upper half of it is as much work as if all had, and the lower half as much.
  bool cut(int box_row_count, int panels) {
    using Shape = HalfShape<T>;
    const auto work_of = [&](int block, int row) {
      const int wide = std::min(panels - block * half_panels, half_panels),
                below = row - Shape::rows_of_columns * block;
      return below < Shape::rows_of_columns / 2 ? wide : (wide + 1) / 2;
    };
    long long all = 0;
    const auto for_columns = [&](auto visit) {
      for (int c = 0; c < layout.column_blocks; ++c)
        visit(c, std::min(box_row_count, Shape::rows_of_columns * (c + 1)), Shape::rows_of_columns * c);
    };
    for_columns([&](int c, int rows, int whole) {
      all += static_cast<long long>(whole) * work_of(c, 0);
      for (int row = whole; row < rows; ++row) all += work_of(c, row);
    });
    long long before = 0;
    int b = 0;
    layout.first[blocks] = layout.all_rows;
    const auto next = [&] { return all * b / blocks; };
    for_columns([&](int c, int rows, int whole) {
      const long long each = work_of(c, 0);
      for (; b < blocks && next() < before + whole * each; ++b)
        layout.first[b] = rows_before<T>(c) + static_cast<int>((next() - before + each / 2) / each);
      before += whole * each;
      for (int row = whole; row < rows; before += work_of(c, row++))
        for (; b < blocks && next() < before + work_of(c, row); ++b)
          layout.first[b] = rows_before<T>(c) + row + (2 * (next() - before) > work_of(c, row) ? 1 : 0);
    });
    for (int i = 0; i < blocks; ++i)
      if (layout.first[i + 1] <= layout.first[i]) return false;
    return b == blocks;
  }
};

}  // namespace itspace::cuda::kernels
