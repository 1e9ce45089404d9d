// SPDX-License-Identifier: Apache-2.0
//
// The target of a run, with its sweeps counted where they are made: each product with Sigma, or with its factor T, is
// one sweep over the data, whatever the number of columns. Nothing else in the core calls the target.
#pragma once

#include <itspace/target.hpp>

namespace itspace {

template <Space S>
class CountedTarget {
 public:
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  CountedTarget(S& space, BasicTargetRef<S> target) : space_(&space), target_(target) {}

  // `stand_in` answers from here on in place of the target, at no sweep over it: the root that was made of its entries.
  void replace_by(BasicTargetRef<S> stand_in) {
    target_ = stand_in;
    counts_ = false;
  }

  Index dim() const { return target_.dim(); }
  bool has_factor() const { return target_.has_factor(); }
  Index factor_cols() const { return target_.factor_cols(); }
  Index version() const { return static_cast<Index>(target_.version()); }
  Index passes() const { return passes_; }
  void count_from(Index passes) { passes_ = passes; }
  bool is_replaced() const { return !counts_; }

  // out = Sigma in. The output is poisoned before (S::poison), so that a target which adds to it does not go unseen:
  // @pre out holds numbers; new memory may not (make_image).
  void apply(const ConstView& in, View out) {
    space_->poison(out);
    target_.apply(in, out);
    count();
  }
  void apply_factor_transposed(const ConstView& in, View out) {
    space_->poison(out);
    target_.apply_factor_transposed(in, out);
    count();
  }
  void apply_factor(const ConstView& in, View out) {
    space_->poison(out);
    target_.apply_factor(in, out);
    count();
  }

  // A block for products to be written to: of zeros, whatever its memory held before.
  typename S::Block make_image(Index rows, Index cols) {
    auto block = space_->make_block(rows, cols);
    space_->set_zero(block);
    return block;
  }

  // A target may gather its trace in its first sweep, or in the first after it changed. Where none was needed so far (a
  // start of zeros) one is made.
  bool swept() const { return swept_ && swept_version_ == version(); }
  double trace() {
    if (!swept()) {
      const auto column = make_image(dim(), 1);
      auto image = make_image(dim(), 1);
      apply(column, image);
    }
    return target_.trace();
  }

 private:
  void count() {
    swept_ = true;
    swept_version_ = version();
    passes_ += counts_ ? 1 : 0;
  }

  S* space_;
  BasicTargetRef<S> target_;
  Index passes_ = 0;
  Index swept_version_ = 0;
  bool counts_ = true, swept_ = false;
};

}  // namespace itspace
