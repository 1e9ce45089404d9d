// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/targets.hpp>

#include "core/feature_moments.hpp"
#include "core/require.hpp"
#include "cuda/launch_product.hpp"

#include <algorithm>
#include <cmath>

namespace itspace::cuda {

using kernels::ColumnSum;

namespace {

// A piece of the features that is still in the device's second-level cache when it is read again.
constexpr Index piece_bytes = Index(24) << 20, least_piece_rows = 128;

void check_nonnegative(const Eigen::VectorXd& values, const char* what) {
  for (Index i = 0; i < values.size(); ++i)
    require(values(i) >= 0 && std::isfinite(values(i)), what, "[", i, "] is ", values(i),
            "; a covariance needs it to be 0 or more and finite");
}

template <Storage Scalar>
double sum_of_squares(const Device& device, const ConstView<Scalar>& x) {
  const UseDevice use(device.ordinal());
  return column_sums<Scalar>(device.state(), ColumnSum::square, x).sum();
}

}  // namespace

template <Storage Scalar, Storage Data>
Block<Scalar> to_device_as(const Device& device, const std::type_identity_t<ConstBlockView<Data>>& from) {
  if constexpr (std::same_as<Scalar, Data>) {
    return to_device<Scalar>(device, from);
  } else {
    Block<Scalar> block(device, from.rows(), from.cols());
    const Index step = std::max<Index>(1, (Index(1) << 22) / std::max<Index>(1, from.cols()));
    for (Index first = 0; first < from.rows(); first += step) {
      const Index rows = std::min(step, from.rows() - first);
      const itspace::Block<Scalar> piece = from.middleRows(first, rows).template cast<Scalar>();
      copy_to_device<Scalar>(device, piece,
                             View<Scalar>(block.data() + first * from.cols(), rows, from.cols(), from.cols()));
    }
    return block;
  }
}

// --- Dense.

template <Storage Scalar>
DenseTarget<Scalar>::DenseTarget(Device device, DeviceData<Scalar> sigma)
    : device_(std::move(device)), sigma_(std::move(sigma)), trace_(0) {
  require(sigma_.rows() == sigma_.cols() && sigma_.rows() > 0, "the covariance is ", sigma_.rows(), " x ",
          sigma_.cols(), "; it must be square and not empty. If its rows are samples, use FeaturesTarget");
  const UseDevice use(device_.ordinal());
  // The diagonal: a column with a stride of one more.
  const ConstView<Scalar> diagonal(sigma_.view().data, dim(), 1, sigma_.view().stride + 1);
  trace_ = column_sums<Scalar>(device_.state(), ColumnSum::plain, diagonal)(0);
}

template <Storage Scalar>
void DenseTarget<Scalar>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  const UseDevice use(device_.ordinal());
  if (constexpr Index most = Index(1) << 20; dim() >= kernels::least_dense_dim && dim() <= most) {
    DeviceState& state = device_.state();
    auto* scratch = state.scratch<Scalar>(Scratch::fused, kernels::dense_product_scratch<Scalar>(dim()));
    if (kernels::dense_product<Scalar>(state.stream(), cuda::in(sigma_.view()), cuda::in(y), cuda::out(out), scratch))
      return;
  }
  // Sigma is symmetric; read by rows as it lies.
  launch_product<Scalar>(device_.state(), Op::plain, sigma_.view(), nullptr, y, out);
}

// --- Features.

namespace {

// Halves, as which a sweep multiplies features, reach to 2^16.
constexpr int largest_scaled_exponent = 15;

// A power of four that brings numbers up to `largest` to 2^exponent at most, within what floats are.
double scale_below(double largest, int exponent) {
  const int power = std::clamp(exponent - 1 - std::ilogb(largest), -126, 126);
  return std::ldexp(1.0, power - (power & 1));
}
// Of a column that is nowhere farther from s than `reach`. One that is nowhere apart from it has no part in a product,
// and Y, which is divided by the scale, none in it: the largest that leaves s c a float.
double column_scale(double reach, double shift) {
  constexpr int far_below_overflow = 100;
  if (!std::isfinite(reach)) return 1;
  if (reach > 0) return scale_below(reach, largest_scaled_exponent);
  return shift != 0 ? scale_below(std::abs(shift), far_below_overflow) : scale_below(1, far_below_overflow);
}

}  // namespace

