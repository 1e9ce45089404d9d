// SPDX-License-Identifier: Apache-2.0
#include "kernels/blas_products.hpp"

#include "kernels/blas_int.hpp"
#include "kernels/scratch.hpp"

#include <cblas.h>

#include <algorithm>

namespace itspace::kernels {
namespace {

int leading(Index stride) {
  return blas_int(std::max<Index>(1, stride));
}
CBLAS_TRANSPOSE cblas_op(Op op) {
  return op == Op::plain ? CblasNoTrans : CblasTrans;
}

void cblas_gemm(Op op_a, Op op_b, Index m, Index n, Index k, float alpha, const float* a, Index lda, const float* b,
                Index ldb, float beta, float* c, Index ldc) {
  cblas_sgemm(CblasRowMajor, cblas_op(op_a), cblas_op(op_b), blas_int(m), blas_int(n), blas_int(k), alpha, a,
              leading(lda), b, leading(ldb), beta, c, leading(ldc));
}
void cblas_gemm(Op op_a, Op op_b, Index m, Index n, Index k, double alpha, const double* a, Index lda, const double* b,
                Index ldb, double beta, double* c, Index ldc) {
  cblas_dgemm(CblasRowMajor, cblas_op(op_a), cblas_op(op_b), blas_int(m), blas_int(n), blas_int(k), alpha, a,
              leading(lda), b, leading(ldb), beta, c, leading(ldc));
}

template <Storage Scalar>
struct Panel {
  const Scalar* data;
  Index stride;
};

// Rows [row, row + count) of a block in another type, less `shift` where there is one: the block itself where neither
// changes it, a copy in `scratch` where one does.
template <Storage Scalar, Storage Data>
Panel<Scalar> panel_of(const ConstBlockView<Data>& a, const Scalar* shift, Index row, Index count, Scalar* scratch) {
  if constexpr (std::same_as<Scalar, Data>)
    if (shift == nullptr) return {a.data() + row * a.outerStride(), a.outerStride()};
  const Index cols = a.cols();
  for (Index i = 0; i < count; ++i) {
    const Data* from = a.data() + (row + i) * a.outerStride();
    Scalar* to = scratch + i * cols;
    if (shift == nullptr) {
      for (Index j = 0; j < cols; ++j) to[j] = static_cast<Scalar>(from[j]);
    } else {
      for (Index j = 0; j < cols; ++j) to[j] = static_cast<Scalar>(from[j]) - shift[j];
    }
  }
  return {scratch, cols};
}

// Rows of a panel that is copied: it stays in the second-level cache until it is multiplied. Where nothing is copied,
// all: BLAS tiles better than we would.
template <Storage Scalar, Storage Data>
Index rows_at_once(const ConstBlockView<Data>& a, bool shifted) {
  constexpr Index cached_values = Index(1) << 16, fewest_rows = 64;
  const Index rows = std::max<Index>(1, a.rows());
  if (std::same_as<Scalar, Data> && !shifted) return rows;
  return std::min(rows, std::max(fewest_rows, cached_values / std::max<Index>(1, a.cols())));
}

template <Storage Scalar, Storage Data, Scratch Purpose>
Scalar* panel_scratch(const ConstBlockView<Data>& a, Index rows, bool shifted) {
  if (std::same_as<Scalar, Data> && !shifted) return nullptr;
  return thread_scratch<Scalar, Purpose>(rows * a.cols());
}

}  // namespace

template <Storage Scalar, Storage Data>
void blas_gemm(Op op_a, Scalar alpha, const ConstBlockView<Data>& a, const Scalar* shift,
               const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar>& c) {
  const bool shifted = shift != nullptr;
  const Index step = rows_at_once<Scalar, Data>(a, shifted);
  Scalar* scratch = panel_scratch<Scalar, Data, Scratch::converted_panel>(a, step, shifted);
  Index row = 0;
  do {  // once even where a has no rows: c = beta c
    const Index count = std::min(step, a.rows() - row);
    const auto panel = panel_of<Scalar, Data>(a, shift, row, count, scratch);
    if (op_a == Op::plain) {
      cblas_gemm(op_a, Op::plain, count, c.cols(), a.cols(), alpha, panel.data, panel.stride, b.data(), b.outerStride(),
                 beta, c.data() + row * c.outerStride(), c.outerStride());
    } else {
      cblas_gemm(op_a, Op::plain, a.cols(), c.cols(), count, alpha, panel.data, panel.stride,
                 b.data() + row * b.outerStride(), b.outerStride(), row == 0 ? beta : Scalar(1), c.data(),
                 c.outerStride());
    }
    row += step;
  } while (row < a.rows());
}

template <Storage Scalar>
void blas_gram(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, Small& out) {
  out.setZero(a.cols(), b.cols());
  const Index step = std::min(rows_at_once<double, Scalar>(a, false), rows_at_once<double, Scalar>(b, false));
  double* scratch = panel_scratch<double, Scalar, Scratch::double_panel>(a, step, false);
  double* other = panel_scratch<double, Scalar, Scratch::product_panel>(b, step, false);
  const bool same = a.data() == b.data() && a.cols() == b.cols() && a.outerStride() == b.outerStride();
  for (Index row = 0; row < a.rows(); row += step) {
    const Index count = std::min(step, a.rows() - row);
    const auto pa = panel_of<double, Scalar>(a, nullptr, row, count, scratch);
    const auto pb = same ? pa : panel_of<double, Scalar>(b, nullptr, row, count, other);
    // Small is column-major, so b'a written by rows is a'b.
    cblas_gemm(Op::transposed, Op::plain, b.cols(), a.cols(), count, 1.0, pb.data, pb.stride, pa.data, pa.stride, 1.0,
               out.data(), out.rows());
  }
}

template <Storage Scalar>
void blas_multiply(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar>& out, Write write) {
  constexpr Index step = 256;
  double* scratch = panel_scratch<double, Scalar, Scratch::double_panel>(a, step, false);
  double* product = thread_scratch<double, Scratch::product_panel>(step * m.cols());
  for (Index row = 0; row < a.rows(); row += step) {
    const Index count = std::min(step, a.rows() - row);
    const auto pa = panel_of<double, Scalar>(a, nullptr, row, count, scratch);
    cblas_gemm(Op::plain, Op::transposed, count, m.cols(), a.cols(), 1.0, pa.data, pa.stride, m.data(), m.rows(), 0.0,
               product, m.cols());
    for (Index i = 0; i < count; ++i) {
      Scalar* to = out.data() + (row + i) * out.outerStride();
      const double* from = product + i * m.cols();
      if (write == Write::assign) {
        for (Index j = 0; j < m.cols(); ++j) to[j] = static_cast<Scalar>(from[j]);
      } else {
        for (Index j = 0; j < m.cols(); ++j) to[j] = static_cast<Scalar>(static_cast<double>(to[j]) + from[j]);
      }
    }
  }
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                       \
  template void blas_gemm<Scalar, Data>(Op, Scalar, const ConstBlockView<Data>&, const Scalar*, \
                                        const ConstBlockView<Scalar>&, Scalar, BlockView<Scalar>&);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

#define ITSPACE_INSTANTIATE(Scalar)                                                              \
  template void blas_gram(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, Small&); \
  template void blas_multiply(const ConstBlockView<Scalar>&, const Small&, BlockView<Scalar>&, Write);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
