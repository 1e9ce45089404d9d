// SPDX-License-Identifier: Apache-2.0
//
// W = Sigma Y for a dense, symmetric Sigma too large for shared memory, of which one half is read: a box of Sigma above
// the diagonal is multiplied as it is and turned over (half_box.cuh), while it is in shared memory. Boxes on the
// diagonal are read whole and multiplied once.
//
//          a block of columns: 16 boxes, two of each warp           Blocks of columns are gone through one after the
//        ┌──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┐          other, in rows of boxes; each block of threads has
//   strip│  │  │  │  │  │  │  │  │  │  │  │  │  │  │  │  │ row      some of these rows one after the other, as much
//        │  │  │  │  │  │  │  │  │  │  │  │  │  │  │  │  │ of       work as any other one. It cuts them into strips.
//        │  │  │  │  │  │  │  │  │  │  │  │  │  │  │  │  │ boxes
//        └──┴──┴──┴──┴──┴──┴──┴──┴──┴──┴──┴──┴──┴──┴──┴──┘
//
// A warp has its own boxes, brought in by the copy engine some ahead. Of a strip it keeps
// what its boxes give to the strip's rows of W in registers; at the end of the strip the warps add these up, one after
// the other. What boxes give turned over is added up in shared memory as long as the block of columns is the same. Both
// go to global memory: each row of W is then the sum of what there is of it, in one order. Where sums are cut depends
// on the sizes alone.
#pragma once

#include "cuda/half_box.cuh"
#include "cuda/half_layout.cuh"

namespace itspace::cuda::kernels {

template <class T>
struct HalfShared {
  // What the warps have added up of a strip (and room that the caller uses between products).
  alignas(16) T partial[2][HalfShape<T>::strip_values];
  HalfOwners owners;
  unsigned long long arrived[half_warps][half_most_slots], strip_arrived[2], added[half_warps];
};

template <class T>
class HalfProduct {
 public:
  using Layout = HalfLayout;
  using Shared = HalfShared<T>;

  __device__ static void put_y(T* y, int row, int column, T value) { HalfBox<T>::put_y(y, row, column, value); }

  __device__ HalfProduct(const CUtensorMap* sigma, const Layout& layout, T* stages, Shared& shared)
      : sigma_(sigma),
        layout_(layout),
        shared_(shared),
        warp_(static_cast<int>(threadIdx.x) >> 5),
        lane_(static_cast<int>(threadIdx.x) & 31),
        slots_(stages + warp_ * layout.slots * Shape::box_values),
        columns_(stages + half_warps * layout.slots * Shape::box_values),
        y_strips_(columns_ + Shape::column_values),
        panels_((layout.dim + Shape::box_columns - 1) / Shape::box_columns),
        begin_(place(layout.first[blockIdx.x])),
        last_(place(layout.first[blockIdx.x + 1] - 1)),
        ahead_{0, 0, 0, first_strip(false), 0, false, layout.products} {
    shared_.owners.set(layout);
    if (threadIdx.x == 0) {
      for (auto& of_warp : shared_.arrived)
        for (auto& barrier : of_warp) make_barrier(&barrier, 1);
      for (auto& barrier : shared_.strip_arrived) make_barrier(&barrier, 1);
      for (auto& barrier : shared_.added) make_barrier(&barrier, 32);
      fence_copies();
    }
    __syncthreads();
  }

  // The i-th of this block's rows of W, and how many there are; they ascend.
  __device__ int row(int i) const { return half_row(i); }
  __device__ int rows() const { return half_rows(layout_.dim); }
  __device__ void wait_for_resident_rows() {}  // none are

  // What this block's boxes give, into global memory. y: by put_y(), rows to a multiple of a block of columns, of
  // zeros.
  __device__ void multiply(const T* y, bool backwards) { multiply(y, backwards, static_cast<T*>(layout_.parts)); }
  // Into parts of its own; those of the layout are the first product's.
  __device__ void multiply(const T* y, bool backwards, T* parts) {
    parts_ = parts;
    Strip strip = first_strip(backwards), second = strip;
    bool more = advance(second, backwards);
    if (warp_ == half_warps - 1 && lane_ == 0) {
      ask_for_y(y, strip, strips_ & 1);
      if (more) ask_for_y(y, second, (strips_ + 1) & 1);
    }
    while (waiting_ < layout_.slots && ask_for_box()) {
    }
    typename Box::Factor factor;  // is on its way before it is needed
    factor.load(panel_of_y(y, strip.block, 0), lane_);
    for (bool opens = true, going = true; going; ++strips_) {
      const int parity = static_cast<int>(strips_ & 1), boxes = height(strip);
      const unsigned turn = strips_ >> 1 & 1;
      const bool closes = !more || second.block != strip.block;
      const T* const y_rows = y_strips_ + parity * Shape::y_strip_values;
      T rows[Shape::strip_boxes][box_row_tiles][4] = {};
      wait_for(&shared_.strip_arrived[parity], turn);
      for (int side = 0; side < 2; ++side) {
        const int panel = panel_of(strip.block, side);
        if (panel >= panels_) continue;
        T turned_over[Box::column_tiles][4] = {};
#pragma unroll
        for (int b = 0; b < Shape::strip_boxes; ++b) {
          const int below = diagonal_row(panel) - (strip.row + b);
          if (b >= boxes || below < 0) continue;
          wait_for(&shared_.arrived[warp_][use_.stage], use_.turn & 1);
          const T* const box = slots_ + use_.stage * Shape::box_values;
          Box::add(box, factor, y_rows + b * box_rows * Shape::y_row_values, below > 0, lane_, rows[b], turned_over,
                   [&] {
                     __syncwarp();
                     --waiting_;
                     ask_for_box();
                   });
          use_.advance(layout_.slots);
        }
        if (side == 0) factor.load(panel_of_y(y, strip.block, 1), lane_);
        add_columns(turned_over, side, strip.block, opens, closes);
      }
      if (more) factor.load(panel_of_y(y, second.block, 0), lane_);
      add_strip(rows, strip, boxes);
      opens = closes;
      going = more;
      strip = second;
      more = more && advance(second, backwards);
      // All warps have added up the strip before: its rows of Y are needed no more.
      if (more && warp_ == half_warps - 1) {
        __syncwarp();
        if (lane_ == 0) ask_for_y(y, second, parity);
      }
    }
  }

