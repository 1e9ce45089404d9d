// SPDX-License-Identifier: Apache-2.0
//
// A target of any precision, with whatever keeps its memory alive.
#pragma once

#include <itspace/covariance.hpp>
#include <itspace/target.hpp>

#include "arrays.hpp"
#include "core/feature_moments.hpp"
#include "core/require.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace itspace::python {

// The Python functions that a target calls. There is one reference to each of them for each target, which shows it to
// the collector of cycles: a function knows its module or its object, and the target may well be found there.
struct PythonCalls {
  nb::object first, second;
};

class AnyTarget {
 public:
  // `target` has blocks of Scalar and borrows from `array`, which is kept. An array of float under blocks of double is
  // mixed precision.
  template <Storage Scalar, class T, Storage Data = Scalar>
  static AnyTarget make(std::string kind, std::shared_ptr<T> target, std::optional<Matrix<Data>> array) {
    AnyTarget any(Tag<Scalar>{}, std::move(kind), std::move(target), std::move(array));
    any.mixed = !std::same_as<Scalar, Data>;
    return any;
  }

  bool float32() const { return std::holds_alternative<TargetRef<float>>(ref); }
  Index dim() const {
    return std::visit([](const auto& target) { return target.dim(); }, ref);
  }

  std::string kind;                     // covariance, features, factor, low_rank_plus_diagonal, stream, operator
  const void* address;                  // of the data it reads, null where there is none
  std::optional<Eigen::VectorXd> mean;  // of features
  Index samples = 0;                    // of features
  std::function<std::pair<Eigen::VectorXd, Index>()> gathered;  // both, of a stream: known once it was gone through
  Eigen::VectorXd weights;                                      // of features, empty where all rows count the same
  std::variant<TargetRef<float>, TargetRef<double>> ref;
  bool mixed = false;
  std::function<AnyTarget()> widened;  // the same data under double blocks; empty where they are double, or an operator

  std::shared_ptr<PythonCalls> calls;  // of this target alone; null where it calls none

  const auto& array() const { return array_; }

 private:
  template <class Scalar>
  struct Tag {};
  template <class Scalar, class T, class Data>
  AnyTarget(Tag<Scalar>, std::string kind_in, std::shared_ptr<T> target, std::optional<Matrix<Data>> array)
      : kind(std::move(kind_in)),
        address(array ? array->data() : nullptr),
        ref(TargetRef<Scalar>(*target)),
        target_(std::move(target)),
        array_(std::move(array)) {}

  std::shared_ptr<void> target_;
  std::variant<std::optional<Matrix<float>>, std::optional<Matrix<double>>> array_;
};

// Samples in rows, as the caller named them: at least two, finite, and weights that fit.
template <Storage Scalar>
void check_samples(const MatrixView<Scalar>& rows, const Eigen::VectorXd& weights, std::string_view name) {
  check_features(rows.rows(), rows.cols(), weights, {name, "sample_weight"});
  check_finite<Scalar>(rows, name);
}

// A factor to be looked at, not to start from: the library, which starts a run there, would call it a start.
template <Storage Scalar>
void check_factor(const MatrixView<Scalar>& factor, Index dim, std::string_view name) {
  require(factor.rows() == dim, "the factor has ", factor.rows(), " rows and the target has dimension ", dim,
          "; a factor is d x r");
  require(factor.cols() >= 1, "the factor has no columns; it needs at least one");
  check_finite<Scalar>(factor, name);
}

}  // namespace itspace::python
