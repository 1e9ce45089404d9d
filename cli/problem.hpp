// SPDX-License-Identifier: Apache-2.0
//
// From inputs to what the library computes with: the target operator, the start, the spectrum, a factor in double.
#pragma once

#include "input.hpp"

#include <itspace/target.hpp>
#include <itspace/targets.hpp>

#include <Eigen/Core>
#include <optional>
#include <variant>

namespace itspace::cli {

// The target of a run with blocks of Scalar, on data of Data (float under double is mixed precision). Shares the
// values of `input`, which must outlive it for the rest.
template <Storage Scalar, Storage Data = Scalar>
class ProblemTarget {
 public:
  ProblemTarget(const Input<Data>& input, Eigen::VectorXd weights, double ridge);
  ProblemTarget(const ProblemTarget&) = delete;
  ProblemTarget& operator=(const ProblemTarget&) = delete;

  TargetRef<Scalar> ref() const;
  // What it is made of, for a target in another place.
  const Input<Data>& input() const { return input_; }
  const Eigen::VectorXd& weights() const { return weights_; }
  double ridge() const { return ridge_; }
  // The `count` largest eigenvalues (fewer if there are fewer), in descending order. Costs more than many steps.
  Eigen::VectorXd leading(Index count) const;
  // The smallest W2^2 any covariance of that rank can reach.
  double floor(Index rank) const;

 private:
  using Base = std::variant<DenseTarget<Scalar, Data>, FeaturesTarget<Scalar, Data>, FactorTarget<Scalar, Data>>;
  static Base make_base(const Input<Data>& input, const Eigen::VectorXd& weights);

  const Input<Data>& input_;
  Eigen::VectorXd weights_;
  double ridge_;
  Base base_;
  std::optional<ShiftedTarget<Scalar>> shifted_;
};

// The d x rank start that an input gives. @throws std::invalid_argument for a factor with fewer columns.
template <Storage Scalar, Storage Data>
Block<Scalar> start_of(const Input<Data>& input, Index rank);

// A factor F with F F' the covariance of the input.
template <Storage Scalar>
Block<double> factor_of(const Input<Scalar>& input);

// Refuses rank 0 and rank > dim.
void check_rank(Index rank, Index dim, const std::filesystem::path& path);

}  // namespace itspace::cli
