// SPDX-License-Identifier: Apache-2.0
#include <itspace/mpi/targets.hpp>

#include "core/require.hpp"
#include "kernels/block_ops.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace itspace::mpi {
namespace {

// One number that all ranks must have alike.
void check_same(const Communicator& ranks, Index value, const char* what) {
  std::vector<double> values(static_cast<std::size_t>(ranks.size()), 0.0);
  values[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(value);
  ranks.sum(values);
  for (std::size_t p = 0; p < values.size(); ++p)
    if (values[p] != values[0])
      throw AgreedMisuse(text("rank ", p, " has ", what, " ", static_cast<Index>(values[p]), " and rank 0 has ",
                              static_cast<Index>(values[0]), "; all ranks must have the same"));
}

// Columns of a block that is kept between products, and grows where it must.
template <Storage Scalar>
BlockView<Scalar> kept_block(itspace::Block<Scalar>& kept, Index rows, Index cols) {
  if (kept.cols() < cols) kept.resize(rows, cols);
  return kept.leftCols(cols);
}

}  // namespace

template <Storage Scalar, Storage Data>
FeatureRows<Scalar, Data>::FeatureRows(Communicator ranks, HeldBlock<Data> own_rows)
    : ranks_(std::move(ranks)), dim_(own_rows.cols()) {
  check_same(ranks_, dim_, "features of dimension");
  if (dim_ < 1) throw AgreedMisuse("there are no columns in the features; each row must hold at least one value");
  const ConstBlockView<Data> rows = own_rows.view();
  const Index count = rows.rows();

  // The first row of all is what means are taken about.
  std::vector<double> counts(static_cast<std::size_t>(ranks_.size()), 0.0);
  counts[static_cast<std::size_t>(ranks_.rank())] = static_cast<double>(count);
  ranks_.sum(counts);
  const auto first = std::find_if(counts.begin(), counts.end(), [](double n) { return n > 0; }) - counts.begin();
  double total = 0;
  for (const double n : counts) total += n;
  samples_ = static_cast<Index>(total);
  if (samples_ < 2)
    throw AgreedMisuse(text("there are ", samples_,
                            " row(s) of features on all ranks together; a covariance needs at least 2 samples"));
  itspace::Block<double> origin = itspace::Block<double>::Zero(dim_, 1), sum = origin;
  if (ranks_.rank() == first) origin = rows.row(0).template cast<double>().transpose();
  ranks_.sum_rows<double>(origin);
  for (Index i = 0; i < count; ++i) sum += rows.row(i).template cast<double>().transpose() - origin;
  if (count > 0) mean_difference_ = sum / static_cast<double>(count);
  ranks_.sum_rows<double>(sum);
  if (count > 0) mean_difference_ -= sum / total;

  own_share_ = std::max(0.0, static_cast<double>(count - 1)) / (total - 1);
  mean_share_ = static_cast<double>(count) / (total - 1);
  trace_ = count > 0 ? mean_share_ * mean_difference_.squaredNorm() : 0;
  if (count >= 2) {
    own_.emplace(std::move(own_rows));
    trace_ += own_share_ * own_->trace();
  }
  ranks_.sum({&trace_, 1});
}

template <Storage Scalar, Storage Data>
void FeatureRows<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  if (own_) {
    own_->apply(y, out);
  } else {
    out.setZero();
  }
  if (mean_difference_.size() > 0) {
    Eigen::RowVectorXd along = Eigen::RowVectorXd::Zero(y.cols());  // (mu_p - mu)'y
    for (Index i = 0; i < dim_; ++i) along += mean_difference_(i) * y.row(i).template cast<double>();
    along *= mean_share_;
    for (Index i = 0; i < dim_; ++i)
      out.row(i) =
          (own_share_ * out.row(i).template cast<double>() + mean_difference_(i) * along).template cast<Scalar>();
  }
  ranks_.sum_rows<Scalar>(out, fingerprint<Scalar>(y));
}

