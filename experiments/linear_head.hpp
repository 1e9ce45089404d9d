// SPDX-License-Identifier: Apache-2.0
//
// The frozen predictor of CovDrift-MR: L2-regularised logistic regression, one class against the rest, by LIBLINEAR's
// primal trust-region solver, which draws no random numbers.
#pragma once

#include <itspace/transport_map.hpp>

#include <cstdint>
#include <vector>

namespace itspace::experiments {

class LinearHead {
 public:
  // Row c of `weights` and `bias` score the class `classes[c]`, ascending; of two classes only the second has a row.
  LinearHead(std::vector<int> classes, Block<double> weights, SmallVector bias);

  const std::vector<int>& classes() const { return classes_; }

  // samples x rows of the weights. @pre as many columns as the head was trained on.
  Block<double> scores(const ConstBlockView<double>& samples) const;
  std::vector<int> predict(const Block<double>& scores) const;

  // The head x -> scores(T(x)): a linear head again, made in O(d r) per class, so that no sample has to move.
  LinearHead after(const TransportMap& map) const;
  // The head x -> scores(x + shift).
  LinearHead after_shift(const Eigen::VectorXd& shift) const;

 private:
  std::vector<int> classes_;
  Block<double> weights_;
  SmallVector bias_;
};

// What LIBLINEAR may weigh the loss with against ||w||^2/2, climbed as long as a held-out fifth of the samples is not
// predicted worse.
inline constexpr double head_cost_grid[] = {1e-3, 1e-2, 1e-1, 1};

struct TrainedHead {
  LinearHead head;
  double cost = 0;  // the best of the grid, of equals the smallest
};

// @throws std::invalid_argument: not one label per row, fewer than two classes, a value that is not finite.
TrainedHead train_head(const ConstBlockView<double>& samples, const std::vector<int>& labels, std::uint64_t seed);

}  // namespace itspace::experiments
