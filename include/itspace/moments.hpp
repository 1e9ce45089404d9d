// SPDX-License-Identifier: Apache-2.0
//
// Mean and covariance gathered batch by batch, in any order and in several places: accumulators merge. The sums are
// kept about the running mean (Chan, Golub and LeVeque's update), in double, so that a large mean costs no digits.
//
//     MomentAccumulator moments;
//     moments.update<float>(batch);   // n x d, any n, as often as there are batches
//     moments.merge(of_another_worker);
//     moments.mean(), moments.covariance();
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>

namespace itspace {

class ITSPACE_API MomentAccumulator {
 public:
  MomentAccumulator() = default;          // takes its dimension from the first batch
  explicit MomentAccumulator(Index dim);  // @pre dim >= 1
  // As saved by count(), mean() and scatter(). @pre the shapes agree and all is finite.
  MomentAccumulator(Index count, Vector mean, Block<double> scatter);

  Index dim() const { return mean_.size(); }  // 0 until it is known
  Index count() const { return count_; }
  const Vector& mean() const { return mean_; }
  const Block<double>& scatter() const { return scatter_; }  // sum (x - mean)(x - mean)', exactly symmetric

  // scatter/(count - 1). @pre count >= 2.
  Block<double> covariance() const;

  // Rows are samples. Strong guarantee: a batch that is refused (shape, value not finite) changes nothing.
  template <Storage Scalar>
  void update(const ConstBlockView<Scalar>& batch);
  void merge(const MomentAccumulator& other);
  void reset();  // forgets the samples, keeps the dimension

 private:
  void add(Index count, const Vector& mean, const Block<double>& scatter);

  Index count_ = 0;
  Vector mean_;
  Block<double> scatter_;
};

}  // namespace itspace
