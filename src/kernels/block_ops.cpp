// SPDX-License-Identifier: Apache-2.0
#include "kernels/block_ops.hpp"

#include "kernels/blas_int.hpp"
#include "kernels/scratch.hpp"

#include <cblas.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <vector>

// Not every BLAS has it.
extern "C" char* openblas_get_corename(void) __attribute__((weak));

namespace itspace::kernels {
namespace {

// Rows of a panel: the two double panels of a 16-column block stay in the first-level cache beside the r x r matrix.
constexpr Index panel_rows = 128;

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

// Rows [row, row + count) of a block in another type: the block itself where it is of that type, a converted copy in
// `scratch` where not.
template <Storage Scalar, Storage Data>
Panel<Scalar> panel_of(const ConstBlockView<Data>& a, Index row, Index count, Scalar* scratch) {
  if constexpr (std::same_as<Scalar, Data>) {
    return {a.data() + row * a.outerStride(), a.outerStride()};
  } else {
    const Index cols = a.cols();
    for (Index i = 0; i < count; ++i) {
      const Data* from = a.data() + (row + i) * a.outerStride();
      Scalar* to = scratch + i * cols;
      for (Index j = 0; j < cols; ++j) to[j] = static_cast<Scalar>(from[j]);
    }
    return {scratch, cols};
  }
}

// A whole block at once where no conversion is needed: BLAS tiles better than we would.
template <Storage Scalar>
Index rows_at_once(Index rows) {
  return std::same_as<Scalar, double> ? std::max<Index>(rows, 1) : panel_rows;
}

}  // namespace

namespace {

void cblas_gemm_by_columns(Index m, Index n, Index k, float alpha, const float* a, Index lda, const float* b, Index ldb,
                           float beta, float* c) {
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, blas_int(m), blas_int(n), blas_int(k), alpha, a, leading(lda),
              b, leading(ldb), beta, c, leading(m));
}
void cblas_gemm_by_columns(Index m, Index n, Index k, double alpha, const double* a, Index lda, const double* b,
                           Index ldb, double beta, double* c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, blas_int(m), blas_int(n), blas_int(k), alpha, a, leading(lda),
              b, leading(ldb), beta, c, leading(m));
}

// Rows of a converted panel: it stays in the second-level cache until it is multiplied. Where nothing is converted,
// all.
template <Storage Scalar, Storage Data>
Index rows_converted_at_once(const ConstBlockView<Data>& a) {
  constexpr Index cached_values = Index(1) << 16, fewest_rows = 64;
  const Index rows = std::max<Index>(1, a.rows());
  if (std::same_as<Scalar, Data>) return rows;
  return std::min(rows, std::max(fewest_rows, cached_values / std::max<Index>(1, a.cols())));
}

// Scratch for one converted panel of `a`; belongs to the thread.
template <Storage Scalar, Storage Data>
Scalar* panel_scratch(const ConstBlockView<Data>& a, Index rows) {
  if (std::same_as<Scalar, Data>) return nullptr;
  return thread_scratch<Scalar, Scratch::converted_panel>(rows * a.cols());
}

// to (cols x rows, contiguous) = from', in tiles that stay in cache.
template <Storage Scalar>
void transpose(const ConstBlockView<Scalar>& from, Scalar* to) {
  constexpr Index tile = 16;
  const Index rows = from.rows(), cols = from.cols(), stride = from.outerStride();
  for (Index row = 0; row < rows; row += tile)
    for (Index j = 0; j < cols; ++j)
      for (Index i = row; i < std::min(rows, row + tile); ++i) to[j * rows + i] = from.data()[i * stride + j];
}

