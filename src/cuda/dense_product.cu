// SPDX-License-Identifier: Apache-2.0
//
// W = Sigma Y for a dense Sigma by the copy engine: all of Sigma once for each 32 columns of Y (row_product.cuh), or
// half of it for each 16 where it is large (half_product.cuh), up to 32 in one launch.
#include "cuda/half_product.cuh"
#include "cuda/launch.cuh"
#include "cuda/row_product.cuh"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace itspace::cuda::kernels {
namespace {

constexpr int most_half_products = static_cast<int>(most_dense_columns) / half_rank;  // of a launch

template <class T, int R>
struct ProductArguments {
  CUtensorMap sigma;
  RowLayout layout;
  const T* y;  // by y_place()
  Out<T> out;
};

template <class T, int R>
__global__ void __launch_bounds__(fused_threads, 1)
    multiply_rows(const __grid_constant__ ProductArguments<T, R> arguments) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<RowShared<T, R>*>(memory);
  T* const w_rows = reinterpret_cast<T*>(memory + sizeof(RowShared<T, R>));
  RowProduct<T, R> product(&arguments.sigma, arguments.layout,
                           reinterpret_cast<T*>(memory + arguments.layout.stages_at), shared);
  product.run(arguments.y, false, w_rows);
  const Out<T>& out = arguments.out;
  for (int e = threadIdx.x; e < product.rows() * R; e += fused_threads)
    if (e % R < out.cols) out.data[(product.row(e / R)) * out.stride + e % R] = w_rows[e];
#endif
}

template <class T>
struct HalfArguments {
  CUtensorMap sigma;
  HalfLayout layout;
  const T* y;  // of each 16 columns, one after the other, as the parts are
  std::size_t y_values, part_values;
  Out<T> out;
};

template <class T>
__global__ void __launch_bounds__(half_threads, 1) multiply_half(const __grid_constant__ HalfArguments<T> arguments) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char memory[];
  HalfProduct<T> product(&arguments.sigma, arguments.layout, reinterpret_cast<T*>(memory + arguments.layout.stages_at),
                         *reinterpret_cast<HalfShared<T>*>(memory));
  for (int n = 0; n < arguments.layout.products; ++n) {
    product.multiply(arguments.y + n * arguments.y_values, n % 2 != 0,
                     static_cast<T*>(arguments.layout.parts) + n * arguments.part_values);
    __syncthreads();
  }
#endif
}
template <class T>
__global__ void __launch_bounds__(half_threads) add_half(const __grid_constant__ HalfArguments<T> arguments) {
#if __CUDA_ARCH__ >= 900
  __shared__ HalfOwners owners;
  owners.set(arguments.layout);
  __syncthreads();
  const Out<T>& out = arguments.out;
  const int first = static_cast<int>(blockIdx.y) * half_rank;
  const T* const parts = static_cast<const T*>(arguments.layout.parts) + blockIdx.y * arguments.part_values;
  for_half_rows<T>(arguments.layout, owners, parts, [&](int i, int j, const auto& values) {
    T* const to = out.data + half_row(i) * out.stride + first + j;
#pragma unroll
    for (int v = 0; v < static_cast<int>(sizeof(values) / sizeof(T)); ++v)
      if (first + j + v < out.cols) to[v] = values[v];
  });
#endif
}

// Y as the copy engine needs it, R columns after R columns.
template <class T, int R, class Product>
struct LayOut {
  In<T> y;
  T* to;
  std::size_t values;  // of R columns

  __device__ void operator()(Index i, Index j) const {
    Product::put_y(to + static_cast<std::size_t>(j / R) * values, static_cast<int>(i), static_cast<int>(j % R),
                   i < y.rows && j < y.cols ? y.data[i * y.stride + j] : T(0));
  }
};
template <class T, int R, class Product>
void lay_out(cudaStream_t stream, int dim, const In<T>& y, T* to, std::size_t values) {
  launch_for_each(stream, static_cast<Index>(padded_rows(dim)), over(y.cols, R) * R,
                  LayOut<T, R, Product>{y, to, values}, "laying out a block for a product");
}
template <class Kernel>
void ask_for_shared_memory(Kernel kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "asking for shared memory");
}

