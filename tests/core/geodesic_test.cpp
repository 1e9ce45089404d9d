// SPDX-License-Identifier: Apache-2.0
//
// The Bures-Wasserstein geodesic gamma(t) between two covariances, W2(A, gamma(t)) = t W2(A, B), and the cost of the
// optimal coupling, which is W2^2.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/distance.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

struct Ends {
  Problem<double> a, b;
  Real size;   // tr A + tr B
  Real kappa;  // of A: what an inverse root costs
};

Ends ends(Index dim, std::uint64_t seed) {
  Ends e{make_problem<double>({.dim = dim, .rank = 1, .seed = seed}),
         make_problem<double>({.dim = dim, .rank = 1, .seed = seed + 1, .spectrum = Spectrum::clustered}), 0, 0};
  e.size = e.a.oracle.trace() + e.b.oracle.trace();
  const RealVector lambda = eigenvalues(e.a.oracle.covariance());
  e.kappa = lambda(0) / lambda(dim - 1);
  return e;
}

RC_GTEST_PROP(Geodesic, DividesTheDistance, ()) {
  const Index dim = *rc::gen::inRange<Index>(1, 18);
  const Ends e = ends(dim, *rc::gen::inRange<std::uint64_t>(0, 1000));
  const double t = 0.01 * *rc::gen::inRange(0, 101);
  const Block<double> point = geodesic<double>(e.a.sigma, e.b.sigma, t);
  REQUIRE_TRUE(point == Block<double>(point.transpose()));
  const RealMatrix a = principal_root(real(e.a.sigma)), b = principal_root(real(e.b.sigma));
  const RealMatrix g = principal_root(real(point));
  const Real whole = procrustes_distance(a, b), there = procrustes_distance(a, g), rest = procrustes_distance(g, b);
  const Real unit = ratio_limit * Real(dim) * eps<double> * std::sqrt(e.kappa * e.size);
  REQUIRE_LE(std::abs(there - Real(t) * whole), unit);
  REQUIRE_LE(std::abs(rest - (1 - Real(t)) * whole), unit);
}

TEST(Geodesic, EndPoints) {
  for (const Index dim : {1, 2, 3, 17}) {
    const Ends e = ends(dim, 3);
    const auto error = [&](double t, const Block<double>& end) {
      return ratio<double>((real(geodesic<double>(e.a.sigma, e.b.sigma, t)) - real(end)).norm(), dim, e.size);
    };
    EXPECT_LT(error(0, e.a.sigma), ratio_limit);
    EXPECT_LT(error(1, e.b.sigma), ratio_limit);
  }
}

// For r = d the step alpha of the solver is the geodesic point at alpha (method.md).
TEST(Geodesic, IsTheFullRankStep) {
  const auto p = make_problem<double>({.dim = 9, .rank = 9, .seed = 4});
  const DenseTarget<double> target(p.sigma);
  const Block<double> from = covariance_from(wide(p.start));
  for (const double alpha : {0.25, 0.9}) {
    const Matrix y = wide(run<double>(target, p.start, 1, StepSize::alpha(alpha)).iterates[1]);
    const RealMatrix point = real(geodesic<double>(from, p.sigma, alpha));
    EXPECT_LT(ratio<double>((real(y) * real(y).transpose() - point).norm(), 9, 100 * point.norm()), ratio_limit);
  }
}

TEST(Geodesic, OfFactors) {
  Draw draw(5);
  for (const auto& [dim, a, b] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {9, 3, 3}, {9, 2, 5}, {9, 5, 2}, {5, 9, 7}}) {
    const Block<double> ta = draw.gaussian(dim, a), tb = draw.gaussian(dim, b);
    const Real whole = procrustes_distance(real(ta), real(tb));
    const Real size = std::sqrt(real(ta).squaredNorm() + real(tb).squaredNorm());
    for (const double t : {0.0, 0.3, 1.0}) {
      const Block<double> point = geodesic_factor(ta, tb, t);
      EXPECT_EQ(point.rows(), dim);
      EXPECT_EQ(point.cols(), std::min(dim, std::max(a, b)));
      EXPECT_LT(ratio<double>(procrustes_distance(real(ta), real(point)) - Real(t) * whole, dim, size), ratio_limit);
      EXPECT_LT(ratio<double>(procrustes_distance(real(point), real(tb)) - (1 - Real(t)) * whole, dim, size),
                ratio_limit);
    }
  }
}

// E||x - Mx||^2 for the optimal map M is W2^2, computed in quite another way.
TEST(Coupling, CostIsTheDistance) {
  for (const Index dim : {1, 2, 3, 17}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Ends e = ends(dim, seed);
      const Real expected = w2_squared(wide(e.a.sigma), wide(e.b.sigma));
      EXPECT_LT(ratio<double>(coupling_cost<double>(e.a.sigma, e.b.sigma) - expected, dim, e.kappa * e.size),
                ratio_limit);
      const double distance = dense_distance_squared<double>(e.a.sigma, e.b.sigma);
      EXPECT_LT(ratio<double>(coupling_cost<double>(e.a.sigma, e.b.sigma) - distance, dim, e.kappa * e.size),
                ratio_limit);
    }
  }
}

TEST(GeodesicMisuse, NamesTheValue) {
  const Block<double> a = Block<double>::Identity(3, 3), b = Block<double>::Identity(4, 4);
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { geodesic<double>(a, b, 0.5); });
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { geodesic_factor(a, b, 0.5); });
  expect_throws_naming<std::invalid_argument>({"1.5", "1"}, [&] { geodesic<double>(a, a, 1.5); });
  expect_throws_naming<std::invalid_argument>({"-0.5", "0"}, [&] { geodesic_factor(a, a, -0.5); });
  expect_throws_naming<std::invalid_argument>({"3", "4"}, [&] { coupling_cost<double>(a, b); });
  // A singular A has no map of its own.
  Block<double> singular = a;
  singular(1, 1) = 0;
  EXPECT_THROW(coupling_cost<double>(singular, a), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::test