// c = alpha a' b + beta c with few columns, as a product of column-major blocks. BLAS splits such a product over
// threads by the rows of c; as rows of few values it would split by columns of a, and wait more than it works.
template <Storage Scalar, Storage Data>
void tall_gemm(Scalar alpha, const ConstBlockView<Data>& a, const ConstBlockView<Scalar>& b, Scalar beta,
               BlockView<Scalar>& c) {
  Scalar* b_columns = thread_scratch<Scalar, Scratch::by_columns>(b.size() + c.size());
  Scalar* c_columns = b_columns + b.size();  // a' is a read by columns
  transpose<Scalar>(b, b_columns);
  const Index step = rows_converted_at_once<Scalar, Data>(a);
  Scalar* scratch = panel_scratch<Scalar, Data>(a, step);
  for (Index row = 0; row < a.rows(); row += step) {
    const Index count = std::min(step, a.rows() - row);
    const auto panel = panel_of<Scalar, Data>(a, row, count, scratch);
    cblas_gemm_by_columns(c.rows(), c.cols(), count, alpha, panel.data, panel.stride, b_columns + row, a.rows(),
                          Scalar(row == 0 ? 0 : 1), c_columns);
  }
  // Back into rows, a tile at a time: whole cache lines of each column are read.
  constexpr Index tile = 16;
  const Index rows = c.rows(), stride = c.outerStride();
  for (Index row = 0; row < rows; row += tile) {
    const Index end = std::min(rows, row + tile);
    for (Index j = 0; j < c.cols(); ++j) {
      const Scalar* from = c_columns + j * rows;
      Scalar* to = c.data() + j;
      if (beta == Scalar(0)) {
        for (Index i = row; i < end; ++i) to[i * stride] = from[i];
      } else {
        for (Index i = row; i < end; ++i) to[i * stride] = beta * to[i * stride] + from[i];
      }
    }
  }
}

}  // namespace

namespace {

// OpenBLAS packs its operands before it multiplies; for a product with few columns that is half of its time. On some
// processors it multiplies small products (m n k <= 100^3) as they lie. There we hand it a few rows at a time.
bool has_unpacked_products() {
  static const bool has = [] {
    const char* core = openblas_get_corename != nullptr ? openblas_get_corename() : "";
    for (const char* name : {"SkylakeX", "Cooperlake", "SapphireRapids"})
      if (strcasecmp(core, name) == 0) return true;
    return false;
  }();
  return has;
}

// The rows to hand over at a time; 0 where it does not pay.
Index unpacked_rows(Index cols, Index k) {
  constexpr Index largest_product = 1000000, fewest_rows = 8, most_columns = 64;
  if (cols > most_columns || !has_unpacked_products()) return 0;
  const Index rows = largest_product / std::max<Index>(1, cols * k);
  return rows < fewest_rows ? 0 : rows;
}

}  // namespace

