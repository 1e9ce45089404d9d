// SPDX-License-Identifier: Apache-2.0
#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/rank.hpp>

#include "core/require.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

constexpr Index most_exact_dim = 1024;

void check_share(double share) {
  require(share > 0 && share <= 1, "the share of variance to explain is ", share,
          "; it must be more than 0 and at most 1 (0.95 is usual)");
}

}  // namespace

Index rank_explaining(const Eigen::VectorXd& descending, double trace, double share) {
  check_share(share);
  require(std::isfinite(trace) && trace >= 0, "the trace is ", trace, "; it must be finite and 0 or more");
  for (Index i = 0; i < descending.size(); ++i)
    require(std::isfinite(descending(i)), "eigenvalue ", i, " is ", descending(i), "; all must be finite");
  // Eigenvalues and trace are rounded; a share of 1 must not hang on their last digits.
  const double wanted = share * trace * (1 - 1e-12);
  double sum = 0;
  for (Index r = 0; r < descending.size(); ++r) {
    sum += std::max(0.0, descending(r));
    if (sum >= wanted) return r + 1;
  }
  return std::max<Index>(1, descending.size());
}

template <Storage Scalar>
Index rank_explaining(const TargetArgument<Scalar>& given, double share, std::uint64_t seed) {
  const TargetRef<Scalar> target = given;
  check_share(share);
  const Index d = target.dim();
  require(d >= 1, "the target has dimension ", d, "; it must have at least one coordinate");
  if (d <= most_exact_dim) {
    const Block<Scalar> identity = Block<Scalar>::Identity(d, d);
    Block<Scalar> sigma(d, d);
    target.apply(identity, sigma);
    check_finite<Scalar>(sigma, "the target applied to the identity");
    symmetrise<Scalar>(sigma);
    return rank_explaining(leading_eigenvalues<Scalar>(sigma, d), target.trace(), share);
  }
  AlignOptions options;
  options.solver = Solver::ritz;
  options.steps = 3;
  options.seed = seed;
  for (Index width = 32;; width *= 2) {
    width = std::min(width, d);
    const Result<Scalar> found = align<Scalar>(target, width, options);
    require(found.status() != Status::not_a_covariance, "the target is not a covariance: ", found.trace.reason);
    require(found.status() != Status::not_finite, "a product with the target is not finite");
    const Eigen::VectorXd values = leading_eigenvalues_of_factor(found.factor.template cast<double>(), width);
    const double trace = found.trace.target_trace;
    if (width == d || values.sum() >= share * trace) return rank_explaining(values, trace, share);
  }
}

EffectiveRank effective_rank(const Eigen::VectorXd& descending, double trace) {
  // Ratios before squares: the squares may overflow where their ratio does not.
  const double largest = descending.size() > 0 ? descending(0) : 0, size = descending.stableNorm();
  return {size > 0 ? (trace / size) * (trace / size) : 0, largest > 0 ? trace / largest : 0};
}

template Index rank_explaining<float>(const TargetArgument<float>&, double, std::uint64_t);
template Index rank_explaining<double>(const TargetArgument<double>&, double, std::uint64_t);

}  // namespace itspace
