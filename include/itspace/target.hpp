// SPDX-License-Identifier: Apache-2.0
//
// Targets: a covariance is an operator.
//
// align() never looks at the entries of a covariance Sigma. It asks for its size, its trace and the product Sigma*Y
// with a tall block, and that is all a Target is. A dense matrix, a feature set (where no d x d matrix ever exists), a
// file larger than memory or a thing of your own enter through the same three members:
//
//     struct Diagonal {                                     // a complete target
//       Eigen::VectorXd entries;
//       Index dim() const { return entries.size(); }
//       double trace() const { return entries.sum(); }
//       void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out = entries.asDiagonal() * y; }
//     };
//
// What a target promises: apply is linear, symmetric and positive semidefinite, overwrites `out`, may be called with
// any number of columns, and may be called from several threads at once. trace() is asked only after the first apply(),
// so that one sweep over the data can gather both. A FactoredTarget also knows a T with Sigma = T*T' and gives products
// with T; the accurate `factor` route and exact distances use them.
#pragma once

#include <itspace/block.hpp>

#include <concepts>

namespace itspace {

template <class T, class Scalar>
concept Target = Storage<Scalar> && requires(const T& target, const ConstBlockView<Scalar>& y, BlockView<Scalar> out) {
  { target.dim() } -> std::convertible_to<Index>;
  { target.trace() } -> std::convertible_to<double>;
  target.apply(y, out);  // out = Sigma * y
};

template <class T, class Scalar>
concept FactoredTarget = Target<T, Scalar> &&
    requires(const T& target, const ConstBlockView<Scalar>& in, BlockView<Scalar> out) {
  { target.factor_cols() } -> std::convertible_to<Index>;  // n, where T is d x n
  target.apply_factor_transposed(in, out);                 // out (n x r) = T' * in (d x r)
  target.apply_factor(in, out);                            // out (d x r) = T * in (n x r)
};

// A non-owning handle that every Target converts to; the solver is compiled once against it. The target must outlive
// it.
template <Storage Scalar>
class TargetRef {
 public:
  template <class T>
  requires Target<T, Scalar> &&(!std::same_as<T, TargetRef>)
      TargetRef(const T& target)  // NOLINT(google-explicit-constructor): every Target converts
      : object_(&target), calls_(&calls_of<T>) {}

  Index dim() const { return calls_->dim(object_); }
  double trace() const { return calls_->trace(object_); }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const { calls_->apply(object_, y, out); }

  // The factor T of Sigma = T*T'. Without one factor_cols() is 0 and the two products must not be called.
  bool has_factor() const { return calls_->factor_cols != nullptr; }
  Index factor_cols() const { return has_factor() ? calls_->factor_cols(object_) : 0; }
  void apply_factor_transposed(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
    calls_->apply_factor_transposed(object_, in, out);
  }
  void apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const {
    calls_->apply_factor(object_, in, out);
  }

 private:
  using Product = void (*)(const void*, const ConstBlockView<Scalar>&, BlockView<Scalar>);
  struct Calls {
    Index (*dim)(const void*);
    double (*trace)(const void*);
    Product apply;
    Index (*factor_cols)(const void*) = nullptr;
    Product apply_factor_transposed = nullptr;
    Product apply_factor = nullptr;
  };

  template <class T>
  static constexpr Calls make_calls() {
    Calls calls{};
    calls.dim = [](const void* t) -> Index { return static_cast<const T*>(t)->dim(); };
    calls.trace = [](const void* t) -> double { return static_cast<const T*>(t)->trace(); };
    calls.apply = [](const void* t, const ConstBlockView<Scalar>& y, BlockView<Scalar> out) {
      static_cast<const T*>(t)->apply(y, out);
    };
    if constexpr (FactoredTarget<T, Scalar>) {
      calls.factor_cols = [](const void* t) -> Index { return static_cast<const T*>(t)->factor_cols(); };
      calls.apply_factor_transposed = [](const void* t, const ConstBlockView<Scalar>& in, BlockView<Scalar> out) {
        static_cast<const T*>(t)->apply_factor_transposed(in, out);
      };
      calls.apply_factor = [](const void* t, const ConstBlockView<Scalar>& in, BlockView<Scalar> out) {
        static_cast<const T*>(t)->apply_factor(in, out);
      };
    }
    return calls;
  }
  template <class T>
  static constexpr Calls calls_of = make_calls<T>();

  const void* object_;
  const Calls* calls_;
};

}  // namespace itspace
