// SPDX-License-Identifier: Apache-2.0
#include <itspace/targets.hpp>

#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/scratch.hpp"

#include <cmath>

namespace itspace {
namespace {

void check_nonnegative(const Vector& values, const char* what) {
  for (Index i = 0; i < values.size(); ++i)
    require(values(i) >= 0 && std::isfinite(values(i)), what, "[", i, "] is ", values(i),
            "; a covariance needs it to be 0 or more and finite");
}

}  // namespace

template <Storage Scalar, Storage Data>
LowRankDiagonalTarget<Scalar, Data>::LowRankDiagonalTarget(HeldBlock<Data> u, Vector lambda, Vector diagonal)
    : u_(std::move(u)), lambda_(std::move(lambda)), diagonal_(std::move(diagonal)) {
  require(u_.rows() > 0, "U has no rows; the target needs at least one coordinate");
  require(lambda_.size() == u_.cols(), "U has ", u_.cols(), " columns and lambda has ", lambda_.size(),
          " entries; give one per column");
  require(diagonal_.size() == u_.rows(), "U has ", u_.rows(), " rows and the diagonal has ", diagonal_.size(),
          " entries; give one per row");
  check_nonnegative(lambda_, "lambda");
  check_nonnegative(diagonal_, "diagonal");
  SmallVector squares;
  kernels::column_squares<Data>(u_.view(), squares);
  trace_ = squares.dot(lambda_) + diagonal_.sum();
}

template <Storage Scalar, Storage Data>
LowRankDiagonalTarget<Scalar, Data>::LowRankDiagonalTarget(HeldBlock<Data> u, Vector lambda, double sigma_squared)
    : LowRankDiagonalTarget(u, std::move(lambda), Vector::Constant(u.rows(), sigma_squared)) {}

template <Storage Scalar, Storage Data>
void LowRankDiagonalTarget<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  BlockView<Scalar> inner = kernels::scratch_block<Scalar, kernels::Scratch::inner>(u_.cols(), y.cols());
  if (u_.cols() > 0) kernels::gemm<Scalar, Data>(kernels::Op::transposed, Scalar(1), u_.view(), y, Scalar(0), inner);
  inner.array().colwise() *= lambda_.template cast<Scalar>().array();
  for (Index i = 0; i < y.rows(); ++i) out.row(i) = static_cast<Scalar>(diagonal_(i)) * y.row(i);
  if (u_.cols() > 0) kernels::gemm<Scalar, Data>(kernels::Op::plain, Scalar(1), u_.view(), inner, Scalar(1), out);
}

template class LowRankDiagonalTarget<float>;
template class LowRankDiagonalTarget<double>;
template class LowRankDiagonalTarget<double, float>;

}  // namespace itspace
