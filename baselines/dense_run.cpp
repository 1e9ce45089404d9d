// SPDX-License-Identifier: Apache-2.0
#include "baselines/dense_run.hpp"

#include "core/require.hpp"

#include <algorithm>

namespace itspace::baselines {

void check_dense_input(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options) {
  check_symmetric(start, target.dim(), "the start");
  require(options.rank >= 1 && options.rank <= target.dim(), "the rank is ", options.rank,
          "; it must be from 1 to the dimension, ", target.dim());
  require(options.steps >= 1, "the number of steps is ", options.steps, "; it must be at least 1");
}

bool report_start(TimedLog& log, const Small& start, Index rank) {
  Index not_counted = 0;
  return log.report(leading_factor(start, rank, not_counted));
}

bool report_truncation(TimedLog& log, const Small& x, Index rank, double step_size) {
  return log.report(log.projection([&] { return leading_factor(x, rank, log.passes()); }), step_size);
}

Small optimal_map(const SpectralTarget& target, const SymmetricEigen& sandwich) {
  const SmallVector& a = sandwich.values();
  const double rounding = double(a.size()) * Eigen::NumTraits<double>::epsilon() * a(a.size() - 1);
  return weighted_square(product(target.root(), sandwich.vectors()), a.cwiseMax(rounding).array().rsqrt());
}

}  // namespace itspace::baselines
