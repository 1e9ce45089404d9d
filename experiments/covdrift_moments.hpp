// SPDX-License-Identifier: Apache-2.0
//
// From raw rows to what every method is given: standardised samples and stabilised moments.
#pragma once

#include <itspace/block.hpp>

#include <vector>

namespace itspace::experiments {

// (x - mean)/deviation per feature, fitted on one set and applied to others, as scikit-learn's StandardScaler: the
// deviation divides by n, and a feature that does not vary is only centred.
class Standardiser {
 public:
  // @pre at least one sample.
  explicit Standardiser(const Block<double>& samples);
  void apply(Block<double>& samples) const;

 private:
  Eigen::RowVectorXd mean_, scale_;
};

struct Stabilisation {
  double shrinkage = 0.05;         // gamma: (1 - gamma) Sigma + gamma (tr Sigma/d) I
  double eigenvalue_floor = 1e-4;  // then no eigenvalue below this times tr Sigma/d
};

struct Moments {
  Eigen::VectorXd mean;
  Block<double> covariance;  // d x d, stabilised
};

// @throws std::invalid_argument: fewer than two samples, samples that do not vary, settings out of [0, 1].
Moments moments_of(const Block<double>& samples, const Stabilisation& stabilisation);

// The chosen rows, as double.
Block<double> rows_of(const Block<float>& features, const std::vector<Index>& rows);

}  // namespace itspace::experiments
