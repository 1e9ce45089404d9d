// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of blocks, in double and in one order: first each part of the rows by itself, then the parts.
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {
namespace {

constexpr Index least_rows_of_part = 64, most_parts = 256, wanted_blocks = 512, fewest_parts = 4;
constexpr int tile = 32;  // columns that a block of threads works on at a time

__host__ __device__ constexpr Index rows_of_part(Index rows, Index tiles) {
  Index parts = wanted_blocks / (tiles > 0 ? tiles : 1);
  parts = parts < fewest_parts ? fewest_parts : parts > most_parts ? most_parts : parts;
  const Index even = (rows + parts - 1) / parts, whole = (even + tile - 1) / tile * tile;
  return whole < least_rows_of_part ? least_rows_of_part : whole;
}

__host__ __device__ constexpr Index tiles_of(Index cols) {
  return (cols + tile - 1) / tile;
}

// The parts of one sum are shared by `lanes` threads, whose sums are added in order.
constexpr int lanes = 8, sums_per_block = 32;

__global__ void add_parts_of(PartsList list, Combine combine) {
  __shared__ double of_lane[lanes][sums_per_block];
  const Parts job = list.of[blockIdx.y];
  const Index e = static_cast<Index>(blockIdx.x) * sums_per_block + threadIdx.x;
  double sum = 0;
  if (e < job.count)
    for (Index part = threadIdx.y; part < job.parts; part += lanes) {
      const double value = job.partials[part * job.count + e];
      sum = combine == Combine::sum ? sum + value : value > sum ? value : sum;
    }
  of_lane[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || e >= job.count) return;
  for (int lane = 1; lane < lanes; ++lane) {
    const double value = of_lane[lane][threadIdx.x];
    sum = combine == Combine::sum ? sum + value : value > sum ? value : sum;
  }
  job.sums[e] = sum;
}

// A block's sum in one order: halves are added until one is left. @pre blockDim.x is threads_per_block, a power of two.
__device__ double sum_of_block(double value, double* chip) {
  chip[threadIdx.x] = value;
  __syncthreads();
  for (int half = threads_per_block / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) chip[threadIdx.x] += chip[threadIdx.x + half];
    __syncthreads();
  }
  const double sum = chip[0];
  __syncthreads();
  return sum;
}

template <class T>
__global__ void blend_norm_partials_of(In<T> y, In<T> b, double* partials) {
  __shared__ double chip[threads_per_block];
  const Index per_part = rows_of_part(b.rows, 1), begin = blockIdx.x * per_part;
  const Index end = begin + per_part < b.rows ? begin + per_part : b.rows;
  double squares = 0, differences = 0;
  for (Index e = threadIdx.x; e < (end - begin) * b.cols; e += blockDim.x) {
    const Index i = begin + e / b.cols, j = e % b.cols;
    const double to = b.data[i * b.stride + j], difference = to - static_cast<double>(y.data[i * y.stride + j]);
    squares = fma(to, to, squares);
    differences = fma(difference, difference, differences);
  }
  const double square = sum_of_block(squares, chip), difference = sum_of_block(differences, chip);
  if (threadIdx.x == 0) {
    partials[2 * blockIdx.x] = square;
    partials[2 * blockIdx.x + 1] = difference;
  }
}

template <class T, ColumnSum what>
__device__ double column_term(T x, Index i, Index j, const ColumnTerms<T>& terms) {
  const double weight = terms.weights != nullptr ? terms.weights[i] : 1;
  const double value = x;
  if constexpr (what == ColumnSum::plain) return weight * value;
  if constexpr (what == ColumnSum::square) return value * value;
  if constexpr (what == ColumnSum::scaled_square) return (value * terms.columns[j]) * (value * terms.columns[j]);
  if constexpr (what == ColumnSum::largest) return fabs(value);
  if constexpr (what == ColumnSum::shifted) return weight * static_cast<double>(x - terms.shift[j]);
  const double centred = static_cast<double>(x - terms.shift[j]) - terms.columns[j];
  return weight * (centred * centred);
}

constexpr int rows_at_a_time = 8;

template <class T, ColumnSum what>
__global__ void column_partials_of(In<T> x, ColumnTerms<T> terms, double* partials) {
  __shared__ double of_lane[rows_at_a_time][tile];
  const Index tiles = tiles_of(x.cols), per_part = rows_of_part(x.rows, tiles);
  const Index part = blockIdx.x / tiles, j = blockIdx.x % tiles * tile + threadIdx.x;
  const Index begin = part * per_part, end = begin + per_part < x.rows ? begin + per_part : x.rows;
  double sum = 0;
  if (j < x.cols)
    for (Index i = begin + threadIdx.y; i < end; i += rows_at_a_time) {
      const double term = column_term<T, what>(x.data[i * x.stride + j], i, j, terms);
      sum = what == ColumnSum::largest ? (term > sum ? term : sum) : sum + term;
    }
  of_lane[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || j >= x.cols) return;
  for (int lane = 1; lane < rows_at_a_time; ++lane) {
    const double value = of_lane[lane][threadIdx.x];
    sum = what == ColumnSum::largest ? (value > sum ? value : sum) : sum + value;
  }
  partials[part * x.cols + j] = sum;
}

template <class T, ColumnSum what>
void launch_column_partials(cudaStream_t stream, In<T> x, const ColumnTerms<T>& terms, double* partials) {
  const Index blocks = column_parts(x.rows, x.cols) * tiles_of(x.cols);
  if (blocks <= 0) return;
  column_partials_of<T, what>
      <<<static_cast<unsigned>(blocks), dim3(tile, rows_at_a_time), 0, stream>>>(x, terms, partials);
  check_launch("launching sums of columns");
}

}  // namespace

