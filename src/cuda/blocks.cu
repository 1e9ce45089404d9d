// SPDX-License-Identifier: Apache-2.0
//
// What is done value by value.
#include "cuda/launch.cuh"

namespace itspace::cuda::kernels {

namespace {

struct Nothing {
  __device__ void operator()(Index, Index) const {}
};

}  // namespace

void check_compiled_for_this_device() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, for_each_value<Nothing>), "loading the kernels");
}

namespace {

template <class T>
struct Blend {
  In<T> y, b;
  double alpha;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    const double from = y.data[i * y.stride + j], to = b.data[i * b.stride + j];
    out.data[i * out.stride + j] = static_cast<T>((1 - alpha) * from + alpha * to);
  }
};

template <class T>
struct ScaleColumns {
  const double* factors;
  Out<T> block;
  __device__ void operator()(Index i, Index j) const {
    T& value = block.data[i * block.stride + j];
    value = static_cast<T>(static_cast<double>(value) * factors[j]);
  }
};

template <class T>
struct SubtractScaled {
  In<T> a, b;
  const double* factors;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    const double scaled = static_cast<double>(b.data[i * b.stride + j]) * factors[j];
    out.data[i * out.stride + j] = static_cast<T>(static_cast<double>(a.data[i * a.stride + j]) - scaled);
  }
};

template <class T>
struct Copy {
  In<T> from;
  Out<T> to;
  __device__ void operator()(Index i, Index j) const { to.data[i * to.stride + j] = from.data[i * from.stride + j]; }
};

template <class T>
struct Fill {
  Out<T> block;
  T value;
  __device__ void operator()(Index i, Index j) const { block.data[i * block.stride + j] = value; }
};

template <class T>
struct FindNotFinite {
  In<T> block;
  int* flags;
  __device__ void operator()(Index i, Index j) const {
    if (!isfinite(block.data[i * block.stride + j])) atomicOr(flags + (i == 0 ? 0 : 1), 1);  // the same in any order
  }
};

template <class T>
struct SubtractRow {
  const double *v, *row_factors;
  double factor;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    T& value = out.data[i * out.stride + j];
    const double scale = row_factors != nullptr ? factor * row_factors[i] : factor;
    value = static_cast<T>(scale * (static_cast<double>(value) - v[j]));
  }
};

template <class T>
struct ScaleRows {
  In<T> in;
  const double* row_factors;
  double factor;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    const double scale = row_factors != nullptr ? factor * row_factors[i] : factor;
    out.data[i * out.stride + j] = static_cast<T>(scale * static_cast<double>(in.data[i * in.stride + j]));
  }
};

template <class T>
struct SubtractProduct {
  const double *u, *v;
  double factor;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    T& value = out.data[i * out.stride + j];
    value = static_cast<T>(static_cast<double>(value) - factor * u[i] * v[j]);
  }
};

template <class T>
struct AddDiagonal {
  const double* diagonal;
  double constant;
  In<T> y;
  Out<T> out;
  __device__ void operator()(Index i, Index j) const {
    const double entry = diagonal != nullptr ? diagonal[i] : constant;
    T& value = out.data[i * out.stride + j];
    value = static_cast<T>(static_cast<double>(value) + entry * static_cast<double>(y.data[i * y.stride + j]));
  }
};

}  // namespace

template <class T>
void blend(cudaStream_t stream, In<T> y, In<T> b, double alpha, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, Blend<T>{y, b, alpha, out}, "launching a blend of two blocks");
}

template <class T>
void scale_columns(cudaStream_t stream, const double* factors, Out<T> block) {
  launch_for_each(stream, block.rows, block.cols, ScaleColumns<T>{factors, block}, "launching a scaling of columns");
}

template <class T>
void subtract_scaled(cudaStream_t stream, In<T> a, In<T> b, const double* factors, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, SubtractScaled<T>{a, b, factors, out},
                  "launching a difference of two blocks");
}

template <class T>
void copy(cudaStream_t stream, In<T> from, Out<T> to) {
  launch_for_each(stream, to.rows, to.cols, Copy<T>{from, to}, "launching a copy of a block");
}

template <class T>
void fill(cudaStream_t stream, Out<T> block, T value) {
  launch_for_each(stream, block.rows, block.cols, Fill<T>{block, value}, "launching a filling of a block");
}

template <class T>
void find_not_finite(cudaStream_t stream, In<T> block, int* flags) {
  launch_for_each(stream, block.rows, block.cols, FindNotFinite<T>{block, flags}, "launching a search for NaN");
}

template <class T>
void subtract_row(cudaStream_t stream, const double* v, const double* row_factors, double factor, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, SubtractRow<T>{v, row_factors, factor, out}, "launching a centring");
}

template <class T>
void scale_rows(cudaStream_t stream, In<T> in, const double* row_factors, double factor, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, ScaleRows<T>{in, row_factors, factor, out},
                  "launching a scaling of rows");
}

template <class T>
void subtract_product(cudaStream_t stream, const double* u, const double* v, double factor, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, SubtractProduct<T>{u, v, factor, out}, "launching a rank-one update");
}

template <class T>
void add_diagonal(cudaStream_t stream, const double* diagonal, double constant, In<T> y, Out<T> out) {
  launch_for_each(stream, out.rows, out.cols, AddDiagonal<T>{diagonal, constant, y, out},
                  "launching a product with a diagonal");
}

#define ITSPACE_INSTANTIATE(T)                                                                   \
  template void blend<T>(cudaStream_t, In<T>, In<T>, double, Out<T>);                            \
  template void scale_columns<T>(cudaStream_t, const double*, Out<T>);                           \
  template void subtract_scaled<T>(cudaStream_t, In<T>, In<T>, const double*, Out<T>);           \
  template void copy<T>(cudaStream_t, In<T>, Out<T>);                                            \
  template void fill<T>(cudaStream_t, Out<T>, T);                                                \
  template void find_not_finite<T>(cudaStream_t, In<T>, int*);                                   \
  template void subtract_row<T>(cudaStream_t, const double*, const double*, double, Out<T>);     \
  template void scale_rows<T>(cudaStream_t, In<T>, const double*, double, Out<T>);               \
  template void subtract_product<T>(cudaStream_t, const double*, const double*, double, Out<T>); \
  template void add_diagonal<T>(cudaStream_t, const double*, double, In<T>, Out<T>);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda::kernels
