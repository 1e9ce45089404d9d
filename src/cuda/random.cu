// SPDX-License-Identifier: Apache-2.0
//
// The generator. Compiled with --fmad=false: contraction would change the bits.
#include "core/random_numbers.hpp"
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {
namespace {

template <class T>
struct FillNormal {
  std::uint64_t key;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    out.data[i * out.stride + j] =
        static_cast<T>(random_numbers::normal(key, static_cast<std::uint64_t>(i * out.cols + j)));
  }
};

}  // namespace

template <class T>
void fill_normal(cudaStream_t stream, std::uint64_t key, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, FillNormal<T>{key, out}, "launching the random numbers");
}

template void fill_normal<float>(cudaStream_t, std::uint64_t, Out<float>);
template void fill_normal<double>(cudaStream_t, std::uint64_t, Out<double>);

}  // namespace itspace::cuda::kernels
