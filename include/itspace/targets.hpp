// SPDX-License-Identifier: Apache-2.0
//
// The targets that come with the library: a dense symmetric matrix, the covariance of a feature set, low rank plus
// diagonal, an explicit factor, and any of them plus delta*I. All are immutable after construction, safe to share
// between threads, and check their shapes (not their values: see check_covariance and check_finite in covariance.hpp).
//
// A target holds its data: it copies the matrix it is given, of any Eigen kind, takes over a Block that is moved in,
// and shares what it holds with copies of itself. Large data that stays alive anyway is not copied where one says so:
// FeaturesTarget<float>(borrow(features)); a mapped file keeps itself alive.
//
// Mixed precision: the data behind a target may be float32 where its blocks are double, as in FeaturesTarget<double,
// float>. Rows are widened a panel at a time as they are read, and every product and sum is double: the result is that
// of the double target on the same values, at the memory of the float32 one.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

namespace itspace {

// Sigma given by its entries; it must be symmetric. Products read the upper triangle, or, where that takes less time
// (small matrices, blocks of many columns), all of it.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API DenseTarget {
 public:
  explicit DenseTarget(HeldBlock<Data> sigma);

  Index dim() const { return sigma_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

 private:
  HeldBlock<Data> sigma_;
  double trace_;
};

// Sigma = (1/c) sum_i w_i (z_i - mu)(z_i - mu)', the covariance of the rows z_i of an n x d feature set, c = n - 1.
// With weights c = sum w - (sum w^2)/(sum w), which is n - 1 for equal weights: scaling all weights changes nothing.
// No d x d matrix and no centred copy exist: rows are shifted by a reference s = mu rounded to Scalar, a chunk at a
// time.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API FeaturesTarget {
 public:
  explicit FeaturesTarget(HeldBlock<Data> features);
  // @pre weights: one per row, each >= 0 and finite, at least two of them positive.
  FeaturesTarget(HeldBlock<Data> features, const Eigen::VectorXd& weights);

  Index dim() const { return features_.cols(); }
  Index samples() const { return features_.rows(); }
  const Vector& mean() const { return mean_; }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

  // T = (Z - 1 mu')' diag(sqrt(w)) / sqrt(c), d x n.
  Index factor_cols() const { return features_.rows(); }
  void apply_factor_transposed(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;
  void apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;

 private:
  template <class Visit>
  void for_each_shifted_chunk(Visit visit) const;
  double scale_squared(Index row) const;
  void scale_rows(BlockView<Scalar> rows) const;
  Block<double> shift_error_product(const ConstBlockView<Scalar>& y) const;
  void subtract_shift_error(const Block<double>& row, BlockView<Scalar> out) const;

  HeldBlock<Data> features_;
  bool weighted_ = false;
  Vector root_scale_;    // sqrt(w_i/c); one entry where all rows weigh the same
  double total_ = 0;     // sum w / c
  Vector mean_;          // mu
  Block<Scalar> shift_;  // s, one row
  Vector shift_error_;   // delta = mu - s
  double trace_ = 0;
};

// Sigma = U diag(lambda) U' + diag(diagonal); U is d x k and need not be orthonormal.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API LowRankDiagonalTarget {
 public:
  // @pre lambda >= 0 (k entries), diagonal >= 0 (d entries).
  LowRankDiagonalTarget(HeldBlock<Data> u, Vector lambda, Vector diagonal);
  // @pre lambda >= 0 (k entries), sigma_squared >= 0: the diagonal is sigma_squared * I.
  LowRankDiagonalTarget(HeldBlock<Data> u, Vector lambda, double sigma_squared);

  Index dim() const { return u_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

 private:
  HeldBlock<Data> u_;
  Vector lambda_, diagonal_;
  double trace_;
};

// Sigma = T T' for an explicit d x m factor T, such as the result of an earlier run.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API FactorTarget {
 public:
  explicit FactorTarget(HeldBlock<Data> factor);

  Index dim() const { return factor_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

  Index factor_cols() const { return factor_.cols(); }
  void apply_factor_transposed(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;
  void apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;

 private:
  HeldBlock<Data> factor_;
  double trace_;
};

// Sigma + delta*I of any target, which it holds a copy of (copies of targets share their data). A TargetRef as the base
// is borrowed: what it refers to must outlive this.
template <Storage Scalar>
class ITSPACE_API ShiftedTarget {
 public:
  // @pre delta >= 0 and finite.
  template <class T>
  requires Target<T, Scalar> &&(!std::same_as<T, TargetRef<Scalar>>)ShiftedTarget(T base, double delta)
      : ShiftedTarget(std::make_shared<const T>(std::move(base)), delta) {}
  ShiftedTarget(TargetRef<Scalar> base, double delta);

  Index dim() const { return base_.dim(); }
  double trace() const { return base_.trace() + delta_ * static_cast<double>(base_.dim()); }
  std::uint64_t version() const { return base_.version(); }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

 private:
  template <class T>
  ShiftedTarget(std::shared_ptr<const T> base, double delta) : ShiftedTarget(TargetRef<Scalar>(*base), delta) {
    keeper_ = std::move(base);
  }

  std::shared_ptr<const void> keeper_;
  TargetRef<Scalar> base_;
  double delta_;
};

}  // namespace itspace
