// SPDX-License-Identifier: Apache-2.0
//
// The gradients of F against central differences of its definition in long double, and where F has a kink.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/gradient.hpp>
#include <itspace/targets.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

// F from its definition, of a factor and features.
Real objective_of(const Matrix& y, const Matrix& features, const Vector& weights) {
  return factor_w2_squared(real(y), centred_factor_of(features, weights));
}

// d f/d m_ij by central differences.
template <class Function>
Matrix differences(Matrix m, const Function& f, double h) {
  Matrix out(m.rows(), m.cols());
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) {
      const double at = m(i, j), up = at + h, down = at - h;
      m(i, j) = up;
      const Real above = f(m);
      m(i, j) = down;
      const Real below = f(m);
      m(i, j) = at;
      out(i, j) = double((above - below) / Real(up - down));
    }
  return out;
}

struct GradientCase {
  Index samples, dim, rank;
  bool weighted;
};

TEST(Gradient, OfFeaturesIsThatOfTheDefinition) {
  for (const GradientCase& c : {GradientCase{9, 4, 2, false}, GradientCase{12, 3, 3, true},
                                GradientCase{5, 8, 3, false}, GradientCase{6, 7, 1, true}}) {
    SCOPED_TRACE("n=" + std::to_string(c.samples) + " d=" + std::to_string(c.dim));
    Draw draw(std::uint64_t(c.samples * 31 + c.dim));
    const Matrix features = features_with(c.samples, eigenvalues_of(Spectrum::graded, c.dim), 3, draw);
    const Matrix y = draw.gaussian(c.dim, c.rank);
    Vector weights;
    if (c.weighted) {
      weights.resize(c.samples);
      for (Index i = 0; i < c.samples; ++i) weights(i) = 0.2 + draw.uniform();
      weights(0) = 0;
    }
    const auto found = objective_and_features_gradient<double>(block<double>(y), block<double>(features), weights);
    const Matrix by_y = differences(
        y, [&](const Matrix& m) { return objective_of(m, features, weights); }, 1e-5);
    const Matrix by_x = differences(
        features, [&](const Matrix& m) { return objective_of(y, m, weights); }, 1e-5);
    EXPECT_LT((wide(found.gradient) - by_y).norm(), 1e-7 * (1 + by_y.norm()));
    EXPECT_LT((wide(found.features_gradient) - by_x).norm(), 1e-7 * (1 + by_x.norm()));
    const Real value = objective_of(y, features, weights);
    EXPECT_LT(ratio<double>(Real(found.objective) - value, c.dim, value + real(y).squaredNorm()), ratio_limit);
    // float32 storage: the same numbers to its precision.
    const auto single = objective_and_features_gradient<float>(block<float>(y), block<float>(features), weights);
    EXPECT_LT((wide(single.features_gradient) - by_x).norm(), 1e-4 * (1 + by_x.norm()));
    EXPECT_LT((wide(single.gradient) - by_y).norm(), 1e-4 * (1 + by_y.norm()));
  }
}

TEST(Gradient, OfATargetIsTwiceYMinusB) {
  for (const Size& size : small_sizes()) {
    const auto p = make_problem<double>({.dim = size.dim, .rank = size.rank, .seed = 5});
    const DenseTarget<double> target(p.sigma);
    const auto found = objective_and_gradient<double>(p.start, target);
    const RealMatrix expected = 2 * (real(wide(p.start)) - p.oracle.certificate_factor(wide(p.start)));
    EXPECT_LT(ratio<double>((real(wide(found.gradient)) - expected).norm(), size.rank,
                            expected.norm() + real(wide(p.start)).norm()),
              1e3L);
    EXPECT_LT(std::abs(Real(found.objective) - p.oracle.objective(wide(p.start))),
              descent_limit * eps_units<double>(p.oracle, wide(p.start)));
  }
}

// Sigma of rank one, and Y with a direction that Sigma does not see: F = (y_1 - 2)^2 + |rest|^2 around it.
TEST(Gradient, IsFiniteWhereSigmaIsSingular) {
  Block<double> features(3, 3);
  features << 2, 0, 0, -2, 0, 0, 0, 0, 0;  // covariance diag(4, 0, 0)
  Block<double> y(3, 2);
  y << 1, 0, 0, 1, 0, 0;
  const auto found = objective_and_features_gradient<double>(y, features);
  Block<double> expected(3, 2);
  expected << -2, 0, 0, 2, 0, 0;
  EXPECT_LT((found.gradient - expected).norm(), 1e-14);
  EXPECT_TRUE(found.features_gradient.allFinite());
  EXPECT_NEAR(found.objective, 2, 1e-14);
  // From products alone: a direction that Sigma does not see has no part in B, even where Sigma has more to offer.
  Block<double> sigma = Block<double>::Zero(3, 3), blind(3, 2);
  sigma(0, 0) = 4;
  sigma(1, 1) = 9;
  blind << 1, 0, 0, 0, 0, 1;
  expected << -2, 0, 0, 0, 0, 2;
  const auto from_products = objective_and_gradient<double>(blind, DenseTarget<double>(sigma));
  EXPECT_LT((from_products.gradient - expected).norm(), 1e-14);
  EXPECT_NEAR(from_products.objective, 11, 1e-13);
  // Nothing at all: the gradient of tr Sigma.
  const auto zero = objective_and_features_gradient<double>(Block<double>::Zero(3, 2), features);
  EXPECT_LT((zero.features_gradient - features).norm(), 1e-14);
  EXPECT_EQ(zero.gradient.norm(), 0);
}

TEST(Gradient, MisuseNamesTheSizes) {
  const Block<double> features = Block<double>::Random(5, 4);
  expect_throws_naming<std::invalid_argument>(
      {"3 rows", "4"}, [&] { objective_and_features_gradient<double>(Block<double>::Ones(3, 1), features); });
  expect_throws_naming<std::invalid_argument>(
      {"no columns"}, [&] { objective_and_features_gradient<double>(Block<double>(4, 0), features); });
  Block<double> bad = features;
  bad(1, 1) = std::nan("");
  expect_throws_naming<std::invalid_argument>(
      {"features[1, 1] is nan"}, [&] { objective_and_features_gradient<double>(Block<double>::Ones(4, 1), bad); });
}

}  // namespace
}  // namespace itspace::test
