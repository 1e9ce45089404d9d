// SPDX-License-Identifier: Apache-2.0
#include <itspace/nccl/targets.hpp>

#include "mpi/rank_means.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace itspace::nccl {

template <Storage Scalar>
struct FeatureRows<Scalar>::Joint {
  mpi::RankMean mean;
  cuda::Block<Scalar> difference;  // mu_p - mu, d x 1
  cuda::Block<Scalar> sum;         // for blocks whose rows do not lie one after the other
};

namespace {

// Ranks that have parted wait for each other for ever, in NCCL without a limit: they are asked by MPI before.
template <Storage Scalar>
void check_same_block(const mpi::Communicator& ranks, cuda::Space<Scalar>& space, const cuda::ConstView<Scalar>& y) {
  const itspace::Block<double> norms = space.column_norms(y);
  const std::uint64_t stamp = mpi::fingerprint<double>(norms);
  const auto size = static_cast<std::size_t>(ranks.size()), own = static_cast<std::size_t>(ranks.rank());
  std::vector<double> halves(2 * size, 0.0);  // 32 bits each: a double has them all
  halves[2 * own] = static_cast<double>(stamp >> 32U);
  halves[2 * own + 1] = static_cast<double>(stamp & 0xFFFFFFFFU);
  ranks.sum(halves);
  for (std::size_t p = 1; p < size; ++p)
    if (halves[2 * p] != halves[0] || halves[2 * p + 1] != halves[1])
      throw mpi::Lost(
          "the ranks do not multiply by the same block; their GPUs are to be of one kind, and each rank is to "
          "make the same calls");
}

}  // namespace

template <Storage Scalar>
FeatureRows<Scalar>::FeatureRows(Communicator gpus, cuda::DeviceData<Scalar> own_rows)
    : gpus_(std::move(gpus)), dim_(own_rows.cols()), joint_(std::make_shared<Joint>()) {
  const mpi::Communicator& all = ranks();
  mpi::check_same(all, dim_, "features of dimension");
  if (dim_ < 1) throw mpi::AgreedMisuse("there are no columns in the features; each row must hold at least one value");
  const Index count = own_rows.rows();
  const std::vector<double> counts = mpi::rows_on_ranks(all, count);
  samples_ = static_cast<Index>(std::accumulate(counts.begin(), counts.end(), 0.0));
  itspace::Block<double> mean = itspace::Block<double>::Zero(dim_, 1);
  all.agree([&] {
    if (count == 1) mean = cuda::to_host<Scalar>(device(), own_rows.view()).transpose().template cast<double>();
    if (count < 2) return;
    own_.emplace(device(), std::move(own_rows));
    mean = own_->mean();
  });
  const itspace::Block<double> origin = mpi::of_first_with_rows(all, counts, mean);
  itspace::Block<double> sum = itspace::Block<double>::Zero(dim_, 1);
  if (count > 0) sum = static_cast<double>(count) * (mean - origin);
  joint_->mean = mpi::mean_of_rank(all, counts, std::move(sum));
  trace_ = joint_->mean.trace() + (own_ ? joint_->mean.own_share * own_->trace() : 0);
  all.sum({&trace_, 1});
  if (count > 0)
    joint_->difference =
        cuda::to_device<Scalar>(device(), itspace::Block<Scalar>(joint_->mean.difference.template cast<Scalar>()));
}

// out = sum_p [(n_p - 1) Sigma_p + n_p (mu_p - mu)(mu_p - mu)'] y / (n - 1).
template <Storage Scalar>
void FeatureRows<Scalar>::apply(const cuda::ConstView<Scalar>& y, const cuda::View<Scalar>& out) const {
  if (y.cols() == 0) return;
  cuda::Space<Scalar> space(device());
  check_same_block<Scalar>(ranks(), space, y);
  Joint& joint = *joint_;
  cuda::View<Scalar> total = out;
  if (out.stride != out.cols()) {
    if (joint.sum.rows() != dim_ || joint.sum.cols() != y.cols()) joint.sum = space.make_block(dim_, y.cols());
    total = joint.sum;
  }
  if (own_) {
    own_->apply(y, total);
    space.scale_columns(total, SmallVector::Constant(y.cols(), joint.mean.own_share));
  } else {
    space.set_zero(total);
  }
  if (joint.difference.rows() > 0) {
    Small along;  // difference'y
    const GramRequest<cuda::ConstView<Scalar>> request[] = {{joint.difference, y, along}};
    space.grams(request);
    space.multiply(joint.difference, joint.mean.mean_share * along, total, Write::add);
  }
  gpus_.sum<Scalar>(total);
  if (out.stride != out.cols()) space.copy(total, out);
}

template class FeatureRows<float>;
template class FeatureRows<double>;

}  // namespace itspace::nccl
