// SPDX-License-Identifier: Apache-2.0
//
// A covariance of your own, as an operator: three members, nothing to inherit from, no matrix anywhere.
//
// This one is diag(a) + u u': independent noise in each coordinate, and one factor common to all of them. It has a
// million entries written out, and 2000 numbers as an operator.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <itspace/itspace.hpp>

struct NoisePlusCommonFactor {
  Eigen::VectorXd a, u;

  itspace::Index dim() const { return a.size(); }
  double trace() const { return a.sum() + u.squaredNorm(); }
  void apply(const itspace::ConstBlockView<double>& y, itspace::BlockView<double> out) const {
    const Eigen::RowVectorXd uy = u.transpose() * y;
    out = a.asDiagonal() * y;  // out = Sigma y
    out.noalias() += u * uy;
  }
};
static_assert(itspace::Target<NoisePlusCommonFactor, double>);

int main() {
  const itspace::Index dim = 1000, rank = 4;
  NoisePlusCommonFactor target{Eigen::VectorXd(dim), Eigen::VectorXd(dim)};
  for (itspace::Index i = 0; i < dim; ++i) {
    target.a[i] = 1.0 / static_cast<double>((i + 1) * (i + 1));
    target.u[i] = std::sin(static_cast<double>(i));
  }

  const auto result = itspace::align<double>(target, rank, {.steps = 12});
  const auto& steps = result.trace.steps;
  for (const auto& step : steps) std::cout << step.index << "  W2^2 = " << step.objective << "\n";

  // Written out once, to check the run against the best that rank 4 can do.
  itspace::Block<double> sigma = target.u * target.u.transpose();
  sigma.diagonal() += target.a;
  const double floor = itspace::floor_r(target.trace(), itspace::leading_eigenvalues<double>(sigma, rank), rank);
  const double gap = itspace::gap_r(steps.back().objective, steps.front().objective, floor);
  std::cout << "floor of rank " << rank << ": " << floor << ", gap left: " << gap << "\n";

  for (const auto& step : steps)
    if (!step.certified.value_or(true)) return EXIT_FAILURE;
  return gap >= -1e-9 && gap < 1e-2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
