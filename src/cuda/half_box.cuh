// SPDX-License-Identifier: Apache-2.0
//
// One box of a symmetric Sigma by one warp, both ways: with the rows of Y that meet its columns it gives rows of W, and
// turned over, with the rows of Y that meet its rows, others.
//
// A box is 32 rows of 128 bytes, whose 16-byte units the copy engine has exchanged by the number of the row modulo 8.
// Y' is the left factor of the tensor cores, 16 x 8, and eight rows or columns of the box the right one: what they give
// is W'. Float is split as in cluster_product.cuh, and no more than 32 terms are summed there. In double the tensor
// cores round as fused multiplications do.
#pragma once

#include "cuda/cluster_product.cuh"

namespace itspace::cuda::kernels {

constexpr int half_rank = 16;  // columns of Y
constexpr int box_rows = 32, box_row_tiles = box_rows / 8;

// c += a b, a 16 x 8, b 8 x 8.
__device__ __forceinline__ void multiply_tile(double (&c)[4], const double (&a)[4], double b0, double b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
}

// A lane has g = lane/4 and t = lane%4. Of a sum over eight it has the terms 2 t and 2 t + 1; of Y the columns g and
// g + 8; of the box row or column g of a tile; and of what comes out, value i: column g + 8 (i/2) of Y, row or column
// 2 t + i%2 of the tile.
// Row n of a tile is turned_row(n).
template <class T>
struct HalfBox;

template <>
struct HalfBox<float> {
  static constexpr int columns = 32, column_tiles = columns / 8;

  // Y is kept split: of eight rows the high parts, then the low ones, what a lane needs side by side.
  static constexpr int y_values = 2;
  __device__ static void put_y(float* y, int row, int column, float value) {
    const int lane = (column & 7) * 4 + ((row >> 1) & 3);
    float* const to = y + (static_cast<std::size_t>(row >> 3) * 64 + lane) * 4 + (row & 1) * 2 + (column >> 3);
    unsigned high, low;
    split(value, high, low);
    to[0] = __uint_as_float(high);
    to[128] = __uint_as_float(low);
  }
  // The column of the box that is column n of a tile.
  __device__ static int column(int tile, int n) { return 4 * n + tile; }

  // Eight rows of Y.
  struct Left {
    unsigned high[4], low[4];

    __device__ __forceinline__ void set(const uint4& of_high, const uint4& of_low) {
      high[0] = of_high.x, high[1] = of_high.y, high[2] = of_high.z, high[3] = of_high.w;
      low[0] = of_low.x, low[1] = of_low.y, low[2] = of_low.z, low[3] = of_low.w;
    }
  };
  // The rows of Y that meet the columns, from global memory.
  struct Factor {
    Left of[columns / 8];

    __device__ __forceinline__ void load(const float* y, int lane) {
#pragma unroll
      for (int h = 0; h < columns / 8; ++h) {
        const auto* const from = reinterpret_cast<const uint4*>(y) + h * 64 + lane;
        of[h].set(__ldcg(from), __ldcg(from + 32));
      }
    }
  };

