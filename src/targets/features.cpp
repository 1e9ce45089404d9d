// SPDX-License-Identifier: Apache-2.0
#include <itspace/targets.hpp>

#include "core/feature_moments.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {

using kernels::Op;

namespace {

// Values of a chunk: small enough that it is still in cache when the second product reads it.
constexpr Index chunk_values = Index(1) << 20;
constexpr Index fewest_rows = 8, most_rows = 512;

}  // namespace

template <Storage Scalar, Storage Data>
FeaturesTarget<Scalar, Data>::FeaturesTarget(HeldBlock<Data> features) : FeaturesTarget(std::move(features), {}) {}

template <Storage Scalar, Storage Data>
FeaturesTarget<Scalar, Data>::FeaturesTarget(HeldBlock<Data> features, const Eigen::VectorXd& weights)
    : features_(std::move(features)) {
  const Moments moments = itspace::gather_moments<Data>(features_.view(), weights);
  mean_ = moments.mean;
  weighted_ = weights.size() > 0;
  root_scale_ = moments.root_scale;
  total_ = moments.weight_sum / moments.normaliser;
  shift_ = mean_.transpose().template cast<Scalar>();
  // The mean about the shift, not the difference of the two: where the mean is large, that would be its rounding.
  Eigen::RowVectorXd about_shift = Eigen::RowVectorXd::Zero(shift_.cols());
  for_each_shifted_chunk([&](Index first, const BlockView<Scalar>& rows) {
    for (Index i = 0; i < rows.rows(); ++i)
      about_shift += scale_squared(first + i) / total_ * rows.row(i).template cast<double>();
  });
  shift_error_ = about_shift.transpose();
  // A sum of squares about the mean itself: never below 0, where subtracting the shift's error would be.
  const Eigen::RowVectorXd error = shift_error_.transpose();
  for_each_shifted_chunk([&](Index first, const BlockView<Scalar>& rows) {
    for (Index i = 0; i < rows.rows(); ++i)
      trace_ += (rows.row(i).template cast<double>() - error).squaredNorm() * scale_squared(first + i);
  });
}

template <Storage Scalar, Storage Data>
double FeaturesTarget<Scalar, Data>::scale_squared(Index row) const {
  const double scale = root_scale_(weighted_ ? row : 0);
  return scale * scale;
}

template <Storage Scalar, Storage Data>
template <class Visit>
void FeaturesTarget<Scalar, Data>::for_each_shifted_chunk(Visit visit) const {
  const auto z = features_.view();
  const Index step = std::clamp(chunk_values / z.cols(), fewest_rows, most_rows);
  BlockView<Scalar> chunk =
      kernels::scratch_block<Scalar, kernels::Scratch::feature_chunk>(std::min(step, z.rows()), z.cols());
  for (Index first = 0; first < z.rows(); first += step) {
    BlockView<Scalar> rows = chunk.topRows(std::min(step, z.rows() - first));
    for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = z.row(first + i).template cast<Scalar>() - shift_;
    visit(first, rows);
  }
}

template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::scale_rows(BlockView<Scalar> rows, Index first, int power) const {
  for (Index i = 0; i < rows.rows(); ++i) {
    // Squared one factor at a time: its square may be out of float's range where the row's product is zero.
    const auto scale = static_cast<Scalar>(root_scale_(weighted_ ? first + i : 0));
    for (int factor = 0; factor < power; ++factor) rows.row(i) *= scale;
  }
}

// out = sum_i s_i^2 (z_i - s)(z_i - s)'y - total delta delta'y, delta = mu - s.
template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  const Block<double> delta_y = shift_error_product(y);
  out.setZero();
  for_each_shifted_chunk([&](Index first, const BlockView<Scalar>& rows) {
    BlockView<Scalar> inner = kernels::scratch_block<Scalar, kernels::Scratch::inner>(rows.rows(), y.cols());
    kernels::gemm<Scalar>(Op::plain, Scalar(1), rows, y, Scalar(0), inner);
    scale_rows(inner, first, 2);
    kernels::gemm<Scalar>(Op::transposed, Scalar(1), rows, inner, Scalar(1), out);
  });
  subtract_shift_error(total_ * delta_y, out);
}

template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::apply_factor_transposed(const ConstBlockView<Scalar>& in,
                                                           BlockView<Scalar> out) const {
  const Block<double> delta_y = shift_error_product(in);
  const Eigen::Matrix<Scalar, 1, Eigen::Dynamic> correction = delta_y.template cast<Scalar>();
  for_each_shifted_chunk([&](Index first, const BlockView<Scalar>& rows) {
    BlockView<Scalar> part = out.middleRows(first, rows.rows());
    kernels::gemm<Scalar>(Op::plain, Scalar(1), rows, in, Scalar(0), part);
    part.rowwise() -= correction;
    scale_rows(part, first, 1);
  });
}

template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
  out.setZero();
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(in.cols());
  for_each_shifted_chunk([&](Index first, const BlockView<Scalar>& rows) {
    BlockView<Scalar> inner = kernels::scratch_block<Scalar, kernels::Scratch::inner>(rows.rows(), in.cols());
    inner = in.middleRows(first, rows.rows());
    scale_rows(inner, first, 1);
    sum += inner.template cast<double>().colwise().sum();
    kernels::gemm<Scalar>(Op::transposed, Scalar(1), rows, inner, Scalar(1), out);
  });
  subtract_shift_error(Block<double>(sum), out);
}

template <Storage Scalar, Storage Data>
Block<double> FeaturesTarget<Scalar, Data>::shift_error_product(const ConstBlockView<Scalar>& y) const {
  Block<double> product = Block<double>::Zero(1, y.cols());  // row by row: no double copy of y
  for (Index i = 0; i < y.rows(); ++i) product += shift_error_(i) * y.row(i).template cast<double>();
  return product;
}

template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::subtract_shift_error(const Block<double>& row, BlockView<Scalar> out) const {
  for (Index i = 0; i < out.rows(); ++i) out.row(i) -= (shift_error_(i) * row).template cast<Scalar>();
}

template class FeaturesTarget<float>;
template class FeaturesTarget<double>;
template class FeaturesTarget<double, float>;

}  // namespace itspace