template <Storage Scalar, Storage Data>
DenseRows<Scalar, Data>::DenseRows(Communicator ranks, HeldBlock<Data> own_rows)
    : ranks_(std::move(ranks)), rows_(std::move(own_rows)) {
  check_same(ranks_, dim(), "rows of length");
  ranks_.agree([&] {
    require(rows_.rows() == ranks_.own_rows(dim()) && dim() > 0, "there are ", rows_.rows(),
            " rows of a covariance of ", dim(), " x ", dim(), "; the share of this rank is ", ranks_.own_rows(dim()),
            " rows, from row ", ranks_.first_row(dim()), " on");
  });
  const Index first = ranks_.first_row(dim());
  for (Index i = 0; i < rows_.rows(); ++i) trace_ += static_cast<double>(rows_.view()(i, first + i));
  ranks_.sum({&trace_, 1});
}

template <Storage Scalar, Storage Data>
void DenseRows<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  BlockView<Scalar> own = out.middleRows(ranks_.first_row(dim()), rows_.rows());
  own_product(y, own);
  ranks_.gather_rows<Scalar>(own, out, fingerprint<Scalar>(y));
}

template <Storage Scalar, Storage Data>
void DenseRows<Scalar, Data>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  BlockView<Scalar> all = kept_block(all_rows_, dim(), y.cols());
  ranks_.gather_rows<Scalar>(y.local(), all);
  own_product(all, out.local());
}

template <Storage Scalar, Storage Data>
void DenseRows<Scalar, Data>::own_product(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  if (rows_.rows() > 0) kernels::gemm<Scalar, Data>(kernels::Op::plain, Scalar(1), rows_.view(), y, Scalar(0), out);
}

template <Storage Scalar, Storage Data>
FeatureColumns<Scalar, Data>::FeatureColumns(Communicator ranks, Index dim, HeldBlock<Data> own_columns)
    : ranks_(std::move(ranks)), dim_(dim), samples_(own_columns.rows()) {
  check_same(ranks_, dim_, "a dimension of");
  check_same(ranks_, samples_, "samples:");
  ranks_.agree([&] {
    require(own_columns.cols() == ranks_.own_rows(dim_), "there are ", own_columns.cols(), " columns of features of ",
            "dimension ", dim_, "; the share of this rank is ", ranks_.own_rows(dim_), " columns, from column ",
            ranks_.first_row(dim_), " on");
    require(samples_ >= 2, "there are ", samples_, " row(s) in the features; a covariance needs at least 2 samples");
    if (own_columns.cols() > 0) own_.emplace(std::move(own_columns));
  });
  trace_ = own_ ? own_->trace() : 0;
  ranks_.sum({&trace_, 1});
}

// T_p' in, the part of this rank of T' in.
template <Storage Scalar, Storage Data>
void FeatureColumns<Scalar, Data>::own_product(const ConstView<Scalar>& in, BlockView<Scalar> out) const {
  if (own_) {
    own_->apply_factor_transposed(in.local(), out);
  } else {
    out.setZero();
  }
}

template <Storage Scalar, Storage Data>
void FeatureColumns<Scalar, Data>::apply(const ConstView<Scalar>& y, const View<Scalar>& out) const {
  BlockView<Scalar> all = kept_block(all_samples_, samples_, y.cols());
  own_product(y, all);
  ranks_.sum_rows<Scalar>(all);
  if (own_) own_->apply_factor(all, out.local());
}

template <Storage Scalar, Storage Data>
void FeatureColumns<Scalar, Data>::apply_factor_transposed(const ConstView<Scalar>& in, const View<Scalar>& out) const {
  BlockView<Scalar> all = kept_block(all_samples_, samples_, in.cols());
  own_product(in, all);
  ranks_.sum_to_owners<Scalar>(all, out.local());
}

template <Storage Scalar, Storage Data>
void FeatureColumns<Scalar, Data>::apply_factor(const ConstView<Scalar>& in, const View<Scalar>& out) const {
  BlockView<Scalar> all = kept_block(all_samples_, samples_, in.cols());
  ranks_.gather_rows<Scalar>(in.local(), all);
  if (own_) own_->apply_factor(all, out.local());
}

#define ITSPACE_INSTANTIATE(Name) \
  template class Name<float>;     \
  template class Name<double>;    \
  template class Name<double, float>;
ITSPACE_INSTANTIATE(FeatureRows)
ITSPACE_INSTANTIATE(DenseRows)
ITSPACE_INSTANTIATE(FeatureColumns)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::mpi