  // This block's rows of W, once all blocks have multiplied.
  __device__ void add_up(T* w_rows) const {
    for_half_rows<T>(layout_, shared_.owners, static_cast<const T*>(layout_.parts),
                     [&](int i, int j, const auto& values) { put_vector(values, w_rows + i * half_rank + j); });
    __syncthreads();
  }

  // What was asked for has come: nothing is written into this block's memory after its end.
  __device__ void finish() {
    for (; waiting_ > 0; --waiting_) {
      wait_for(&shared_.arrived[warp_][use_.stage], use_.turn & 1);
      use_.advance(layout_.slots);
    }
  }

 private:
  using Box = HalfBox<T>;
  using Shape = HalfShape<T>;

  // The first row of boxes of a strip, or one row of boxes.
  struct Strip {
    int block, row;
  };
  // The next boxes to ask for: so many are left of a panel, the first of them here; then those of a side of a strip.
  struct Ahead {
    int left, column, row;
    Strip strip;
    int side;
    bool backwards;
    int products;
  };

  __device__ static Strip place(int row) {
    int block = 0;
    while (rows_before<T>(block + 1) <= row) ++block;
    return {block, row - rows_before<T>(block)};
  }
  // Of this block's rows of boxes in a block of columns the first, and the one after the last.
  __device__ int begin_of(int block) const {
    return block == begin_.block ? begin_.row : 0;
  }
  __device__ int end_of(int block) const {
    return block == last_.block ? last_.row + 1 : Shape::rows_of_columns * (block + 1);
  }
  __device__ int height(const Strip& strip) const {
    return min(Shape::strip_boxes, end_of(strip.block) - strip.row);
  }
  __device__ Strip last_strip(int block) const {
    const int begin = begin_of(block);
    return {block, begin + (end_of(block) - 1 - begin) / Shape::strip_boxes * Shape::strip_boxes};
  }
  __device__ Strip first_strip(bool backwards) const {
    return backwards ? last_strip(last_.block) : begin_;
  }
  __device__ bool advance(Strip& strip, bool backwards) const {
    if (backwards) {
      if (strip.row > begin_of(strip.block)) {
        strip.row -= Shape::strip_boxes;
        return true;
      }
      if (strip.block == begin_.block) return false;
      strip = last_strip(strip.block - 1);
      return true;
    }
    strip.row += Shape::strip_boxes;
    if (strip.row < end_of(strip.block)) return true;
    if (strip.block == last_.block) return false;
    strip = {strip.block + 1, 0};
    return true;
  }
  // The warp's two panels have as many boxes above the diagonal as any other warp's.
  __device__ int panel_of(int block, int side) const {
    return block * half_panels + (side == 0 ? warp_ : half_panels - 1 - warp_);
  }
  __device__ const T* panel_of_y(const T* y, int block, int side) const {
    return y + static_cast<std::size_t>(panel_of(block, side)) * Shape::box_columns * Shape::y_row_values;
  }
  __device__ static int diagonal_row(int panel) {
    return panel * Shape::box_columns / box_rows;
  }

  __device__ void ask_for_y(const T* y, const Strip& strip, unsigned parity) {
    constexpr int row_values = box_rows * Shape::y_row_values;
    const unsigned bytes = static_cast<unsigned>(height(strip) * row_values) * static_cast<unsigned>(sizeof(T));
    expect_bytes(&shared_.strip_arrived[parity], bytes);
    copy_bulk(y_strips_ + parity * Shape::y_strip_values, y + static_cast<std::size_t>(strip.row) * row_values, bytes,
              &shared_.strip_arrived[parity]);
  }

