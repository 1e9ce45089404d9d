// SPDX-License-Identifier: Apache-2.0
//
// W = Sigma Y for features by one sweep over them (features_product.cuh), for each 16 columns of Y.
#include "cuda/features_product.cuh"
#include "cuda/launch.cuh"

#include <cstdint>
#include <type_traits>

namespace itspace::cuda::kernels {
namespace {

constexpr int R = features_rank;

struct SweepArguments {
  CUtensorMap z;
  FeaturesLayout layout;
  const float* y;  // by put_y()
};

template <int Boxes>
__global__ void __launch_bounds__(cluster_threads, 1) sweep_features(const __grid_constant__ SweepArguments arguments) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<FeaturesShared<Boxes>*>(memory);
  FeaturesProduct<Boxes> product(&arguments.z, arguments.layout,
                                 reinterpret_cast<float*>(memory + arguments.layout.stages_at), shared);
  product.multiply(arguments.y, false);
  product.finish();
#endif
}

// Y in the order of the lanes.
struct LayOut {
  In<float> y;
  float* to;

  __device__ void operator()(Index i, Index j) const {
    to[lane_place<R>(static_cast<int>(i), static_cast<int>(j))] =
        i < y.rows && j < y.cols ? y.data[i * y.stride + j] : 0.0f;
  }
};

constexpr int add_threads = 256;

__global__ void __launch_bounds__(add_threads)
    add_up_features(const __grid_constant__ FeaturesLayout layout, int cluster_values, const Out<float> out) {
  const int e = static_cast<int>(blockIdx.x) * add_threads + static_cast<int>(threadIdx.x);
  const int row = e / 4 / R * 4, column = e / 4 % R;
  const float w = finished_row(layout, cluster_values, row, column);
  if (column < static_cast<int>(out.cols) && row + e % 4 < layout.dim)
    out.data[(row + e % 4) * out.stride + column] = w;
}

template <int Boxes>
FeaturesPlan<Boxes> plan_for(Index dim, Index samples, const Limits& limits) {
  return {static_cast<int>(dim), samples, 1, limits, sizeof(FeaturesShared<Boxes>), 0};
}

template <int Boxes>
std::size_t y_bytes(const FeaturesPlan<Boxes>& plan) {
  return static_cast<std::size_t>(plan.columns()) * R * sizeof(float);
}

template <int Boxes>
bool launch_columns(cudaStream_t stream, const Limits& limits, const In<float>& z, const FeaturesTerms<float>& terms,
                    const In<float>& y, const Out<float>& out, unsigned char* scratch) {
  const FeaturesPlan<Boxes> plan = plan_for<Boxes>(z.cols, z.rows, limits);
  auto* const laid_out = reinterpret_cast<float*>(scratch);
  SweepArguments arguments{{}, plan.layout_for(terms, scratch + y_bytes(plan)), laid_out};
  if (!plan.fits || !describe_rows(z.data, static_cast<std::size_t>(z.stride), static_cast<std::size_t>(z.rows),
                                   static_cast<int>(z.cols), plan.box, &arguments.z))
    return false;
  launch_for_each(stream, plan.columns(), R, LayOut{y, laid_out}, "laying out a block for a product");
  const auto kernel = sweep_features<Boxes>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.shared_bytes)),
        "asking for shared memory");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(plan.cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(plan.blocks));
  config.blockDim = dim3(cluster_threads);
  config.dynamicSmemBytes = plan.shared_bytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, arguments), "launching a sweep over features");
  const Index lanes = R * over(out.rows, 4) * 4;
  add_up_features<<<static_cast<unsigned>(over(lanes, add_threads)), add_threads, 0, stream>>>(arguments.layout,
                                                                                               plan.columns() * R, out);
  check_launch("adding up a sweep over features");
  return true;
}

}  // namespace

template <class T>
std::size_t features_product_scratch(Index dim, Index samples) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr Index most_dim = most_features_cluster * most_features_boxes * column_warps * box_columns;
    const Limits limits = limits_of_device();
    if (dim > most_dim || limits.major != 9) return 0;
    return with_boxes(features_shape(static_cast<int>(dim)).boxes, [&](auto boxes) -> std::size_t {
      const auto plan = plan_for<boxes.value>(dim, samples, limits);
      return plan.fits ? y_bytes(plan) + plan.partial_bytes() + plan.delta_bytes() : 0;
    });
  }
  return 0;
}

template <class T>
bool features_product(cudaStream_t stream, const In<T>& z, const FeaturesTerms<T>& terms, const In<T>& y,
                      const Out<T>& out, unsigned char* scratch) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::size_t unit = 16;
    const bool aligned = reinterpret_cast<std::uintptr_t>(z.data) % unit == 0 &&
                         static_cast<std::size_t>(z.stride) * sizeof(T) % unit == 0;
    if (!aligned || terms.scale == nullptr) return false;
    const Limits limits = limits_of_device();
    for (Index first = 0; first < y.cols; first += R) {
      const Index cols = y.cols - first < R ? y.cols - first : R;
      const In<T> in{y.data + first, y.rows, cols, y.stride};
      const Out<T> to{out.data + first, out.rows, cols, out.stride};
      // (The first launch tells whether it can be done.)
      if (!with_boxes(features_shape(static_cast<int>(z.cols)).boxes, [&](auto boxes) {
            return launch_columns<boxes.value>(stream, limits, z, terms, in, to, scratch);
          }))
        return false;
    }
    return true;
  }
  return false;
}

template std::size_t features_product_scratch<float>(Index, Index);
template std::size_t features_product_scratch<double>(Index, Index);
template bool features_product(cudaStream_t, const In<float>&, const FeaturesTerms<float>&, const In<float>&,
                               const Out<float>&, unsigned char*);
template bool features_product(cudaStream_t, const In<double>&, const FeaturesTerms<double>&, const In<double>&,
                               const Out<double>&, unsigned char*);

}  // namespace itspace::cuda::kernels
