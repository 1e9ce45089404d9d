// SPDX-License-Identifier: Apache-2.0
//
// Hard starts (method.md, "Precision"): the columns of Y are mixed and nearly dependent. The default route holds its
// accuracy where the Gram matrix, with condition kappa^2, has lost it.
#include "runs.hpp"

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

struct Errors {
  Real b;          // ||B - B_ref||/||B_ref||
  Real objective;  // in units of eps (tr Sigma + ||Y||^2)
};

template <Storage Scalar>
Errors errors(const ProblemShape& shape, Route route) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const Matrix y = wide(p.start);
  const RealMatrix expected = p.oracle.certificate_factor(y);
  AlignOptions options;
  options.route = route;
  options.completion = false;
  const auto result = run<Scalar>(target, p.start, 1, StepSize::alpha(1), options);
  return {(real(result.iterates[1]) - expected).norm() / expected.norm(),
          std::abs(result.trace.steps[0].objective - p.oracle.objective(y)) / eps_units<Scalar>(p.oracle, y)};
}

// The polar factor itself has condition kappa(Y): 30 r eps kappa is what any algorithm can promise for B. The
// objective does not feel it.
TEST(Conditioning, QrHoldsAtKappa1e8InDouble) {
  for (const auto& [dim, rank] : {Size{17, 4}, Size{17, 17}, Size{40, 8}, Size{60, 16}}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = seed, .kappa = 1e8};
      SCOPED_TRACE(describe(shape));
      for (const Route route : {Route::qr, Route::automatic}) {
        const Errors e = errors<double>(shape, route);
        EXPECT_LT(e.b, ratio_limit * Real(rank) * eps<double> * 1e8L) << name(route);
        EXPECT_LT(e.objective, descent_limit) << name(route);
      }
    }
  }
}

// In float32 the r x r work in double leaves only the rounding of the products, at every kappa.
TEST(Conditioning, QrHoldsAtEveryKappaInFloat) {
  for (const double kappa : {1e2, 1e4, 1e6}) {
    for (const auto& [dim, rank] : {Size{17, 4}, Size{40, 8}, Size{60, 16}}) {
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = 4, .kappa = kappa};
      SCOPED_TRACE(describe(shape) + " kappa=" + std::to_string(kappa));
      for (const Route route : {Route::qr, Route::automatic}) {
        const Errors e = errors<float>(shape, route);
        EXPECT_LT(e.b, ratio_limit * Real(rank) * eps<float>) << name(route);
        EXPECT_LT(e.objective, descent_limit) << name(route);
      }
    }
  }
}

// Columns of very different size, the easy kind of ill-conditioning: nothing is dropped.
TEST(Conditioning, BadlyScaledColumns) {
  for (const Index dim : {17, 40}) {
    auto p = make_problem<double>({.dim = dim, .rank = 6, .seed = 5, .kappa = 2});
    for (Index j = 0; j < 6; ++j) p.start.col(j) *= std::pow(10.0, -double(j));
    const DenseTarget<double> target(p.sigma);
    const auto result = run<double>(target, p.start, 3, StepSize::alpha(0.9));
    EXPECT_EQ(result.trace.steps[0].gram_rank, 6);
    EXPECT_LE(worst_broken_descent(p.oracle, result, 0.9), descent_limit);
    const RealMatrix b = p.oracle.certificate_factor(wide(p.start));
    EXPECT_LT(ratio<double>((real(certificate_factor<double>(target, p.start)) - b).norm(), 6, b.norm()), ratio_limit);
  }
}

// The whole run from such a start keeps its promise.
TEST(Conditioning, RunsAreCertified) {
  for (const double kappa : {1e4, 1e6, 1e8}) {
    const ProblemShape shape{.dim = 40, .rank = 8, .seed = 6, .kappa = kappa};
    SCOPED_TRACE(describe(shape) + " kappa=" + std::to_string(kappa));
    const auto p = make_problem<double>(shape);
    const DenseTarget<double> target(p.sigma);
    const auto result = run<double>(target, p.start, 4, StepSize::alpha(1.1));
    EXPECT_EQ(result.status(), Status::step_limit);
    EXPECT_LE(worst_broken_descent(p.oracle, result, 1.1), descent_limit);
    for (std::size_t k = 1; k < 5; ++k) EXPECT_TRUE(result.trace.steps[k].certified.value());
  }
}

}  // namespace
}  // namespace itspace::test