template <Storage Scalar>
FeaturesTarget<Scalar>::FeaturesTarget(Device device, DeviceData<Scalar> features, const Eigen::VectorXd& weights)
    : device_(std::move(device)), features_(std::move(features)) {
  const Index n = features_.rows(), d = features_.cols();
  check_features(n, d, weights);
  const bool weighted = weights.size() > 0;
  const double weight_sum = weighted ? weights.sum() : static_cast<double>(n);
  const double normaliser = weighted ? weight_sum - weights.squaredNorm() / weight_sum : static_cast<double>(n - 1);
  scale_ = weighted ? 1 : 1 / normaliser;
  total_ = weight_sum / normaliser;
  scales_ = held(device_, weighted ? Eigen::VectorXd(weights / normaliser) : Eigen::VectorXd());
  root_scales_ = held(device_, weighted ? Eigen::VectorXd((weights / normaliser).cwiseSqrt()) : Eigen::VectorXd());

  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  const ConstView<Scalar>& z = features_.view();
  // The mean of x - s for a row s: sums of w_i/c (or of 1) over the same total.
  const double divisor = weighted ? total_ : static_cast<double>(n);
  kernels::ColumnTerms<Scalar> terms;
  terms.weights = scales_->data();
  const auto mean_about = [&](const Scalar* shift) -> Vector {
    terms.shift = shift;
    return column_sums<Scalar>(state, ColumnSum::shifted, z, terms) / divisor;
  };
  // First about a row that counts, so that a mean that is large beside the spread keeps its digits; then about the
  // mean, rounded to Scalar, that products shift by. What is left is delta.
  Index origin_row = 0;
  while (weighted && !(weights(origin_row) > 0)) ++origin_row;
  const ConstView<Scalar> origin_view(z.data + origin_row * z.stride, 1, d, z.stride);
  const itspace::Block<Scalar> origin = to_host<Scalar>(device_, origin_view);
  mean_ = origin.row(0).transpose().template cast<double>() + mean_about(origin_view.data);
  const itspace::Block<Scalar> shift = mean_.transpose().template cast<Scalar>();
  shift_ = std::make_shared<const Block<Scalar>>(to_device<Scalar>(device_, shift));
  const Vector delta = mean_about(shift_->data());
  shift_error_ = held(device_, delta);
  mean_ = shift.row(0).transpose().template cast<double>() + delta;

  terms.shift = shift_->data();
  terms.columns = shift_error_->data();
  const Vector squares = column_sums<Scalar>(state, ColumnSum::centred_square, z, terms);
  trace_ = squares.sum() * scale_;
  terms.weights = nullptr;  // no value is farther from the mean than the root of all squares
  const Vector all = weighted ? Vector(column_sums<Scalar>(state, ColumnSum::centred_square, z, terms)) : squares;
  itspace::Block<Scalar> scale(1, d);
  for (Index j = 0; j < d; ++j)
    scale(0, j) =
        static_cast<Scalar>(column_scale(std::sqrt(all(j)) + std::abs(delta(j)), static_cast<double>(shift(0, j))));
  column_scale_ = std::make_shared<const Block<Scalar>>(to_device<Scalar>(device_, scale));
}