  // Into a slot that the warp has done with. False where there is nothing more to ask for.
  __device__ bool ask_for_box() {
    if (ahead_.left == 0 && !find_boxes()) return false;
    if (lane_ == 0) {
      unsigned long long* const arrived = &shared_.arrived[warp_][load_.stage];
      expect_bytes(arrived, box_bytes);
      copy_box<Caching::brief>(slots_ + load_.stage * Shape::box_values, sigma_, ahead_.column, ahead_.row, arrived);
    }
    ahead_.row += box_rows;
    --ahead_.left;
    load_.advance(layout_.slots);
    ++waiting_;
    return true;
  }
  // The boxes of the next panel that has some.
  __device__ bool find_boxes() {
    while (ahead_.products > 0) {
      const int panel = panel_of(ahead_.strip.block, ahead_.side), row = ahead_.strip.row;
      const int count = panel < panels_ ? min(height(ahead_.strip), diagonal_row(panel) - row + 1) : 0;
      ahead_.column = panel * Shape::box_columns;
      ahead_.row = row * box_rows;
      if (++ahead_.side == 2) {
        ahead_.side = 0;
        if (!advance(ahead_.strip, ahead_.backwards)) {
          ahead_.backwards = !ahead_.backwards;
          ahead_.strip = first_strip(ahead_.backwards);
          --ahead_.products;
        }
      }
      if (count > 0) {
        ahead_.left = count;
        return true;
      }
    }
    return false;
  }

  // Of one panel: into shared memory, and from there into global memory with the last strip of the block of columns.
  __device__ void add_columns(T (&turned_over)[Box::column_tiles][4], int side, int block, bool opens, bool closes) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
    T* const to = columns_ + ((warp_ * 2 + side) * 4 * 32 + lane_) * vector;
    T* const values = &turned_over[0][0];
    if (!opens)
#pragma unroll
      for (int k = 0; k < 4; ++k) add_vector(values + k * vector, to + k * 32 * vector);
    if (!closes) {
#pragma unroll
      for (int k = 0; k < 4; ++k) put_vector(values + k * vector, to + k * 32 * vector);
      return;
    }
    T* columns = parts_ + static_cast<std::size_t>(layout_.all_rows) * Shape::part_values +
                 static_cast<std::size_t>(static_cast<int>(blockIdx.x) + block) * Shape::column_values;
    columns += panel_of(0, side) * Shape::panel_values + (lane_ >> 2);
#pragma unroll
    for (int n = 0; n < Box::column_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        columns[Box::column(n, 2 * (lane_ & 3) + i % 2) * half_rank + 8 * (i / 2)] = turned_over[n][i];
  }

  // The warps add up what they have of a strip's rows, one after the other; the last one writes it, and lets the first
  // one go on.
  __device__ void add_strip(T (&rows)[Shape::strip_boxes][box_row_tiles][4], const Strip& strip, int boxes) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T)), last = half_warps - 1;
    T* const partial = shared_.partial[0] + lane_ * vector;
    T* const values = &rows[0][0][0];
    if (warp_ > 0) {
      wait_for(&shared_.added[warp_ - 1], strips_ & 1);
    } else if (strips_ > 0) {
      wait_for(&shared_.added[last], (strips_ - 1) & 1);
    }
    if (warp_ > 0)
#pragma unroll
      for (int k = 0; k < 16; ++k) add_vector(values + k * vector, partial + k * 32 * vector);
    if (warp_ < last) {
#pragma unroll
      for (int k = 0; k < 16; ++k) put_vector(values + k * vector, partial + k * 32 * vector);
    }
    arrive(&shared_.added[warp_]);
    if (warp_ < last) return;
    T* const part =
        parts_ + static_cast<std::size_t>(rows_before<T>(strip.block) + strip.row) * Shape::part_values + (lane_ >> 2);
#pragma unroll
    for (int b = 0; b < Shape::strip_boxes; ++b)
      if (b < boxes)
#pragma unroll
        for (int n = 0; n < box_row_tiles; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            part[b * Shape::part_values + (8 * n + turned_row(2 * (lane_ & 3) + i % 2)) * half_rank + 8 * (i / 2)] =
                rows[b][n][i];
  }

  __device__ __forceinline__ static void add_vector(T* to, const T* from) {
    constexpr int vector = 16 / static_cast<int>(sizeof(T));
    T of[vector];
    *reinterpret_cast<float4*>(of) = *reinterpret_cast<const float4*>(from);
#pragma unroll
    for (int v = 0; v < vector; ++v) to[v] += of[v];
  }

  const CUtensorMap* sigma_;
  const Layout& layout_;
  Shared& shared_;
  int warp_, lane_;
  T *slots_, *columns_, *y_strips_, *parts_ = nullptr;
  int panels_;
  Strip begin_, last_;  // this block's rows of boxes
  Ahead ahead_;
  StageTurn load_, use_;
  int waiting_ = 0;      // boxes
  unsigned strips_ = 0;  // so far, over all products
};

}  // namespace itspace::cuda::kernels
