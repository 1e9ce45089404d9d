// SPDX-License-Identifier: Apache-2.0
//
// op(A - 1 s') B for a large A and a tall B of few columns, where reading A is what takes the time.
//
// A block of threads makes 128 rows of the product and up to 64 columns: it moves tiles of A, one 128-byte line of each
// row at a time, through the chip, and loads the next while it multiplies the one at hand. Where the rows alone do not
// fill the device the sum over k is cut into parts, which a second kernel adds up in order; where they are cut depends
// on the sizes alone. Each number of A is read once for every 64 columns of B.
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {
namespace {

constexpr int tile_rows = 128, threads = 128, column_groups = 8, row_groups = threads / column_groups;
constexpr int rows_per_thread = tile_rows / row_groups;
constexpr Index wanted_blocks = 528, most_splits = 64, least_split = 128;
constexpr int terms_before_fold = 256;  // float: a sum of more is made of sums of so many

constexpr int tile_columns(Index q) {
  return q <= 16 ? 16 : q <= 32 ? 32 : 64;
}

struct Cut {
  Index per_split, splits;
};
Cut cut_of(Index m, Index k, Index q) {
  const Index tiles = over(m, tile_rows) * over(q, tile_columns(q));
  Index splits = tiles > 0 ? wanted_blocks / tiles : 1;
  splits = splits < 1 ? 1 : splits > most_splits ? most_splits : splits;
  const Index per_split = over(over(k, splits), least_split) * least_split;
  return {per_split, over(k, per_split)};
}

// 16 bytes, or as many as N values have.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T of[N];
};

template <class T, bool transposed>
struct Tile {
  static constexpr int terms = 128 / sizeof(T);  // of the sum over k
  static constexpr int per_pack = 16 / sizeof(T);
  using Packed = Pack<T, per_pack>;
  // Rows of the tile as they lie in memory, 16 bytes apart from each other's banks.
  static constexpr int lines = transposed ? terms : tile_rows, line = transposed ? tile_rows : terms;
  static constexpr int stride = line + per_pack;
  static constexpr int packs_per_line = line / per_pack;
  static constexpr int packs_per_thread = lines * packs_per_line / threads;
};

template <class T>
__device__ void finish(const ProductJob<T>& job, Index i, Index j, double sum) {
  const double scale = job.row_factors != nullptr ? job.factor * job.row_factors[i] : job.factor;
  T* to = job.c.data + i * job.c.stride + j;
  *to = static_cast<T>(job.add ? static_cast<double>(*to) + scale * sum : scale * sum);
}

// The pack of A that starts at memory row `outer`, column `inner`; zeros beyond the ends.
template <class T, int N>
__device__ Pack<T, N> load_pack(const ProductJob<T>& job, bool aligned, Index outer, Index inner, Index outer_end,
                                Index inner_end) {
  Pack<T, N> pack;
  const T* from = job.a + outer * job.a_stride + inner;
  if (outer < outer_end && inner + N <= inner_end && aligned) {
    pack = *reinterpret_cast<const Pack<T, N>*>(from);
    if (job.shift != nullptr)
#pragma unroll
      for (int v = 0; v < N; ++v) pack.of[v] -= job.shift[inner + v];
    return pack;
  }
#pragma unroll
  for (int v = 0; v < N; ++v) {
    const bool known = outer < outer_end && inner + v < inner_end;
    pack.of[v] = known ? from[v] - (job.shift != nullptr ? job.shift[inner + v] : T(0)) : T(0);
  }
  return pack;
}

template <class T, int columns, bool transposed>
__global__ void __launch_bounds__(threads)
    product_tiles(ProductJob<T> job, bool aligned, T* __restrict__ partials, Index per_split) {
  using A = Tile<T, transposed>;
  constexpr int columns_per_thread = columns / column_groups, b_per_thread = A::terms * columns / threads;
  __shared__ alignas(16) T a_tile[A::lines * A::stride];
  __shared__ alignas(16) T b_tile[A::terms * columns];

  const int x = threadIdx.x % column_groups, y = threadIdx.x / column_groups;
  const Index m0 = static_cast<Index>(blockIdx.x) * tile_rows, n0 = static_cast<Index>(blockIdx.y) * columns;
  const Index begin = blockIdx.z * per_split, end = begin + per_split < job.k ? begin + per_split : job.k;
  const Index q = job.b.cols;

  typename A::Packed a_next[A::packs_per_thread];
  T b_next[b_per_thread];
  const auto load = [&](Index k0) {
#pragma unroll
    for (int e = 0; e < A::packs_per_thread; ++e) {
      const int pack = e * threads + static_cast<int>(threadIdx.x);
      const int outer = pack / A::packs_per_line, inner = pack % A::packs_per_line * A::per_pack;
      a_next[e] = transposed ? load_pack<T, A::per_pack>(job, aligned, k0 + outer, m0 + inner, end, job.m)
                             : load_pack<T, A::per_pack>(job, aligned, m0 + outer, k0 + inner, job.m, end);
    }
#pragma unroll
    for (int e = 0; e < b_per_thread; ++e) {
      const int at = e * threads + static_cast<int>(threadIdx.x);
      const Index k = k0 + at / columns, j = n0 + at % columns;
      b_next[e] = k < end && j < q ? job.b.data[k * job.b.stride + j] : T(0);
    }
  };
  const auto keep = [&] {
#pragma unroll
    for (int e = 0; e < A::packs_per_thread; ++e) {
      const int pack = e * threads + static_cast<int>(threadIdx.x);
      const int outer = pack / A::packs_per_line, inner = pack % A::packs_per_line * A::per_pack;
      *reinterpret_cast<typename A::Packed*>(a_tile + outer * A::stride + inner) = a_next[e];
    }
#pragma unroll
    for (int e = 0; e < b_per_thread; ++e) b_tile[e * threads + static_cast<int>(threadIdx.x)] = b_next[e];
  };

  T sum[rows_per_thread][columns_per_thread] = {}, folded[rows_per_thread][columns_per_thread] = {};
  const auto add_term = [&](const T(&a)[rows_per_thread], int term) {
    constexpr int n = columns_per_thread < A::per_pack ? columns_per_thread : A::per_pack;
    T b[columns_per_thread];
#pragma unroll
    for (int j = 0; j < columns_per_thread; j += n) {
      const auto pack = *reinterpret_cast<const Pack<T, n>*>(b_tile + term * columns + x * columns_per_thread + j);
#pragma unroll
      for (int v = 0; v < n; ++v) b[j + v] = pack.of[v];
    }
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i)
#pragma unroll
      for (int j = 0; j < columns_per_thread; ++j) sum[i][j] = fma(a[i], b[j], sum[i][j]);
  };

  load(begin);
  int since_fold = 0;
  for (Index k0 = begin; k0 < end; k0 += A::terms) {
    keep();
    __syncthreads();
    if (k0 + A::terms < end) load(k0 + A::terms);
    if constexpr (transposed) {
      // The thread's rows lie side by side.
#pragma unroll 4
      for (int term = 0; term < A::terms; ++term) {
        T a[rows_per_thread];
#pragma unroll
        for (int i = 0; i < rows_per_thread; i += A::per_pack) {
          const auto pack =
              *reinterpret_cast<const typename A::Packed*>(a_tile + term * A::stride + y * rows_per_thread + i);
#pragma unroll
          for (int v = 0; v < A::per_pack; ++v) a[i + v] = pack.of[v];
        }
        add_term(a, term);
      }
    } else {
      // The thread's rows are row_groups apart, so that those of a warp are in different banks.
#pragma unroll 2
      for (int term = 0; term < A::terms; term += A::per_pack) {
        typename A::Packed packs[rows_per_thread];
#pragma unroll
        for (int i = 0; i < rows_per_thread; ++i)
          packs[i] = *reinterpret_cast<const typename A::Packed*>(a_tile + (y + i * row_groups) * A::stride + term);
#pragma unroll
        for (int v = 0; v < A::per_pack; ++v) {
          T a[rows_per_thread];
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) a[i] = packs[i].of[v];
          add_term(a, term + v);
        }
      }
    }
    since_fold += A::terms;
    if (sizeof(T) == sizeof(float) && since_fold >= terms_before_fold) {
      since_fold = 0;
#pragma unroll
      for (int i = 0; i < rows_per_thread; ++i)
#pragma unroll
        for (int j = 0; j < columns_per_thread; ++j) {
          folded[i][j] += sum[i][j];
          sum[i][j] = 0;
        }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < rows_per_thread; ++i) {
    const Index row = m0 + (transposed ? y * rows_per_thread + i : y + i * row_groups);
    if (row >= job.m) continue;
#pragma unroll
    for (int j = 0; j < columns_per_thread; ++j) {
      const Index column = n0 + x * columns_per_thread + j;
      if (column >= q) continue;
      const T value = folded[i][j] + sum[i][j];
      if (partials != nullptr) {
        partials[(blockIdx.z * job.m + row) * q + column] = value;
      } else {
        finish(job, row, column, static_cast<double>(value));
      }
    }
  }
}

