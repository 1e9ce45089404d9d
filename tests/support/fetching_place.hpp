// SPDX-License-Identifier: Apache-2.0
//
// Another place, made of what is known of it: `There` says how all rows of a block come to the host and go back, and
// makes the runs.
//
//     using Scalar, Space;
//     Block<Scalar> fetch(const Space::ConstView&) const;
//     void put(const Block<Scalar>&, const Space::View&) const;
//     Result<Scalar> align(target, start or rank, options, on_step) const;     start on the host, on_step there
//     BasicEvaluation<Space> evaluate(target, factor, route) const;            factor on the host
#pragma once

#include "other_place.hpp"

#include <utility>

namespace itspace::test {

// A host's target for blocks of another place: it sees all rows, as a target that talks to its peers would. What else a
// target of that place must have (ranks(), device()) is There's.
template <class There>
class FetchedTarget : public There {
 public:
  using Scalar = typename There::Scalar;
  using In = typename There::Space::ConstView;
  using Out = typename There::Space::View;

  FetchedTarget(There there, TargetRef<Scalar> target) : There(std::move(there)), target_(target) {}

  Index dim() const { return target_.dim(); }
  double trace() const { return target_.trace(); }
  std::uint64_t version() const { return target_.version(); }
  void apply(const In& y, const Out& out) const {
    through(y, out, [&](const auto& in, BlockView<Scalar> to) { target_.apply(in, to); });
  }

 protected:
  // What is in the output goes along: a target that adds to it is to be found out here too.
  template <class Product>
  void through(const In& in, const Out& out, Product product) const {
    Block<Scalar> whole = this->fetch(out);
    product(this->fetch(in), whole);
    this->put(whole, out);
  }
  TargetRef<Scalar> target_;
};

template <class There>
class FetchedFactoredTarget : public FetchedTarget<There> {
 public:
  using typename FetchedTarget<There>::Scalar;
  using typename FetchedTarget<There>::In;
  using typename FetchedTarget<There>::Out;
  using FetchedTarget<There>::FetchedTarget;

  Index factor_cols() const { return this->target_.factor_cols(); }
  void apply_factor_transposed(const In& in, const Out& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor_transposed(x, to); });
  }
  void apply_factor(const In& in, const Out& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor(x, to); });
  }
};

template <class There>
class FetchingPlace final : public OtherPlace<typename There::Scalar> {
 public:
  using Scalar = typename There::Scalar;
  using Space = typename There::Space;

  explicit FetchingPlace(There there = There()) : there_(std::move(there)) {}

  Result<Scalar> align(TargetRef<Scalar> target, const ConstBlockView<Scalar>& start, const AlignOptions& options,
                       const OnStep<Scalar>& on_step) const override {
    return fetching(target,
                    [&](const auto& fetched) { return there_.align(fetched, start, options, with_all_rows(on_step)); });
  }
  Result<Scalar> align(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                       const OnStep<Scalar>& on_step) const override {
    return fetching(target,
                    [&](const auto& fetched) { return there_.align(fetched, rank, options, with_all_rows(on_step)); });
  }
  Evaluation<Scalar> evaluate(TargetRef<Scalar> target, const ConstBlockView<Scalar>& factor,
                              Route route) const override {
    return fetching(target, [&](const auto& fetched) {
      const BasicEvaluation<Space> at = there_.evaluate(fetched, factor, route);
      Evaluation<Scalar> out;
      out.certificate = at.certificate;
      out.target_trace = at.target_trace;
      out.status = at.status;
      out.reason = at.reason;
      if (!failed(at.status)) out.image = there_.fetch(at.image);
      return out;
    });
  }

 private:
  template <class Run>
  auto fetching(TargetRef<Scalar> target, Run run) const {
    if (target.has_factor()) return run(FetchedFactoredTarget<There>(there_, target));
    return run(FetchedTarget<There>(there_, target));
  }
  BasicOnStep<Space> with_all_rows(const OnStep<Scalar>& on_step) const {
    if (!on_step) return {};
    return [this, on_step](const Step& step, const typename Space::ConstView& y) {
      return on_step(step, there_.fetch(y));
    };
  }

  There there_;
};

}  // namespace itspace::test