  // rows += box Y_j and, where `both`, turned_over += box' Y_i; y: the rows of Y that meet the rows. done(): the box
  // has been read.
  template <class Done>
  __device__ __forceinline__ static void add(const float* box, const Factor& factor, const float* y, bool both,
                                             int lane, float (&rows)[4][4], float (&turned_over)[4][4], Done done) {
    float sums[4][4] = {}, sums_over[4][4] = {};
    Piece next(box, y, lane, 0);
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const Piece piece = next;
      if (h < 3) next = Piece(box, y, lane, h + 1);
      Left of_y;
      of_y.set(piece.y_high, piece.y_low);
      Right right, right_over;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        right.set(n, piece.of_rows[n].x, piece.of_rows[n].y);
        right_over.set(n, (&piece.even.x)[n], (&piece.odd.x)[n]);
      }
      if (h == 3) done();
      add_tiles(sums, factor.of[h].low, right.high);
      add_tiles(sums_over, of_y.low, right_over.high);
      add_tiles(sums, factor.of[h].high, right.low);
      add_tiles(sums_over, of_y.high, right_over.low);
      add_tiles(sums, factor.of[h].high, right.high);
      add_tiles(sums_over, of_y.high, right_over.high);
    }
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        rows[n][i] += sums[n][i];
        if (both) turned_over[n][i] += sums_over[n][i];
      }
  }

 private:
  // What a lane needs of eight columns, of eight rows turned over, and of Y for these.
  struct Piece {
    float2 of_rows[4];
    float4 even, odd;
    uint4 y_high, y_low;

    __device__ __forceinline__ Piece(const float* box, const float* of_y, int lane, int h) {
      const int g = lane >> 2, t = lane & 3, turned = turned_row(g);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        of_rows[n] = *reinterpret_cast<const float2*>(box + (n * 8 + turned) * columns +
                                                      ((2 * h + (t >> 1)) ^ turned) * 4 + (t & 1) * 2);
      even = *reinterpret_cast<const float4*>(box + (8 * h + 2 * t) * columns + (g ^ 2 * t) * 4);
      odd = *reinterpret_cast<const float4*>(box + (8 * h + 2 * t + 1) * columns + (g ^ (2 * t + 1)) * 4);
      y_high = *reinterpret_cast<const uint4*>(of_y + (h * 64 + lane) * 4);
      y_low = *reinterpret_cast<const uint4*>(of_y + (h * 64 + 32 + lane) * 4);
    }
  };
  struct Right {
    unsigned high[4][2], low[4][2];

    __device__ __forceinline__ void set(int n, float a, float b) {
      split(a, high[n][0], low[n][0]);
      split(b, high[n][1], low[n][1]);
    }
  };
  __device__ __forceinline__ static void add_tiles(float (&sums)[4][4], const unsigned (&a)[4],
                                                   const unsigned (&b)[4][2]) {
#pragma unroll
    for (int n = 0; n < 4; ++n) multiply_tile(sums[n], a, b[n][0], b[n][1]);
  }
};

template <>
struct HalfBox<double> {
  static constexpr int columns = 16, column_tiles = columns / 8;

  static constexpr int y_values = 1;
  __device__ static void put_y(double* y, int row, int column, double value) {
    const int lane = (column & 7) * 4 + ((row >> 1) & 3);
    y[((static_cast<std::size_t>(row >> 3) * 2 + (row & 1)) * 32 + lane) * 2 + (column >> 3)] = value;
  }
  __device__ static int column(int tile, int n) { return 2 * n + tile; }

  struct Left {
    double of[4];

    __device__ __forceinline__ void set(const double2& even, const double2& odd) {
      of[0] = even.x, of[1] = even.y, of[2] = odd.x, of[3] = odd.y;
    }
  };
  struct Factor {
    Left of[columns / 8];

    __device__ __forceinline__ void load(const double* y, int lane) {
#pragma unroll
      for (int h = 0; h < columns / 8; ++h) {
        const auto* const from = reinterpret_cast<const double2*>(y) + h * 64 + lane;
        of[h].set(__ldcg(from), __ldcg(from + 32));
      }
    }
  };

  template <class Done>
  __device__ __forceinline__ static void add(const double* box, const Factor& factor, const double* y, bool both,
                                             int lane, double (&rows)[4][4], double (&turned_over)[2][4], Done done) {
    const int g = lane >> 2, t = lane & 3, turned = turned_row(g);
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const double2 of =
            *reinterpret_cast<const double2*>(box + (n * 8 + turned) * columns + ((4 * h + t) ^ turned) * 2);
        multiply_tile(rows[n], factor.of[h].of, of.x, of.y);
      }
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      const double2 even = *reinterpret_cast<const double2*>(box + (8 * h + 2 * t) * columns + (g ^ 2 * t) * 2),
                    odd =
                        *reinterpret_cast<const double2*>(box + (8 * h + 2 * t + 1) * columns + (g ^ (2 * t + 1)) * 2);
      if (h == 3) done();
      if (both) {
        const auto* const from = reinterpret_cast<const double2*>(y) + h * 64 + lane;
        Left left;
        left.set(from[0], from[32]);
        multiply_tile(turned_over[0], left.of, even.x, odd.x);
        multiply_tile(turned_over[1], left.of, even.y, odd.y);
      }
    }
  }
};

}  // namespace itspace::cuda::kernels
