// SPDX-License-Identifier: Apache-2.0
//
// Whole square matrices in double, value by value: what distances do between products.
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {
namespace {

struct SumOfTwo {
  double x;
  const double* a;
  double y, diagonal;
  double* c;
  Index d;
  __device__ void operator()(Index i, Index j) const {
    const Index e = i * d + j;
    const double before = y != 0 ? y * c[e] : 0;
    c[e] = x * a[e] + before + (i == j ? diagonal : 0);
  }
};

struct KeepLower {
  double* a;
  Index d;
  __device__ void operator()(Index i, Index j) const {
    if (j > i) a[i * d + j] = 0;
  }
};

template <class T>
struct Widen {
  In<T> a;
  const double* mean;
  Out<double> out;
  __device__ void operator()(Index i, Index j) const {
    const double value = a.data[i * a.stride + j];
    out.data[i * out.stride + j] = mean != nullptr ? value - mean[j] : value;
  }
};

template <class T>
struct WidenSymmetric {
  In<T> a;
  double* out;
  __device__ void operator()(Index i, Index j) const {
    const double here = a.data[i * a.stride + j], there = a.data[j * a.stride + i];
    out[i * a.rows + j] = 0.5 * (here + there);
  }
};

}  // namespace

void combine(cudaStream_t stream, double x, const double* a, double y, double diagonal, double* c, Index d) {
  launch_for_each(stream, d, d, SumOfTwo{x, a, y, diagonal, c, d}, "launching a sum of two matrices");
}

void keep_lower(cudaStream_t stream, double* a, Index d) {
  launch_for_each(stream, d, d, KeepLower{a, d}, "launching a cut to a triangle");
}

template <class T>
void widen(cudaStream_t stream, In<T> a, const double* mean, Out<double> out) {
  launch_for_each(stream, a.rows, a.cols, Widen<T>{a, mean, out}, "launching a copy in double");
}

template <class T>
void widen_symmetric(cudaStream_t stream, In<T> a, double* out) {
  launch_for_each(stream, a.rows, a.cols, WidenSymmetric<T>{a, out}, "launching an average with the transpose");
}

#define ITSPACE_INSTANTIATE(T)                                             \
  template void widen<T>(cudaStream_t, In<T>, const double*, Out<double>); \
  template void widen_symmetric<T>(cudaStream_t, In<T>, double*);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda::kernels
