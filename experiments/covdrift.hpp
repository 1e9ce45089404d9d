// SPDX-License-Identifier: Apache-2.0
//
// CovDrift-MR (the paper's Experiment II, appendix E): a frozen linear head, a target whose covariance drifts along 16
// directions, and K updates from unlabeled samples to bring it back.
//
// The paper does not define its drift. Ours, on standardised features: x -> x + U diag(s_i - 1) V'x, V the r leading
// directions of the source, s_i linear from 1 to s_max; U = V (`scale`) or seeded orthonormal (`mix`).
#pragma once

#include "instances.hpp"
#include "methods.hpp"

namespace itspace::experiments {

struct CovDriftOptions {
  Index rank = 16;
  std::vector<std::uint64_t> seeds{0, 1, 2};
  std::vector<Index> budgets{1, 2, 5, 20};
  std::vector<std::string> drifts{"none", "scale", "mix"};
  std::vector<double> severities{1.7};  // s_max; `none` runs once
  double shrinkage = 0.05;              // gamma: (1 - gamma) Sigma + gamma (tr Sigma/d) I
  double eigenvalue_floor = 1e-4;       // times tr Sigma/d
  bool closed_set = false;              // evaluate only target-test samples whose label the source has
  std::vector<std::string> methods;     // ids; empty: all
};

// @throws std::invalid_argument (labels, classes), Interrupted.
DriftInstance run_covdrift(const Instance& instance, const CovDriftOptions& options, const Watch& watch);

}  // namespace itspace::experiments
