// SPDX-License-Identifier: Apache-2.0
//
// The four paths at t_k = k/K, and CORAL. What depends on X_0 is done inside the first update.
#include "baselines/dense_run.hpp"
#include "baselines/partial_eigen.hpp"

#include <cmath>

namespace itspace::baselines {
namespace {

double at(Index k, Index steps) {
  return double(k) / double(steps);
}

SmallVector logarithms(const SmallVector& values) {
  return values.array().log();
}

}  // namespace

TimedResult bw_geodesic(const SpectralTarget& target, const ConstBlockView<double>& start,
                        const DenseOptions& options) {
  check_dense_input(target, start, options);
  TimedLog log(target.dim(), options.rank, "bw_geodesic", options.on_step);
  log.add_preprocessing(target.seconds());
  Small x0 = start;
  bool proceed = report_start(log, x0, options.rank);
  // X_t = ((1-t) I + t T) X_0 ((1-t) I + t T) = (1-t)^2 X_0 + t(1-t)(T X_0 + X_0 T) + t^2 Sigma, since T X_0 T = Sigma.
  const Small sigma = log.preprocessing([&] { return target.shifted(); });
  Small cross, x(target.dim(), target.dim());
  for (Index k = 1; proceed && k <= options.steps; ++k) {
    const double t = at(k, options.steps);
    log.update([&] {
      if (k == 1) {
        x0 = positive_definite(std::move(x0));
        const Small map = optimal_map(target, SymmetricEigen(congruence(target.root(), x0)));
        cross = plus_transpose(product(map, x0));
        log.passes() +=
            target.dim() + 6;  // the eigendecomposition, the Cholesky trial; S X_0 S, S V, its square, T X_0
      }
      x = (1 - t) * (1 - t) * x0 + t * (1 - t) * cross + t * t * sigma;
      log.passes() += 3;
    });
    proceed = report_truncation(log, x, options.rank);
  }
  return log.finish(target.sigma().trace());
}

TimedResult euclidean_path(const SpectralTarget& target, const ConstBlockView<double>& start,
                           const DenseOptions& options) {
  check_dense_input(target, start, options);
  TimedLog log(target.dim(), options.rank, "euclidean_path", options.on_step);
  const Small x0 = start;
  bool proceed = report_start(log, x0, options.rank);
  Small x(target.dim(), target.dim());
  for (Index k = 1; proceed && k <= options.steps; ++k) {
    const double t = at(k, options.steps);
    log.update([&] {
      x = (1 - t) * x0 + t * target.sigma();
      log.passes() += 2;
    });
    proceed = report_truncation(log, x, options.rank);
  }
  return log.finish(target.sigma().trace());
}

TimedResult log_euclidean_path(const SpectralTarget& target, const ConstBlockView<double>& start,
                               const DenseOptions& options) {
  check_dense_input(target, start, options);
  TimedLog log(target.dim(), options.rank, "log_euclidean_path", options.on_step);
  log.add_preprocessing(target.seconds());
  const Small x0 = start;
  bool proceed = report_start(log, x0, options.rank);
  const Small log_sigma =
      log.preprocessing([&] { return weighted_square(target.vectors(), logarithms(target.values())); });
  Small log_x0, mean(target.dim(), target.dim());
  for (Index k = 1; proceed && k <= options.steps; ++k) {
    const double t = at(k, options.steps);
    log.update([&] {
      if (k == 1) {
        const SymmetricEigen eigen(x0);
        const double shift = positive_definite_shift(eigen.values());
        log_x0 = weighted_square(eigen.vectors(), logarithms(eigen.values().array() + shift));
        log.passes() += target.dim() + 1;
      }
      mean = (1 - t) * log_x0 + t * log_sigma;
      log.passes() += 2;
    });
    // exp is monotone: the leading part of exp(L) is the exponential of the leading part of L.
    proceed = log.report(log.projection([&]() -> Block<double> {
      const LeadingPairs pairs = leading_pairs(mean, options.rank, log.passes());
      const SmallVector roots = (pairs.values.array() / 2).exp();
      return pairs.vectors * roots.asDiagonal();
    }));
  }
  return log.finish(target.sigma().trace());
}

TimedResult airm_path(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options) {
  check_dense_input(target, start, options);
  TimedLog log(target.dim(), options.rank, "airm_path", options.on_step);
  log.add_preprocessing(target.seconds());
  Small x0 = start;
  bool proceed = report_start(log, x0, options.rank);
  // With the factor R = V diag(lambda)^(1/2) of Sigma in place of its root: R^(-1) X_0 R^(-1)' = U diag(n) U',
  // W = R U, X_t = W diag(n)^(1-t) W'. Kept as these two; the truncation needs products with them only.
  const auto columns_scaled = [&](const SmallVector& by) -> Small { return target.vectors() * by.asDiagonal(); };
  const Small inverse_transposed = log.preprocessing([&] { return columns_scaled(target.values().array().rsqrt()); });
  const Small factor = log.preprocessing([&] { return columns_scaled(target.values().cwiseSqrt()); });
  Small w;
  SmallVector n, weights;
  for (Index k = 1; proceed && k <= options.steps; ++k) {
    const double t = at(k, options.steps);
    log.update([&] {
      if (k == 1) {
        x0 = positive_definite(std::move(x0));
        const SymmetricEigen eigen(congruence(inverse_transposed, x0));
        n = eigen.values().cwiseMax(0.0);
        w = product(factor, eigen.vectors());
        log.passes() += target.dim() + 4;  // the Cholesky trial, the congruence, the eigendecomposition, W
      }
      weights = n.array().pow(1 - t);
    });
    proceed = log.report(
        log.projection([&] { return factor_of(leading_pairs_of_product(w, weights, options.rank, log.passes())); }));
  }
  return log.finish(target.sigma().trace());
}

TimedResult coral(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options) {
  check_dense_input(target, start, options);
  TimedLog log(target.dim(), options.rank, "coral", options.on_step);
  log.add_preprocessing(target.seconds());
  Small x0 = start;
  if (report_start(log, x0, options.rank)) {
    const Small x = log.update([&] {
      const SymmetricEigen eigen(x0);
      const double shift = positive_definite_shift(eigen.values());
      const SmallVector values = eigen.values().array() + shift;
      const Small whitening = weighted_square(eigen.vectors(), values.array().rsqrt());
      const Small map_transposed = product(whitening, target.root());  // A' = X_0^(-1/2) Sigma^(1/2)
      x0.diagonal().array() += shift;
      log.passes() += target.dim() + 4;
      return congruence(map_transposed, x0);
    });
    report_truncation(log, x, options.rank);
  }
  return log.finish(target.sigma().trace());
}

}  // namespace itspace::baselines