template <class T>
struct AddSplits {
  ProductJob<T> job;
  const T* partials;
  Index splits;
  __device__ void operator()(Index i, Index j) const {
    const Index q = job.b.cols;
    double sum = 0;
    for (Index split = 0; split < splits; ++split) sum += static_cast<double>(partials[(split * job.m + i) * q + j]);
    finish(job, i, j, sum);
  }
};

template <class T, int columns>
void launch_product(cudaStream_t stream, const ProductJob<T>& job, T* partials, const Cut& cut) {
  constexpr Index per_pack = 16 / sizeof(T);
  const bool aligned = reinterpret_cast<std::uintptr_t>(job.a) % 16 == 0 && job.a_stride % per_pack == 0;
  const dim3 blocks(static_cast<unsigned>(over(job.m, tile_rows)), static_cast<unsigned>(over(job.b.cols, columns)),
                    static_cast<unsigned>(cut.splits));
  if (job.transposed) {
    product_tiles<T, columns, true><<<blocks, threads, 0, stream>>>(job, aligned, partials, cut.per_split);
  } else {
    product_tiles<T, columns, false><<<blocks, threads, 0, stream>>>(job, aligned, partials, cut.per_split);
  }
  check_launch("launching a product with the target");
}

}  // namespace

Index product_scratch(Index m, Index k, Index q) {
  const Cut cut = cut_of(m, k, q);
  return cut.splits > 1 ? cut.splits * m * q : 0;
}

template <class T>
void product(cudaStream_t stream, const ProductJob<T>& job, T* scratch) {
  const Index q = job.b.cols;
  if (job.m <= 0 || q <= 0) return;
  if (job.k <= 0) {
    if (!job.add) fill(stream, job.c, T(0));
    return;
  }
  const Cut cut = cut_of(job.m, job.k, q);
  T* partials = cut.splits > 1 ? scratch : nullptr;
  switch (tile_columns(q)) {
    case 16:
      launch_product<T, 16>(stream, job, partials, cut);
      break;
    case 32:
      launch_product<T, 32>(stream, job, partials, cut);
      break;
    default:
      launch_product<T, 64>(stream, job, partials, cut);
  }
  if (partials != nullptr)
    launch_for_each(stream, job.m, q, AddSplits<T>{job, partials, cut.splits},
                    "launching the sum of a product's parts");
}

template void product<float>(cudaStream_t, const ProductJob<float>&, float*);
template void product<double>(cudaStream_t, const ProductJob<double>&, double*);

}  // namespace itspace::cuda::kernels
