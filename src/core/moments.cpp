// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/moments.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"

#include <algorithm>

namespace itspace {
namespace {

constexpr Index chunk_rows = 1024;

}  // namespace

MomentAccumulator::MomentAccumulator(Index dim) {
  require(dim >= 1, "dim is ", dim, "; samples must have at least one coordinate");
  mean_.setZero(dim);
  scatter_.setZero(dim, dim);
}

MomentAccumulator::MomentAccumulator(Index count, Vector mean, Block<double> scatter)
    : count_(count), mean_(std::move(mean)), scatter_(std::move(scatter)) {
  require(count_ >= 0, "count is ", count_, "; it must be 0 or more");
  require(scatter_.rows() == mean_.size() && scatter_.cols() == mean_.size(), "the scatter is ", scatter_.rows(), " x ",
          scatter_.cols(), " for a mean of ", mean_.size(), " values; it must be square of that size");
  check_finite<double>(mean_.transpose(), "mean");
  check_finite<double>(scatter_, "scatter");
}

Block<double> MomentAccumulator::covariance() const {
  require(count_ >= 2, "there are ", count_, " samples; a covariance needs at least 2: update with more");
  return scatter_ / static_cast<double>(count_ - 1);
}

template <Storage Scalar>
void MomentAccumulator::update(const ConstBlockView<Scalar>& batch) {
  require(batch.cols() >= 1, "the batch has no columns; each row must hold at least one value");
  require(dim() == 0 || batch.cols() == dim(), "the batch has ", batch.cols(), " columns and the accumulator has dim ",
          dim(), "; rows are samples of that dimension. Use another accumulator for another feature set");
  check_finite<Scalar>(batch, "batch");
  const Index n = batch.rows(), d = batch.cols();
  if (dim() == 0) *this = MomentAccumulator(d);  // whole, or not at all where memory ends
  if (n == 0) return;
  const Eigen::VectorXd batch_mean = mean_about<Scalar>(batch, 0, {});
  Dense sum = Dense::Zero(d, d), rows;
  for (Index first = 0; first < n; first += chunk_rows) {
    rows = batch.middleRows(first, std::min(chunk_rows, n - first)).template cast<double>();
    rows.rowwise() -= batch_mean.transpose();
    add_gram(rows, sum);
  }
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  add(n, batch_mean, sum);
}

void MomentAccumulator::merge(const MomentAccumulator& other) {
  if (other.dim() == 0) return;
  require(dim() == 0 || other.dim() == dim(), "the accumulators have dim ", dim(), " and ", other.dim(),
          "; only moments of the same features can be merged");
  if (dim() == 0)
    *this = other;
  else
    add(other.count_, other.mean_, other.scatter_);
}

// S = S_a + S_b + (n_a n_b/n) delta delta', delta = mu_b - mu_a.
void MomentAccumulator::add(Index count, const Vector& mean, const Block<double>& scatter) {
  if (count == 0) return;
  const double total = static_cast<double>(count_) + static_cast<double>(count);
  const double share = static_cast<double>(count) / total;
  const Eigen::VectorXd delta = mean - mean_;
  const double weight = static_cast<double>(count_) * share;
  // The lower triangle is mirrored, so that the sum is symmetric to the last bit.
  for (Index i = 0; i < scatter_.rows(); ++i)
    scatter_.row(i) += scatter.row(i) + ((weight * delta(i)) * delta).transpose();
  scatter_.triangularView<Eigen::StrictlyUpper>() = scatter_.transpose();
  mean_ += share * delta;
  count_ += count;
}

void MomentAccumulator::reset() {
  count_ = 0;
  mean_.setZero();
  scatter_.setZero();
}

template void MomentAccumulator::update<float>(const ConstBlockView<float>&);
template void MomentAccumulator::update<double>(const ConstBlockView<double>&);

}  // namespace itspace
