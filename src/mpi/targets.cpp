// SPDX-License-Identifier: Apache-2.0
#include <itspace/mpi/targets.hpp>

#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "mpi/rank_means.hpp"

#include <numeric>
#include <utility>
#include <vector>

namespace itspace::mpi {
namespace {

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

  const std::vector<double> counts = rows_on_ranks(ranks_, count);
  samples_ = static_cast<Index>(std::accumulate(counts.begin(), counts.end(), 0.0));
  itspace::Block<double> sum = itspace::Block<double>::Zero(dim_, 1), origin = sum;
  if (count > 0) origin = rows.row(0).template cast<double>().transpose();
  origin = of_first_with_rows(ranks_, counts, origin);
  for (Index i = 0; i < count; ++i) sum += rows.row(i).template cast<double>().transpose() - origin;
  mean_ = std::make_shared<const RankMean>(mean_of_rank(ranks_, counts, std::move(sum)));
  trace_ = mean_->trace();
  if (count >= 2) {
    own_.emplace(std::move(own_rows));
    trace_ += mean_->own_share * own_->trace();
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
  mean_->join<Scalar>(y, out);
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
