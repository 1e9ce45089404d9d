// SPDX-License-Identifier: Apache-2.0
//
// One eigendecomposition a step. That of S X S, S = Sigma^(1/2), gives the objective (its values) and the next gradient
// (its vectors); a check of a trial point pays for the values, and the step after it for the vectors.
#include "baselines/dense_run.hpp"
#include "core/require.hpp"

#include <cmath>

namespace itspace::baselines {
namespace {

// Where the method stands: X and, once it has been looked at, the eigendecomposition of S X S.
struct Point {
  Small x;
  bool looked_at = false;
  SymmetricEigen sandwich;
  double objective = 0;  // F(X) = tr X + tr Sigma - 2 sum_i sqrt(a_i)
  double rounding = 0;   // what F may be wrong by: 2 sum_i of the error of sqrt(a_i), where a_i is wrong by eps a_max
};

void look_at(Point& point, const SpectralTarget& target, Index& passes) {
  point.sandwich = SymmetricEigen(congruence(target.root(), point.x));
  passes += target.dim() + 2;
  const Eigen::ArrayXd a = point.sandwich.values().array().max(0.0);
  point.objective = point.x.trace() + target.values().sum() - 2 * a.sqrt().sum();
  const double error = std::sqrt(double(a.size())) * Eigen::NumTraits<double>::epsilon() * a.maxCoeff();
  if (error > 0) point.rounding = 2 * (error / (a.sqrt() + std::sqrt(error))).sum();
  point.looked_at = true;
}

}  // namespace

TimedResult bw_gradient_descent(const SpectralTarget& target, const ConstBlockView<double>& start,
                                const DenseOptions& options, const GradientOptions& gradient) {
  check_dense_input(target, start, options);
  require(gradient.step > 0 && gradient.step <= 1, "the step is ", gradient.step, "; it must lie in (0, 1]");
  require(gradient.armijo > 0 && gradient.armijo < 0.5, "the share of the promised descent is ", gradient.armijo,
          "; it must lie in (0, 0.5)");
  TimedLog log(target.dim(), options.rank, "bw_gradient_descent", options.on_step);
  log.add_preprocessing(target.seconds());
  Small x0 = start;
  bool proceed = report_start(log, x0, options.rank);
  const Small sigma = log.preprocessing([&] { return target.shifted(); });
  Point here;
  for (Index k = 1; proceed && k <= options.steps; ++k) {
    double eta = gradient.step;
    log.update([&] {
      if (k == 1) {
        here.x = positive_definite(std::move(x0));
        log.passes() += 1;
      }
      if (!here.looked_at) look_at(here, target, log.passes());
      const Small moved = product(optimal_map(target, here.sandwich), here.x);
      const Small cross = plus_transpose(moved);
      log.passes() += 3;  // S V, its square, T X
      // f = F/2 has the gradient I - T at X, and ||I - T||^2_X = tr((T-I) X (T-I)) = tr Sigma - 2 tr(TX) + tr X.
      const double slope = sigma.trace() - 2 * moved.trace() + here.x.trace();
      for (int halvings = 0;; ++halvings) {
        // ((1-eta) I + eta T) X ((1-eta) I + eta T), multiplied out with T X T = Sigma.
        Point there;
        there.x = (1 - eta) * (1 - eta) * here.x + eta * (1 - eta) * cross + eta * eta * sigma;
        log.passes() += 3;
        bool accepted = true;
        if (gradient.backtracking) {
          look_at(there, target, log.passes());
          log.count_check();
          const double rounding = here.rounding + there.rounding;
          accepted = there.objective <= here.objective - 2 * gradient.armijo * eta * slope + rounding;
        }
        constexpr int most_halvings = 20;
        if (accepted || halvings == most_halvings) {
          here = std::move(there);
          return;
        }
        eta /= 2;
      }
    });
    proceed = report_truncation(log, here.x, options.rank, eta);
  }
  return log.finish(target.sigma().trace());
}

}  // namespace itspace::baselines
