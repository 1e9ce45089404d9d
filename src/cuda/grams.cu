// SPDX-License-Identifier: Apache-2.0
//
// Gram matrices a'b over the rows of blocks, in double on the tensor cores: the parts of the rows (sums.cu adds them
// up).
#include "cuda/double_tile.cuh"
#include "cuda/launch.cuh"

#include <type_traits>

namespace itspace::cuda::kernels {
namespace {

// A warp has up to 24 x 24 entries of one part of the rows. What it needs of eight columns of four rows lies in four
// pieces of 32 bytes (64 in double), each read whole by eight lanes, so that nothing goes through shared memory.
constexpr int tiles = 3, warp_side = 8 * tiles, warps_of_block = 8, rows_at_once = 32;
constexpr Index least_rows_of_part = 64, most_parts = 256, wanted_warps = 2048;

__host__ __device__ constexpr Index sides_of(Index cols) {
  return (cols + warp_side - 1) / warp_side;
}
__host__ __device__ constexpr Index rows_of_part(Index rows, Index p, Index q) {
  const Index squares = sides_of(p) * sides_of(q), fewest = 4;
  Index parts = wanted_warps / (squares > 0 ? squares : 1);
  parts = parts < fewest ? fewest : parts > most_parts ? most_parts : parts;
  const Index even = (rows + parts - 1) / parts, whole = (even + rows_at_once - 1) / rows_at_once * rows_at_once;
  return whole < least_rows_of_part ? least_rows_of_part : whole;
}

// This lane's entries of 24 columns: row by row the one in each eight of them, 0 beyond the last.
template <class T>
class Columns {
 public:
  __device__ Columns(const In<T>& block, Index row, Index first)
      : at_(block.data + row * block.stride + first), step_(4 * block.stride) {
    const int lane = static_cast<int>(threadIdx.x) & 31;
    at_ += (lane & 3) * block.stride + (lane >> 2);
    const Index left = block.cols - first;
#pragma unroll
    for (int t = 0; t < tiles; ++t) known_[t] = 8 * t + (lane >> 2) < left;
  }
  // Four rows, the k-th four from where it is.
  template <bool whole>
  __device__ __forceinline__ void load(int k, bool is_row, T (&to)[tiles]) const {
#pragma unroll
    for (int t = 0; t < tiles; ++t) to[t] = known_[t] && (whole || is_row) ? at_[k * step_ + 8 * t] : T(0);
  }
  __device__ __forceinline__ void advance(int fours) {
    at_ += fours * step_;
  }

 private:
  const T* at_;
  Index step_;
  bool known_[tiles];
};

// An entry adds its rows in order, four by four, so that (i, j) and (j, i) of a'a have the same bits.
template <class T>
__global__ void __launch_bounds__(32 * warps_of_block) gram_partials_of(GramJobs<T> jobs) {
  constexpr int fours = rows_at_once / 4, together = 4;  // loads on their way at a time
  const GramJob<T> job = jobs.of[blockIdx.y];
  const Index p = job.a.cols, q = job.b.cols, per_part = rows_of_part(job.a.rows, p, q);
  const Index across = sides_of(q), squares = sides_of(p) * across;
  const Index warp = static_cast<Index>(blockIdx.x) * warps_of_block + threadIdx.x / 32, part = warp / squares;
  const Index begin = part * per_part, end = begin + per_part < job.a.rows ? begin + per_part : job.a.rows;
  if (begin >= end) return;  // another job is larger
  const Index i0 = warp % squares / across * warp_side, j0 = warp % squares % across * warp_side;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  Columns<T> left(job.a, begin, i0), right(job.b, begin, j0);
  double sums[tiles][tiles][2] = {};
  const auto add = [&](auto whole, Index rows) {
#pragma unroll
    for (int first = 0; first < fours; first += together) {
      T a[together][tiles], b[together][tiles];
#pragma unroll
      for (int k = 0; k < together; ++k) {
        const bool is_row = 4 * (first + k) + (lane & 3) < rows;
        left.template load<decltype(whole)::value>(first + k, is_row, a[k]);
        right.template load<decltype(whole)::value>(first + k, is_row, b[k]);
      }
#pragma unroll
      for (int k = 0; k < together; ++k)
#pragma unroll
        for (int i = 0; i < tiles; ++i)
#pragma unroll
          for (int j = 0; j < tiles; ++j)
            multiply_double_tile(sums[i][j], static_cast<double>(a[k][i]), static_cast<double>(b[k][j]));
    }
    left.advance(fours);
    right.advance(fours);
  };
  Index row = begin;
  for (; row + rows_at_once <= end; row += rows_at_once) add(std::true_type(), rows_at_once);
  if (row < end) add(std::false_type(), end - row);
  double* const out = job.partials + part * p * q;
#pragma unroll
  for (int i = 0; i < tiles; ++i)
#pragma unroll
    for (int j = 0; j < tiles; ++j)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const Index at_row = i0 + 8 * i + (lane >> 2), at_col = j0 + 8 * j + 2 * (lane & 3) + c;
        if (at_row < p && at_col < q) out[at_row * q + at_col] = sums[i][j][c];
      }
}

}  // namespace

Index gram_parts(Index rows, Index a_cols, Index b_cols) {
  return over(rows, rows_of_part(rows, a_cols, b_cols));
}

template <class T>
void gram_partials(cudaStream_t stream, const GramJobs<T>& jobs) {
  Index most = 0;
  for (int job = 0; job < jobs.jobs; ++job) {
    const GramJob<T>& it = jobs.of[job];
    const Index warps = gram_parts(it.a.rows, it.a.cols, it.b.cols) * sides_of(it.a.cols) * sides_of(it.b.cols);
    const Index blocks = over(warps, warps_of_block);
    if (blocks > most) most = blocks;
  }
  if (most <= 0) return;
  gram_partials_of<T>
      <<<dim3(static_cast<unsigned>(most), static_cast<unsigned>(jobs.jobs)), 32 * warps_of_block, 0, stream>>>(jobs);
  check_launch("launching the Gram matrices");
}

template void gram_partials<float>(cudaStream_t, const GramJobs<float>&);
template void gram_partials<double>(cudaStream_t, const GramJobs<double>&);

}  // namespace itspace::cuda::kernels