Index parts_of(Index rows, Index tiles) {
  return over(rows, rows_of_part(rows, tiles));
}

void add_parts(cudaStream_t stream, const PartsList& list, Combine combine) {
  Index most = 0;
  for (int job = 0; job < list.jobs; ++job)
    if (list.of[job].count > most) most = list.of[job].count;
  if (most <= 0) return;
  const dim3 blocks(static_cast<unsigned>(over(most, sums_per_block)), static_cast<unsigned>(list.jobs));
  add_parts_of<<<blocks, dim3(sums_per_block, lanes), 0, stream>>>(list, combine);
  check_launch("launching the sum of parts");
}

Index blend_parts(Index rows) {
  return parts_of(rows, 1);
}

template <class T>
void blend_norm_partials(cudaStream_t stream, In<T> y, In<T> b, double* partials) {
  const Index parts = blend_parts(b.rows);
  if (parts <= 0) return;
  blend_norm_partials_of<T><<<static_cast<unsigned>(parts), threads_per_block, 0, stream>>>(y, b, partials);
  check_launch("launching the norms of a step");
}

Index column_parts(Index rows, Index cols) {
  return parts_of(rows, tiles_of(cols));
}

template <class T>
void column_partials(cudaStream_t stream, ColumnSum what, In<T> x, const ColumnTerms<T>& terms, double* partials) {
  switch (what) {
    case ColumnSum::plain:
      return launch_column_partials<T, ColumnSum::plain>(stream, x, terms, partials);
    case ColumnSum::square:
      return launch_column_partials<T, ColumnSum::square>(stream, x, terms, partials);
    case ColumnSum::scaled_square:
      return launch_column_partials<T, ColumnSum::scaled_square>(stream, x, terms, partials);
    case ColumnSum::largest:
      return launch_column_partials<T, ColumnSum::largest>(stream, x, terms, partials);
    case ColumnSum::shifted:
      return launch_column_partials<T, ColumnSum::shifted>(stream, x, terms, partials);
    case ColumnSum::centred_square:
      return launch_column_partials<T, ColumnSum::centred_square>(stream, x, terms, partials);
  }
}

#define ITSPACE_INSTANTIATE(T)                                               \
  template void blend_norm_partials<T>(cudaStream_t, In<T>, In<T>, double*); \
  template void column_partials<T>(cudaStream_t, ColumnSum, In<T>, const ColumnTerms<T>&, double*);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda::kernels
