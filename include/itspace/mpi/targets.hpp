// SPDX-License-Identifier: Apache-2.0
//
// Targets whose data are spread over the ranks of a job. Each rank holds its share, and nothing else; a product costs
// one exchange.
//
// FeatureRows  (each rank has some of the samples) and DenseRows (each has some rows of Sigma) are targets of ordinary
//              blocks: Y is on every rank, and align(), barycenter(), OnlineAligner and the distances take them as they
//              take any target. All ranks call with the same arguments, and get the same bits.
// FeatureColumns (each rank has some of the features of all samples) and, again, DenseRows are targets of blocks whose
//              rows are spread too (mpi::Space), for mpi::align: nothing of size d is in one place.
//
// Construction is collective, as every product is. A target is used by one thread at a time.
#pragma once

#include <itspace/mpi/communicator.hpp>
#include <itspace/mpi/space.hpp>
#include <itspace/targets.hpp>

#include <memory>
#include <optional>

namespace itspace::mpi {

struct RankMean;  // inside

// The covariance of the rows of all ranks: Sigma = (1/(n - 1)) sum_i (z_i - mu)(z_i - mu)', with mu the mean of all.
// With n_p rows, mean mu_p and covariance Sigma_p on rank p,
//     (n - 1) Sigma = sum_p (n_p - 1) Sigma_p + n_p (mu_p - mu)(mu_p - mu)',
// so that each rank multiplies by its own covariance, as FeaturesTarget does, and d x r blocks are summed. A rank may
// have no rows. The differences of the means are taken about one row, in double: a large mean costs no digits.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API FeatureRows {
 public:
  FeatureRows(Communicator ranks, HeldBlock<Data> own_rows);

  const Communicator& ranks() const { return ranks_; }
  Index dim() const { return dim_; }
  Index samples() const { return samples_; }
  double trace() const { return trace_; }
  // @throws Lost where a rank has another y than this one.
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

 private:
  Communicator ranks_;
  Index dim_ = 0, samples_ = 0;
  std::optional<FeaturesTarget<Scalar, Data>> own_;  // where there are two rows or more
  std::shared_ptr<const RankMean> mean_;             // mu_p - mu, and the weights of both terms
  double trace_ = 0;
};

// A symmetric Sigma of which rank p has the rows of its share (Communicator::first_row).
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API DenseRows {
 public:
  DenseRows(Communicator ranks, HeldBlock<Data> own_rows);

  const Communicator& ranks() const { return ranks_; }
  Index dim() const { return rows_.cols(); }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;

 private:
  void own_product(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

  Communicator ranks_;
  HeldBlock<Data> rows_;
  double trace_ = 0;
  mutable itspace::Block<Scalar> all_rows_;  // d x r, kept between products with spread blocks
};

// The covariance of n samples of which every rank has all, but of each only the features of its share: own_columns is
// n x (d_p), columns [first_row(p, d), first_row(p + 1, d)). A product sums an n x r block; it reads the data twice.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API FeatureColumns {
 public:
  FeatureColumns(Communicator ranks, Index dim, HeldBlock<Data> own_columns);

  const Communicator& ranks() const { return ranks_; }
  Index dim() const { return dim_; }
  Index samples() const { return samples_; }
  double trace() const { return trace_; }
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;

  // T of Sigma = T T', d x n; blocks of n rows are spread as all are.
  Index factor_cols() const { return samples_; }
  void apply_factor_transposed(const ConstView<Scalar>& in, const View<Scalar>& out) const;
  void apply_factor(const ConstView<Scalar>& in, const View<Scalar>& out) const;

 private:
  void own_product(const ConstView<Scalar>& in, BlockView<Scalar> out) const;

  Communicator ranks_;
  Index dim_ = 0, samples_ = 0;
  std::optional<FeaturesTarget<Scalar, Data>> own_;  // where this rank has columns
  double trace_ = 0;
  mutable itspace::Block<Scalar> all_samples_;  // n x r, kept between products
};

}  // namespace itspace::mpi
