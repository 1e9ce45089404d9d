// SPDX-License-Identifier: Apache-2.0
//
// A target on a GPU, of either precision, with the tensor it reads.
#pragma once

#include <itspace/cuda/targets.hpp>

#include "cuda/device_arrays.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace itspace::python {

class DeviceTarget {
 public:
  template <Storage Scalar>
  struct Typed {
    std::unique_ptr<cuda::TargetArgument<Scalar>> argument;
    std::shared_ptr<const cuda::FeaturesTarget<Scalar>> features;  // of features alone
    DeviceMatrix<Scalar> array;
  };

  template <Storage Scalar, class T>
  static DeviceTarget make(std::string kind, std::shared_ptr<const T> target, const DeviceMatrix<Scalar>& array) {
    DeviceTarget made;
    made.kind = std::move(kind);
    Typed<Scalar> typed{std::make_unique<cuda::TargetArgument<Scalar>>(*target), nullptr, array};
    if constexpr (std::same_as<T, cuda::FeaturesTarget<Scalar>>) {
      typed.features = target;
      made.mean = target->mean();
      made.samples = target->samples();
    }
    made.typed = std::move(typed);
    made.target_ = std::move(target);
    return made;
  }

  bool float32() const { return std::holds_alternative<Typed<float>>(typed); }

  std::string kind;                     // covariance, features, factor, low_rank_plus_diagonal
  std::optional<Eigen::VectorXd> mean;  // of features
  Index samples = 0;                    // of features
  std::variant<Typed<float>, Typed<double>> typed;

 private:
  std::shared_ptr<const void> target_;
};

}  // namespace itspace::python
