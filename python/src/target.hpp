// SPDX-License-Identifier: Apache-2.0
//
// A target of either precision, with whatever keeps its memory alive.
#pragma once

#include <itspace/covariance.hpp>
#include <itspace/target.hpp>

#include "arrays.hpp"
#include "core/text.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace itspace::python {

class AnyTarget {
 public:
  // `target` borrows from `array`, which is kept.
  template <Storage Scalar, class T>
  static AnyTarget make(std::string kind, std::shared_ptr<T> target, std::optional<Matrix<Scalar>> array) {
    return AnyTarget(Tag<Scalar>{}, std::move(kind), std::move(target), std::move(array));
  }

  bool float32() const { return std::holds_alternative<TargetRef<float>>(ref); }
  Index dim() const {
    return std::visit([](const auto& target) { return target.dim(); }, ref);
  }

  std::string kind;                     // covariance, features, factor, low_rank_plus_diagonal, operator
  const void* address;                  // of the data it reads, null where there is none
  std::optional<Eigen::VectorXd> mean;  // of features
  Index samples = 0;                    // of features
  Eigen::VectorXd weights;              // of features, empty where all rows count the same
  std::variant<TargetRef<float>, TargetRef<double>> ref;

  template <Storage Scalar>
  const Matrix<Scalar>& array() const {
    return std::get<std::optional<Matrix<Scalar>>>(array_).value();
  }

 private:
  template <class Scalar>
  struct Tag {};
  template <class Scalar, class T>
  AnyTarget(Tag<Scalar>, std::string kind_in, std::shared_ptr<T> target, std::optional<Matrix<Scalar>> array)
      : kind(std::move(kind_in)),
        address(array ? array->data() : nullptr),
        ref(TargetRef<Scalar>(*target)),
        target_(std::move(target)),
        array_(std::move(array)) {}

  std::shared_ptr<void> target_;
  std::variant<std::optional<Matrix<float>>, std::optional<Matrix<double>>> array_;
};

// A factor to be looked at, not to start from: the library, which starts a run there, would call it a start.
template <Storage Scalar>
void check_factor(const MatrixView<Scalar>& factor, Index dim, std::string_view name) {
  require(factor.rows() == dim, "the factor has ", factor.rows(), " rows and the target has dimension ", dim,
          "; a factor is d x r");
  require(factor.cols() >= 1, "the factor has no columns; it needs at least one");
  check_finite<Scalar>(factor, name);
}

}  // namespace itspace::python