template <class T, int R>
bool launch_columns(cudaStream_t stream, const Limits& limits, const In<T>& sigma, const In<T>& y, const Out<T>& out,
                    T* scratch) {
  const int dim = static_cast<int>(sigma.rows);
  const RowPlan<T, R> plan(dim, limits, sizeof(RowShared<T, R>), R * sizeof(T), false);
  ProductArguments<T, R> arguments{{}, plan.layout, scratch, out};
  if (!plan.fits ||
      !describe_sigma(sigma.data, static_cast<std::size_t>(sigma.stride), dim, plan.box, &arguments.sigma))
    return false;
  lay_out<T, R, RowProduct<T, R>>(stream, dim, y, scratch, 0);
  const auto kernel = multiply_rows<T, R>;
  ask_for_shared_memory(kernel, plan.shared_bytes);
  kernel<<<static_cast<unsigned>(plan.blocks), fused_threads, plan.shared_bytes, stream>>>(arguments);
  check_launch("launching a product");
  return true;
}

// (A plan takes as long as a launch: each thread keeps its last one.)
template <class T>
const HalfPlan<T>& half_plan(int dim, const Limits& limits) {
  struct Kept {
    HalfPlan<T> plan;
    Limits limits;
  };
  thread_local std::optional<Kept> kept;
  if (!kept || kept->plan.layout.dim != dim || kept->limits != limits)
    kept.emplace(Kept{{dim, limits, sizeof(HalfShared<T>), 0, false}, limits});
  return kept->plan;
}
template <class T>
std::size_t half_y_values(int dim) {
  return padded_rows(dim) * HalfShape<T>::y_row_values;
}

template <class T>
bool launch_half(cudaStream_t stream, const HalfPlan<T>& plan, const In<T>& sigma, const In<T>& y, const Out<T>& out,
                 T* scratch) {
  const int dim = static_cast<int>(sigma.rows), products = static_cast<int>(over(y.cols, half_rank));
  HalfArguments<T> arguments{{}, plan.layout, scratch, half_y_values<T>(dim), plan.part_values, out};
  if (!describe_sigma(sigma.data, static_cast<std::size_t>(sigma.stride), dim, plan.box, &arguments.sigma))
    return false;
  arguments.layout.parts = scratch + most_half_products * arguments.y_values;
  arguments.layout.products = products;
  lay_out<T, half_rank, HalfProduct<T>>(stream, dim, y, scratch, arguments.y_values);
  const auto kernel = multiply_half<T>;
  ask_for_shared_memory(kernel, plan.shared_bytes);
  const auto blocks = static_cast<unsigned>(plan.blocks);
  kernel<<<blocks, half_threads, plan.shared_bytes, stream>>>(arguments);
  check_launch("launching a product");
  add_half<T><<<dim3(blocks, static_cast<unsigned>(products)), half_threads, 0, stream>>>(arguments);
  check_launch("adding up a product");
  return true;
}

}  // namespace

template <class T>
Index dense_product_scratch(Index dim) {
  const int rows = static_cast<int>(dim);
  const Index all = static_cast<Index>(padded_rows(rows)) * most_dense_columns;
  if (dim < least_half_dim<T>) return all;
  const std::size_t of_half = half_y_values<T>(rows) + half_plan<T>(rows, limits_of_device()).part_values;
  return std::max(all, static_cast<Index>(most_half_products * of_half));
}

template <class T>
bool dense_product(cudaStream_t stream, const In<T>& sigma, const In<T>& y, const Out<T>& out, T* scratch) {
  constexpr std::size_t unit = 16;
  const bool aligned = reinterpret_cast<std::uintptr_t>(sigma.data) % unit == 0 &&
                       static_cast<std::size_t>(sigma.stride) * sizeof(T) % unit == 0;
  const Limits limits = limits_of_device();
  if (!aligned || limits.major != 9) return false;
  const HalfPlan<T>* half = nullptr;
  if (sigma.rows >= least_half_dim<T>) half = &half_plan<T>(static_cast<int>(sigma.rows), limits);
  for (Index first = 0; first < y.cols; first += most_dense_columns) {
    const Index cols = y.cols - first < most_dense_columns ? y.cols - first : most_dense_columns;
    const In<T> in{y.data + first, y.rows, cols, y.stride};
    const Out<T> to{out.data + first, out.rows, cols, out.stride};
    // (The first launch tells whether it can be done.)
    if (!(half != nullptr && half->fits ? launch_half<T>(stream, *half, sigma, in, to, scratch)
          : cols <= 16                  ? launch_columns<T, 16>(stream, limits, sigma, in, to, scratch)
                                        : launch_columns<T, 32>(stream, limits, sigma, in, to, scratch)))
      return false;
  }
  return true;
}

template Index dense_product_scratch<float>(Index);
template Index dense_product_scratch<double>(Index);
template bool dense_product(cudaStream_t, const In<float>&, const In<float>&, const Out<float>&, float*);
template bool dense_product(cudaStream_t, const In<double>&, const In<double>&, const Out<double>&, double*);

}  // namespace itspace::cuda::kernels
