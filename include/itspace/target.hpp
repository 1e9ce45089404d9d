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
// any number of columns, and may be called from several threads at once. trace() is asked only after the first
// product, so that one sweep over the data can gather both. A FactoredTarget also knows a T with Sigma = T*T' and gives
// products with T; the accurate `factor` route and exact distances use them.
#pragma once

#include <itspace/space.hpp>

#include <concepts>
#include <cstdint>

namespace itspace {

// A target of blocks in space S; `Target<T, Scalar>` below is the one that most people mean.
template <class T, class S>
concept TargetIn = Space<S> && requires(const T& target, const typename S::ConstView& y, typename S::View out) {
  { target.dim() } -> std::convertible_to<Index>;
  { target.trace() } -> std::convertible_to<double>;
  target.apply(y, out);  // out = Sigma * y
};

template <class T, class S>
concept FactoredTargetIn = TargetIn<T, S> &&
    requires(const T& target, const typename S::ConstView& in, typename S::View out) {
  { target.factor_cols() } -> std::convertible_to<Index>;  // n, where T is d x n
  target.apply_factor_transposed(in, out);                 // out (n x r) = T' * in (d x r)
  target.apply_factor(in, out);                            // out (d x r) = T * in (n x r)
};

// A target that may change between two steps of a run says so: with another version() than before, products that were
// kept from the old Sigma are made anew, and no row of the trace is compared with one of an older version.
template <class T>
concept VersionedTarget = requires(const T& target) {
  { target.version() } -> std::convertible_to<std::uint64_t>;
};

template <class T, class Scalar>
concept Target = Storage<Scalar> && TargetIn<T, HostSpace<Scalar>>;
template <class T, class Scalar>
concept FactoredTarget = Storage<Scalar> && FactoredTargetIn<T, HostSpace<Scalar>>;

// A non-owning handle that every target converts to; the solvers are compiled once against it. The target must outlive
// it, so that none is made of a temporary.
template <Space S>
class BasicTargetRef {
 public:
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  template <class T>
  requires TargetIn<T, S> &&(!std::same_as<T, BasicTargetRef>)
      BasicTargetRef(const T& target)  // NOLINT(google-explicit-constructor): every target converts
      : object_(&target), calls_(&calls_of<T>) {}
  template <class T>
  requires TargetIn<T, S> &&(!std::same_as<T, BasicTargetRef>)BasicTargetRef(const T&& temporary) = delete;

  Index dim() const { return calls_->dim(object_); }
  double trace() const { return calls_->trace(object_); }
  void apply(const ConstView& y, View out) const { calls_->apply(object_, y, out); }
  // 0 for a target that does not change.
  std::uint64_t version() const { return calls_->version != nullptr ? calls_->version(object_) : 0; }

  // The factor T of Sigma = T*T'. Without one factor_cols() is 0 and the two products must not be called.
  bool has_factor() const { return calls_->factor_cols != nullptr; }
  Index factor_cols() const { return has_factor() ? calls_->factor_cols(object_) : 0; }
  void apply_factor_transposed(const ConstView& in, View out) const {
    calls_->apply_factor_transposed(object_, in, out);
  }
  void apply_factor(const ConstView& in, View out) const { calls_->apply_factor(object_, in, out); }

 private:
  using Product = void (*)(const void*, const ConstView&, View);
  struct Calls {
    Index (*dim)(const void*);
    double (*trace)(const void*);
    Product apply;
    std::uint64_t (*version)(const void*) = nullptr;
    Index (*factor_cols)(const void*) = nullptr;
    Product apply_factor_transposed = nullptr;
    Product apply_factor = nullptr;
  };

  template <class T>
  static constexpr Calls make_calls() {
    Calls calls{};
    calls.dim = [](const void* t) -> Index { return static_cast<const T*>(t)->dim(); };
    calls.trace = [](const void* t) -> double { return static_cast<const T*>(t)->trace(); };
    calls.apply = [](const void* t, const ConstView& y, View out) { static_cast<const T*>(t)->apply(y, out); };
    if constexpr (VersionedTarget<T>)
      calls.version = [](const void* t) -> std::uint64_t { return static_cast<const T*>(t)->version(); };
    if constexpr (FactoredTargetIn<T, S>) {
      calls.factor_cols = [](const void* t) -> Index { return static_cast<const T*>(t)->factor_cols(); };
      calls.apply_factor_transposed = [](const void* t, const ConstView& in, View out) {
        static_cast<const T*>(t)->apply_factor_transposed(in, out);
      };
      calls.apply_factor = [](const void* t, const ConstView& in, View out) {
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

template <Storage Scalar>
using TargetRef = BasicTargetRef<HostSpace<Scalar>>;

// What functions take: any target, a temporary too, which lives as long as the call. It says what a class lacks to be
// one. Not for keeping: there is no copy of it.
template <Storage Scalar>
class TargetArgument {
 public:
  template <class T>
  requires(!std::same_as<T, TargetArgument>) TargetArgument(const T& target)  // NOLINT(google-explicit-constructor)
      : ref_(checked(target)) {}
  TargetArgument(const TargetRef<Scalar>& target) : ref_(target) {}  // NOLINT(google-explicit-constructor)
  TargetArgument(const TargetArgument&) = delete;
  TargetArgument& operator=(const TargetArgument&) = delete;

  operator TargetRef<Scalar>() const { return ref_; }  // NOLINT(google-explicit-constructor)
  const TargetRef<Scalar>& ref() const { return ref_; }

 private:
  template <class T>
  static TargetRef<Scalar> checked(const T& target) {
    static_assert(
        requires {
          { target.dim() } -> std::convertible_to<Index>;
        },
        "a target needs a member `Index dim() const`: the number of coordinates");
    static_assert(
        requires {
          { target.trace() } -> std::convertible_to<double>;
        },
        "a target needs a member `double trace() const`: the trace of its covariance");
    static_assert(
        requires(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) { target.apply(y, out); },
        "a target needs a member `void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const`: "
        "out = Sigma * y, const, and for the Scalar that is asked for");
    if constexpr (Target<T, Scalar>) {
      return TargetRef<Scalar>(target);
    } else {
      return nothing();  // the assertions above have said why
    }
  }
  static TargetRef<Scalar> nothing();

  TargetRef<Scalar> ref_;
};

}  // namespace itspace
