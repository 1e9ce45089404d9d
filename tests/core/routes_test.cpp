// SPDX-License-Identifier: Apache-2.0
//
// Five routes to one certificate: qr, gram, factor, root and their automatic choice agree with the oracle's B within
// the bounds of Promise 1 (30 r eps; times kappa^2 on the gram route), for every kind of target.
#include "runs.hpp"

#include <itspace/covariance.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

Real condition(const RealMatrix& a) {
  const RealVector s = singular_values(a);
  return s(0) / s(s.size() - 1);
}

template <Storage Scalar>
void check_route(TargetRef<Scalar> target, const Oracle& oracle, const Block<Scalar>& y, Route route) {
  const RealMatrix expected = oracle.certificate_factor(wide(y));
  const Real error = (real(certificate_factor<Scalar>(target, y, route)) - expected).norm();
  // What Promise 1 allows beyond 30 r eps: kappa^2 where G is formed, sqrt(kappa(Sigma)) where its root is.
  Real kappa = 1, allowed = 1;
  if (route == Route::gram) {
    kappa = condition(principal_root(oracle.covariance()) * real(y));
    allowed = kappa * kappa;
  }
  if (route == Route::root && oracle.dim() <= 64) allowed = condition(principal_root(oracle.covariance()));
  const Real scaled = ratio<Scalar>(error, y.cols(), allowed * expected.norm());
  if (!(scaled < ratio_limit)) {
    violated(std::string(name(route)) + ": ratio " + std::to_string(double(scaled)) + " of 30", __FILE__, __LINE__);
  }

  AlignOptions options;
  options.steps = 0;
  options.route = route;
  const auto result = align_here<Scalar>(target, y, options);
  REQUIRE_LE(std::abs(result.trace.steps[0].objective - oracle.objective(wide(y))),
             descent_limit * kappa * eps_units<Scalar>(oracle, wide(y)));
  if (route != Route::automatic) {
    REQUIRE_TRUE(result.trace.route == route);
    REQUIRE_TRUE(result.trace.steps[0].route == route);
  }
}

template <Storage Scalar>
void check_dense(const ProblemShape& shape) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::root}) {
    check_route<Scalar>(target, p.oracle, p.start, route);
  }
}

RC_GTEST_PROP(Routes, DenseFloat, ()) {
  check_dense<float>(draw_shape(17, full_rank()));
}

RC_GTEST_PROP(Routes, DenseDouble, ()) {
  check_dense<double>(draw_shape(17, full_rank()));
}

TEST(Routes, EverySize) {
  for (const auto [dim, rank] : small_sizes()) {
    const ProblemShape shape{.dim = dim, .rank = rank, .seed = 9};
    SCOPED_TRACE(describe(shape));
    check_dense<float>(shape);
    check_dense<double>(shape);
  }
}

// An explicit factor of full rank, wider than d.
template <Storage Scalar>
void check_factored(const ProblemShape& shape) {
  Draw draw(shape.seed);
  const auto p = make_problem<Scalar>(shape);
  const Index cols = shape.dim + 3;
  const Block<Scalar> factor = block<Scalar>(wide(p.factor) * draw.orthonormal(cols, cols).topRows(p.factor.cols()));
  const Oracle oracle = Oracle::of_factor(wide(factor));
  const FactorTarget<Scalar> target(factor);
  for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::factor}) {
    check_route<Scalar>(target, oracle, p.start, route);
  }
}

RC_GTEST_PROP(Routes, FactorFloat, ()) {
  check_factored<float>(draw_shape(17, full_rank()));
}

RC_GTEST_PROP(Routes, FactorDouble, ()) {
  check_factored<double>(draw_shape(17, full_rank()));
}

// Features with a large mean, more and fewer than dimensions (r < n - 1 keeps the certificate unique).
template <Storage Scalar>
void check_features(Index samples, Index dim, Index rank, double mean_size, std::uint64_t seed) {
  Draw draw(seed);
  const Vector lambda = eigenvalues_of(Spectrum::power_law, dim);
  const Block<Scalar> features = block<Scalar>(features_with(samples, lambda, mean_size, draw));
  const Block<Scalar> start = block<Scalar>(factor_with_condition(dim, rank, 10, 1, draw));
  const Oracle oracle = Oracle::of_factor(centred_factor_of(wide(features)));
  const FeaturesTarget<Scalar> target(features);
  for (const Route route : {Route::automatic, Route::qr, Route::factor}) {
    check_route<Scalar>(target, oracle, start, route);
  }
}

TEST(Routes, Features) {
  for (const double mean_size : {0.0, 30.0}) {
    for (const auto& [samples, dim, rank] :
         {std::tuple<Index, Index, Index>{40, 9, 4}, {12, 30, 5}, {50, 1, 1}, {60, 17, 8}}) {
      SCOPED_TRACE(std::to_string(samples) + "x" + std::to_string(dim) + " r=" + std::to_string(rank) + " mean " +
                   std::to_string(mean_size));
      check_features<float>(samples, dim, rank, mean_size, 1);
      check_features<double>(samples, dim, rank, mean_size, 1);
    }
  }
}

TEST(Routes, LargeDimension) {
  const auto p = make_problem<double>({.dim = 300, .rank = 16, .seed = 1});
  const DenseTarget<double> target(p.sigma);
  for (const Route route : {Route::automatic, Route::qr, Route::root}) {
    check_route<double>(target, p.oracle, p.start, route);
  }
  const auto q = make_problem<float>({.dim = 300, .rank = 16, .seed = 1});
  const DenseTarget<float> single(q.sigma);
  check_route<float>(single, q.oracle, q.start, Route::automatic);
}

// Whole runs on different routes are one trajectory: the same objectives and the same X_k.
TEST(Routes, TrajectoriesCoincide) {
  const auto p = make_problem<double>({.dim = 17, .rank = 5, .seed = 2});
  const DenseTarget<double> target(p.sigma);
  AlignOptions options;
  options.route = Route::root;
  const auto reference = run<double>(target, p.start, 5, StepSize::alpha(0.9), options);
  for (const Route route : {Route::automatic, Route::qr, Route::gram}) {
    options.route = route;
    const auto result = run<double>(target, p.start, 5, StepSize::alpha(0.9), options);
    for (std::size_t k = 0; k < 6; ++k) {
      const Real unit = eps_units<double>(p.oracle, wide(reference.iterates[k]));
      EXPECT_LE(std::abs(result.trace.steps[k].objective - reference.trace.steps[k].objective),
                2 * descent_limit * unit);
      const RealMatrix x = real(reference.iterates[k]) * real(reference.iterates[k]).transpose();
      const RealMatrix other = real(result.iterates[k]) * real(result.iterates[k]).transpose();
      EXPECT_LT(ratio<double>((x - other).norm(), 5, 10 * x.norm()), ratio_limit);
    }
  }
}

}  // namespace
}  // namespace itspace::test
