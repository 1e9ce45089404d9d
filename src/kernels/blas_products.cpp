// SPDX-License-Identifier: Apache-2.0
#include "kernels/blas_products.hpp"

#include "kernels/blas_int.hpp"
#include "kernels/pool.hpp"
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

template <Storage Scalar, Storage Data>
void gemm_by_panels(Op op_a, Scalar alpha, const ConstBlockView<Data>& a, const Scalar* shift,
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

}  // namespace

// On our threads, with one of BLAS's each: its own wait for more work for a while, awake, and would contend with ours
// in the sweeps that follow.
template <Storage Scalar, Storage Data>
void blas_gemm(Op op_a, Scalar alpha, const ConstBlockView<Data>& a, const Scalar* shift,
               const ConstBlockView<Scalar>& b, Scalar beta, BlockView<Scalar>& c) {
  constexpr Index fewest_rows = 64, group = 16;  // of a part: each brings all of b in order for itself
  const double work = static_cast<double>(a.size()) * static_cast<double>(b.cols());
  const Index parts = std::min(parts_for(work), c.rows() / fewest_rows);
  if (parts <= 1 || !OneBlasThread::is_to_be_had()) {
    gemm_by_panels<Scalar, Data>(op_a, alpha, a, shift, b, beta, c);
    return;
  }
  const OneBlasThread blas;
  run_parts(parts, [&](Index part) {
    const Range rows = part_of(c.rows(), parts, part, group);
    const Index count = rows.end - rows.begin;
    if (count == 0) return;
    BlockView<Scalar> own = c.middleRows(rows.begin, count);
    if (op_a == Op::plain) {
      const ConstBlockView<Data> of_a = a.middleRows(rows.begin, count);
      gemm_by_panels<Scalar, Data>(op_a, alpha, of_a, shift, b, beta, own);
    } else {
      const ConstBlockView<Data> of_a = a.middleCols(rows.begin, count);
      gemm_by_panels<Scalar, Data>(op_a, alpha, of_a, shift != nullptr ? shift + rows.begin : nullptr, b, beta, own);
    }
  });
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                       \
  template void blas_gemm<Scalar, Data>(Op, Scalar, const ConstBlockView<Data>&, const Scalar*, \
                                        const ConstBlockView<Scalar>&, Scalar, BlockView<Scalar>&);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