template <Storage Scalar, Storage Data>
void gemm(Op op_a, Scalar alpha, const std::type_identity_t<ConstBlockView<Data>>& a, const ConstBlockView<Scalar>& b,
          Scalar beta, BlockView<Scalar> c) {
  constexpr Index few_columns = 64, many_rows = 256;
  if (c.size() == 0) return;
  if (op_a == Op::transposed && c.cols() <= few_columns && c.rows() >= many_rows && a.rows() >= many_rows) {
    tall_gemm<Scalar, Data>(alpha, a, b, beta, c);
    return;
  }
  const Index unpacked = op_a == Op::plain ? unpacked_rows(c.cols(), a.cols()) : 0;
  const Index step = unpacked > 0 ? unpacked : rows_converted_at_once<Scalar, Data>(a);
  Scalar* scratch = panel_scratch<Scalar, Data>(a, step);
  Index row = 0;
  do {  // once even where a has no rows: c = beta c
    const Index count = std::min(step, a.rows() - row);
    const auto panel = panel_of<Scalar, Data>(a, row, count, scratch);
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

template <Storage Scalar, Storage Data>
void symmetric_gemm(const std::type_identity_t<ConstBlockView<Data>>& a, const ConstBlockView<Scalar>& b,
                    BlockView<Scalar> c) {
  const Op op = unpacked_rows(c.cols(), a.cols()) > 0 ? Op::plain : Op::transposed;
  gemm<Scalar, Data>(op, Scalar(1), a, b, Scalar(0), c);
}

template <Storage Scalar>
void gram(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, Small& out, Panels& panels) {
  out.setZero(a.cols(), b.cols());
  if (out.size() == 0) return;
  const Index step = rows_at_once<Scalar>(a.rows());
  const bool same = a.data() == b.data() && a.cols() == b.cols() && a.outerStride() == b.outerStride();
  for (Index row = 0; row < a.rows(); row += step) {
    const Index count = std::min(step, a.rows() - row);
    const auto pa = panel_of<double, Scalar>(a, row, count, panels.first(panel_rows * a.cols()));
    const auto pb = same ? pa : panel_of<double, Scalar>(b, row, count, panels.second(panel_rows * b.cols()));
    // Small is column-major, so b'a written by rows is a'b.
    cblas_gemm(Op::transposed, Op::plain, b.cols(), a.cols(), count, 1.0, pb.data, pb.stride, pa.data, pa.stride, 1.0,
               out.data(), out.rows());
  }
}

template <Storage Scalar>
void self_gram(const ConstBlockView<Scalar>& a, Small& out, Panels& panels) {
  constexpr Index narrow = 32;
  const Index cols = a.cols();
  if (cols > narrow) {
    gram<Scalar>(a, a, out, panels);
    for (Index j = 0; j < cols; ++j)
      for (Index k = 0; k < j; ++k) out(j, k) = out(k, j);
    return;
  }
  out.setZero(cols, cols);
  double row[narrow];
  for (Index i = 0; i < a.rows(); ++i) {
    const Scalar* from = a.data() + i * a.outerStride();
    for (Index j = 0; j < cols; ++j) row[j] = static_cast<double>(from[j]);
    for (Index j = 0; j < cols; ++j) {
      double* column = out.data() + j * cols;
      for (Index k = 0; k <= j; ++k) column[k] += row[j] * row[k];
    }
  }
  for (Index j = 0; j < cols; ++j)
    for (Index k = 0; k < j; ++k) out(j, k) = out(k, j);
}

template <Storage Scalar>
void multiply(const ConstBlockView<Scalar>& a, const Small& m, BlockView<Scalar> out, Panels& panels, Write write) {
  if (out.size() == 0) return;
  if (m.rows() == 0) {
    if (write == Write::assign) out.setZero();
    return;
  }
  for (Index row = 0; row < a.rows(); row += panel_rows) {
    const Index count = std::min(panel_rows, a.rows() - row);
    const auto pa = panel_of<double, Scalar>(a, row, count, panels.first(panel_rows * a.cols()));
    double* product = panels.second(panel_rows * m.cols());
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

template <Storage Scalar>
void column_squares(const ConstBlockView<Scalar>& a, SmallVector& out) {
  out.setZero(a.cols());
  double* sum = out.data();
  for (Index i = 0; i < a.rows(); ++i) {
    const Scalar* row = a.data() + i * a.outerStride();
    for (Index j = 0; j < a.cols(); ++j) sum[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
  }
}

template <Storage Scalar>
BlendNorms blend_norms(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b) {
  // Eight independent sums: vectorised in a fixed order, so the bits do not depend on the instruction set.
  constexpr Index lanes = 8;
  std::array<double, lanes> squares{}, differences{};
  for (Index i = 0; i < y.rows(); ++i) {
    const Scalar* yi = y.data() + i * y.outerStride();
    const Scalar* bi = b.data() + i * b.outerStride();
    const auto add = [&](Index j, Index lane) {
      const double value = static_cast<double>(bi[j]);
      const double difference = value - static_cast<double>(yi[j]);
      squares[static_cast<std::size_t>(lane)] += value * value;
      differences[static_cast<std::size_t>(lane)] += difference * difference;
    };
    Index j = 0;
    for (; j + lanes <= y.cols(); j += lanes)
      for (Index lane = 0; lane < lanes; ++lane) add(j + lane, lane);
    for (; j < y.cols(); ++j) add(j, j % lanes);
  }
  BlendNorms norms;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    norms.b_squared += squares[lane];
    norms.difference_squared += differences[lane];
  }
  return norms;
}

template <Storage Scalar>
void blend(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha, BlockView<Scalar> out) {
  for (Index i = 0; i < y.rows(); ++i) {
    const Scalar* yi = y.data() + i * y.outerStride();
    const Scalar* bi = b.data() + i * b.outerStride();
    Scalar* to = out.data() + i * out.outerStride();
    for (Index j = 0; j < y.cols(); ++j) {
      const double from = static_cast<double>(yi[j]);
      to[j] = static_cast<Scalar>((1 - alpha) * from + alpha * static_cast<double>(bi[j]));
    }
  }
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                         \
  template void gemm<Scalar, Data>(Op, Scalar, const std::type_identity_t<ConstBlockView<Data>>&, \
                                   const ConstBlockView<Scalar>&, Scalar, BlockView<Scalar>);     \
  template void symmetric_gemm<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&,   \
                                             const ConstBlockView<Scalar>&, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

#define ITSPACE_INSTANTIATE(Scalar)                                                                       \
  template void gram(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, Small&, Panels&);      \
  template void self_gram(const ConstBlockView<Scalar>&, Small&, Panels&);                                \
  template void multiply(const ConstBlockView<Scalar>&, const Small&, BlockView<Scalar>, Panels&, Write); \
  template void column_squares(const ConstBlockView<Scalar>&, SmallVector&);                              \
  template BlendNorms blend_norms(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);          \
  template void blend(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double, BlockView<Scalar>);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