// out = sum_i s_i^2 (z_i - s)(z_i - s)'y - total delta delta'y, delta = mu - s.
template <Storage Scalar>
void FeaturesTarget<Scalar>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  if (y.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  if (apply_in_one_sweep(y, out)) return;
  DeviceState& state = device_.state();
  const ConstView<Scalar>& z = features_.view();
  const Index n = z.rows, d = z.cols(), q = y.cols();
  const Index fitting = piece_bytes / std::max<Index>(1, d * static_cast<Index>(sizeof(Scalar)));
  const Index step = std::max(least_piece_rows, fitting / least_piece_rows * least_piece_rows);
  const View<Scalar> inner = scratch_block<Scalar>(state, Scratch::inner, std::min(step, n), q);
  for (Index first = 0; first < n; first += step) {
    const Index rows = std::min(step, n - first);
    const ConstView<Scalar> piece(z.data + first * z.stride, rows, d, z.stride);
    const View<Scalar> of_piece(inner.data, rows, q, q);
    const double* scales = scales_->data() != nullptr ? scales_->data() + first : nullptr;
    launch_product<Scalar>(state, Op::plain, piece, shift_->data(), y, of_piece, {scales, scale_});
    launch_product<Scalar>(state, Op::transposed, piece, shift_->data(), of_piece, out, {}, first > 0);
  }
  double* delta_y = state.scratch<double>(Scratch::inner_columns, q);
  kernels::ColumnTerms<Scalar> terms;
  terms.weights = shift_error_->data();
  launch_column_sums<Scalar>(state, ColumnSum::plain, y, terms, delta_y);
  kernels::subtract_product<Scalar>(state.stream(), shift_error_->data(), delta_y, total_, cuda::out(out));
}

template <Storage Scalar>
bool FeaturesTarget<Scalar>::apply_in_one_sweep(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  const ConstView<Scalar>& z = features_.view();
  // (Of more columns, sweep by sweep, it would be the slower one.)
  if (constexpr Index most = 2 * kernels::features_columns; y.cols() > most) return false;
  const std::size_t bytes = kernels::features_product_scratch<Scalar>(z.cols(), z.rows);
  if (bytes == 0) return false;
  DeviceState& state = device_.state();
  auto* scratch = state.scratch<unsigned char>(Scratch::fused, static_cast<std::ptrdiff_t>(bytes));
  return kernels::features_product<Scalar>(state.stream(), cuda::in(z), terms(centred_rows()), cuda::in(y),
                                           cuda::out(out), scratch);
}

template <Storage Scalar>
CentredRows<Scalar> FeaturesTarget<Scalar>::centred_rows() const {
  return {features_.view(), shift_->data(), column_scale_->data(), scales_->data(), shift_error_->data(),
          scale_,           total_};
}

