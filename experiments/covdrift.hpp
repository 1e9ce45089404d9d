// SPDX-License-Identifier: Apache-2.0
//
// CovDrift-MR (the paper's Experiment II, appendix E): a frozen linear head, a target whose covariance drifts along 16
// directions, and K updates from unlabeled samples to bring it back.
//
// Per seed: standardise by the source's training rows, train the head on them and freeze it. Per drift: drift both
// halves of the target, estimate its moments from the unlabeled half, let every method take Pi_r(Sigma_s) toward
// Sigma_t, and send the test half back through the map from (mu_t, Y_K) to (mu_s, Pi_r(Sigma_s)) to the head.
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
  Index most_rows = 10000;              // of each domain, chosen by seed
  Index sample_ot_rows = 500;           // at most so many rows of each side for sample OT
  double enough = 1e-6;  // a method whose steps cost d^3 stops once its gap is below: what it has serves later budgets
};

// A method without an iterate after K steps is judged by what it has then, the start. A value is NaN where a method
// left the finite numbers.
// @throws std::invalid_argument (options, labels, classes), Interrupted.
DriftInstance run_covdrift(const Instance& instance, const CovDriftOptions& options, const Watch& watch);

}  // namespace itspace::experiments
