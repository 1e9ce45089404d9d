// SPDX-License-Identifier: Apache-2.0
//
// W = Sigma Y for a dense Sigma by the copy engine (row_product.cuh): all of Sigma once for each 32 columns of Y.
#include "cuda/launch.cuh"
#include "cuda/row_product.cuh"

#include <cstdint>

namespace itspace::cuda::kernels {
namespace {

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
  extern __shared__ __align__(128) unsigned char memory[];
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

// Y as the copy engine needs it.
template <class T, int R>
struct LayOut {
  In<T> y;
  T* to;

  __device__ void operator()(Index i, Index j) const {
    to[y_place<T, R>(static_cast<int>(i), static_cast<int>(j))] =
        i < y.rows && j < y.cols ? y.data[i * y.stride + j] : T(0);
  }
};

template <class T, int R>
bool launch_columns(cudaStream_t stream, const Limits& limits, const In<T>& sigma, const In<T>& y, const Out<T>& out,
                    T* scratch) {
  const int dim = static_cast<int>(sigma.rows);
  const RowPlan<T, R> plan(dim, limits, sizeof(RowShared<T, R>), R * sizeof(T), false);
  ProductArguments<T, R> arguments{{}, plan.layout, scratch, out};
  if (!plan.fits ||
      !describe_sigma(sigma.data, static_cast<std::size_t>(sigma.stride), dim, plan.box, &arguments.sigma))
    return false;
  launch_for_each(stream, static_cast<Index>(padded_rows(dim)), R, LayOut<T, R>{y, scratch},
                  "laying out a block for a product");
  const auto kernel = multiply_rows<T, R>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.shared_bytes)),
        "asking for shared memory");
  kernel<<<static_cast<unsigned>(plan.blocks), fused_threads, plan.shared_bytes, stream>>>(arguments);
  check_launch("launching a product");
  return true;
}

}  // namespace

Index dense_product_scratch(Index dim) {
  return static_cast<Index>(padded_rows(static_cast<int>(dim))) * most_dense_columns;
}

template <class T>
bool dense_product(cudaStream_t stream, const In<T>& sigma, const In<T>& y, const Out<T>& out, T* scratch) {
  constexpr std::size_t unit = 16;
  const bool aligned = reinterpret_cast<std::uintptr_t>(sigma.data) % unit == 0 &&
                       static_cast<std::size_t>(sigma.stride) * sizeof(T) % unit == 0;
  const Limits limits = limits_of_device();
  if (!aligned || limits.major != 9) return false;
  for (Index first = 0; first < y.cols; first += most_dense_columns) {
    const Index cols = y.cols - first < most_dense_columns ? y.cols - first : most_dense_columns;
    const In<T> in{y.data + first, y.rows, cols, y.stride};
    const Out<T> to{out.data + first, out.rows, cols, out.stride};
    // (The first launch tells whether it can be done.)
    if (!(cols <= 16 ? launch_columns<T, 16>(stream, limits, sigma, in, to, scratch)
                     : launch_columns<T, 32>(stream, limits, sigma, in, to, scratch)))
      return false;
  }
  return true;
}

template bool dense_product(cudaStream_t, const In<float>&, const In<float>&, const Out<float>&, float*);
template bool dense_product(cudaStream_t, const In<double>&, const In<double>&, const Out<double>&, double*);

}  // namespace itspace::cuda::kernels
