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
constexpr Index fewest_chunk_rows = 8, most_chunk_rows = 512;

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
  const Index step = std::clamp(chunk_values / z.cols(), fewest_chunk_rows, most_chunk_rows);
  BlockView<Scalar> chunk =
      kernels::scratch_block<Scalar, kernels::Scratch::feature_chunk>(std::min(step, z.rows()), z.cols());
  for (Index first = 0; first < z.rows(); first += step) {
    BlockView<Scalar> rows = chunk.topRows(std::min(step, z.rows() - first));
    for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = z.row(first + i).template cast<Scalar>() - shift_;
    visit(first, rows);
  }
}

template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::scale_rows(BlockView<Scalar> rows) const {
  for (Index i = 0; i < rows.rows(); ++i) rows.row(i) *= static_cast<Scalar>(root_scale_(weighted_ ? i : 0));
}

// out = sum_i s_i^2 (z_i - s)(z_i - s)'y - total delta delta'y, delta = mu - s.
template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  const Block<double> delta_y = shift_error_product(y);
  kernels::squared_gemm<Scalar, Data>(features_.view(), shift_.data(), {root_scale_.data(), weighted_}, y, out);
  subtract_shift_error(total_ * delta_y, out);
}

// out = diag(s_i) ((Z - 1 s') in - 1 (delta'in)).
template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::apply_factor_transposed(const ConstBlockView<Scalar>& in,
                                                           BlockView<Scalar> out) const {
  const Block<double> delta_y = shift_error_product(in);
  const Eigen::Matrix<Scalar, 1, Eigen::Dynamic> correction = delta_y.template cast<Scalar>();
  kernels::shifted_gemm<Scalar, Data>(Op::plain, Scalar(1), features_.view(), shift_.data(), in, Scalar(0), out);
  out.rowwise() -= correction;
  scale_rows(out);
}

template <Storage Scalar, Storage Data>
void FeaturesTarget<Scalar, Data>::apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
  BlockView<Scalar> scaled = kernels::scratch_block<Scalar, kernels::Scratch::inner>(in.rows(), in.cols());
  scaled = in;
  scale_rows(scaled);
  const Block<double> sum(scaled.template cast<double>().colwise().sum());
  kernels::shifted_gemm<Scalar, Data>(Op::transposed, Scalar(1), features_.view(), shift_.data(), scaled, Scalar(0),
                                      out);
  subtract_shift_error(sum, out);
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
