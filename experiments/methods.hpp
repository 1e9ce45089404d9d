// SPDX-License-Identifier: Apache-2.0
//
// Every method of the experiments under one roof: a name and a way to run it on a problem, K steps, timed.
#pragma once

#include "baselines/dense_methods.hpp"
#include "baselines/sinkhorn.hpp"
#include "results.hpp"
#include "watch.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace itspace::experiments {

// What was chosen from a grid on the first problem of an instance and serves the others: name of the choice to value.
using Tuning = std::map<std::string, double>;

// What the methods of one problem share. Both covariances are dense, d x d; the samples serve sample OT.
class Problem {
 public:
  // @pre covariances of one size, samples with that many columns.
  Problem(Block<double> start_covariance, Block<double> target_covariance, Block<double> source_samples,
          Block<double> target_samples, Index rank, std::uint64_t seed,
          std::shared_ptr<Tuning> tuning = std::make_shared<Tuning>());

  Index rank() const { return rank_; }
  std::uint64_t seed() const { return seed_; }
  const Block<double>& start_covariance() const { return start_covariance_; }
  const Block<double>& target_covariance() const { return target_covariance_; }
  const Block<double>& source_samples() const { return source_samples_; }
  const Block<double>& target_samples() const { return target_samples_; }
  // Pi_r(X_0), where every method starts, and the time it took.
  const Block<double>& start() const { return start_; }
  double start_seconds() const { return start_seconds_; }
  Tuning& tuning() const { return *tuning_; }
  // Made when first asked for.
  const baselines::SpectralTarget& spectral_target() const;

 private:
  Block<double> start_covariance_, target_covariance_, source_samples_, target_samples_, start_;
  Index rank_;
  std::uint64_t seed_;
  double start_seconds_ = 0;
  std::shared_ptr<Tuning> tuning_;
  mutable std::optional<baselines::SpectralTarget> spectral_target_;
};

struct MethodRun {
  baselines::TimedResult timed;
  std::string settings;  // what was chosen for this problem, such as epsilon
};

struct Budget {
  Index steps = 20;
  // A solver that is run anew for every row, so that its time holds what k steps need and no more, makes these only;
  // empty: all. Row 0, the start, is always made.
  std::vector<Index> rows = {};
};

struct Method {
  MethodInfo info;
  // Row k is what k steps give; `on_step` is called outside the clocks and may stop the run.
  std::function<MethodRun(const Problem&, const Budget&, const OnStep<double>& on_step)> run;
  bool has_budget = true;  // false: it has no steps to count (an eigensolver run to a tolerance); not in covdrift
  bool cubic = false;      // its steps cost d^3
};

const std::vector<Method>& all_methods();
// @throws std::invalid_argument that lists the ids.
const Method& method_named(const std::string& id);

}  // namespace itspace::experiments
