// SPDX-License-Identifier: Apache-2.0
//
// The principal square root S of a target, for the reference route: Sigma = S S with S dense. O(d^3), on the host.
#pragma once

#include "core/counted_target.hpp"

namespace itspace {

template <Storage Scalar>
class RootTarget {
 public:
  explicit RootTarget(CountedTarget<HostSpace<Scalar>>& target);  // one sweep, of d columns

  Index dim() const { return root_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;
  Index factor_cols() const { return root_.rows(); }
  void apply_factor_transposed(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;
  void apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;

 private:
  Block<Scalar> root_;
  double trace_;
};

}  // namespace itspace