// out = diag(s_i) ((Z - 1 s') in - 1 (delta'in)).
template <Storage Scalar>
void FeaturesTarget<Scalar>::apply_factor_transposed(const ConstView<Scalar>& in, const View<Scalar>& out) const {
  if (in.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  double* delta_y = state.scratch<double>(Scratch::inner_columns, in.cols());
  kernels::ColumnTerms<Scalar> terms;
  terms.weights = shift_error_->data();
  launch_column_sums<Scalar>(state, ColumnSum::plain, in, terms, delta_y);
  launch_product<Scalar>(state, Op::plain, features_.view(), shift_->data(), in, out);
  kernels::subtract_row<Scalar>(state.stream(), delta_y, root_scales_->data(), std::sqrt(scale_), cuda::out(out));
}

// out = (Z - 1 s')' p - delta (1'p), p = diag(s_i) in.
template <Storage Scalar>
void FeaturesTarget<Scalar>::apply_factor(const ConstView<Scalar>& in, const View<Scalar>& out) const {
  if (in.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  const View<Scalar> scaled = scratch_block<Scalar>(state, Scratch::inner, in.rows, in.cols());
  kernels::scale_rows<Scalar>(state.stream(), cuda::in(in), root_scales_->data(), std::sqrt(scale_), cuda::out(scaled));
  double* sums = state.scratch<double>(Scratch::inner_columns, in.cols());
  launch_column_sums<Scalar>(state, ColumnSum::plain, scaled, {}, sums);
  launch_product<Scalar>(state, Op::transposed, features_.view(), shift_->data(), scaled, out);
  kernels::subtract_product<Scalar>(state.stream(), shift_error_->data(), sums, 1, cuda::out(out));
}

// --- Low rank + diagonal.

template <Storage Scalar>
LowRankDiagonalTarget<Scalar>::LowRankDiagonalTarget(Device device, DeviceData<Scalar> u, const Eigen::VectorXd& lambda,
                                                     const Eigen::VectorXd& diagonal)
    : device_(std::move(device)), u_(std::move(u)), trace_(0) {
  require(u_.rows() > 0, "U has no rows; the target needs at least one coordinate");
  require(lambda.size() == u_.cols(), "U has ", u_.cols(), " columns and lambda has ", lambda.size(),
          " entries; give one per column");
  require(diagonal.size() == u_.rows(), "U has ", u_.rows(), " rows and the diagonal has ", diagonal.size(),
          " entries; give one per row");
  check_nonnegative(lambda, "lambda");
  check_nonnegative(diagonal, "diagonal");
  lambda_ = held(device_, lambda);
  diagonal_ = held(device_, diagonal);
  trace_ = diagonal.sum();
  const UseDevice use(device_.ordinal());
  if (u_.cols() > 0) trace_ += column_sums<Scalar>(device_.state(), ColumnSum::square, u_.view()).dot(lambda);
}

template <Storage Scalar>
void LowRankDiagonalTarget<Scalar>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  if (y.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  if (u_.cols() > 0) {
    const View<Scalar> inner = scratch_block<Scalar>(state, Scratch::inner, u_.cols(), y.cols());
    launch_product<Scalar>(state, Op::transposed, u_.view(), nullptr, y, inner, {lambda_->data(), 1});
    launch_product<Scalar>(state, Op::plain, u_.view(), nullptr, inner, out);
  } else {
    kernels::fill<Scalar>(state.stream(), cuda::out(out), Scalar(0));
  }
  kernels::add_diagonal<Scalar>(state.stream(), diagonal_->data(), 0, cuda::in(y), cuda::out(out));
}

// --- Factor.

template <Storage Scalar>
FactorTarget<Scalar>::FactorTarget(Device device, DeviceData<Scalar> factor)
    : device_(std::move(device)), factor_(std::move(factor)), trace_(0) {
  require(factor_.rows() > 0 && factor_.cols() > 0, "the factor is ", factor_.rows(), " x ", factor_.cols(),
          "; it must have at least one row and one column");
  trace_ = sum_of_squares<Scalar>(device_, factor_.view());
}

template <Storage Scalar>
void FactorTarget<Scalar>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  if (y.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  const View<Scalar> inner = scratch_block<Scalar>(device_.state(), Scratch::inner, factor_.cols(), y.cols());
  apply_factor_transposed(y, inner);
  apply_factor(inner, out);
}

template <Storage Scalar>
void FactorTarget<Scalar>::apply_factor_transposed(const ConstView<Scalar>& in, const View<Scalar>& out) const {
  const UseDevice use(device_.ordinal());
  launch_product<Scalar>(device_.state(), Op::transposed, factor_.view(), nullptr, in, out);
}

template <Storage Scalar>
void FactorTarget<Scalar>::apply_factor(const ConstView<Scalar>& in, const View<Scalar>& out) const {
  const UseDevice use(device_.ordinal());
  launch_product<Scalar>(device_.state(), Op::plain, factor_.view(), nullptr, in, out);
}

// --- Shifted.

template <Storage Scalar>
void ShiftedTarget<Scalar>::check_shift(double delta) {
  require(delta >= 0 && std::isfinite(delta), "the shift is ", delta, "; it must be 0 or more and finite");
}

template <Storage Scalar>
void ShiftedTarget<Scalar>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  base_.apply(y, out);
  const UseDevice use(device_.ordinal());
  kernels::add_diagonal<Scalar>(device_.state().stream(), nullptr, delta_, cuda::in(y), cuda::out(out));
}

#define ITSPACE_INSTANTIATE(Scalar)             \
  template class DenseTarget<Scalar>;           \
  template class FeaturesTarget<Scalar>;        \
  template class LowRankDiagonalTarget<Scalar>; \
  template class FactorTarget<Scalar>;          \
  template class ShiftedTarget<Scalar>;
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

template Block<float> to_device_as<float, float>(const Device&, const ConstBlockView<float>&);
template Block<float> to_device_as<float, double>(const Device&, const ConstBlockView<double>&);
template Block<double> to_device_as<double, double>(const Device&, const ConstBlockView<double>&);
template Block<double> to_device_as<double, float>(const Device&, const ConstBlockView<float>&);

}  // namespace itspace::cuda
