// SPDX-License-Identifier: Apache-2.0
//
// The distance by the cheapest route that is accurate enough: whichever it is, the accuracy that was asked for holds.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/distance.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

struct Pair {
  const char* what;
  Matrix factor_a, factor_b;
};

// Well and badly conditioned, singular on one side or both, nearly equal, of other sizes.
std::vector<Pair> pairs(Index dim) {
  Draw draw(std::uint64_t(dim) * 7);
  const auto graded = [&](double least) {
    Vector lambda(dim);
    for (Index i = 0; i < dim; ++i) lambda(i) = std::pow(least, double(i) / std::max<double>(1, double(dim - 1)));
    return factor_with_spectrum(lambda, draw);
  };
  const Matrix base = graded(1e-2);
  Matrix near = base + 1e-7 * draw.gaussian(dim, dim);
  return {{"well conditioned", graded(1e-2), graded(1e-3)},
          {"badly conditioned", graded(1e-12), graded(1e-10)},
          {"one singular", draw.gaussian(dim, (dim + 1) / 2), graded(1e-2)},
          {"the other singular", graded(1e-2), draw.gaussian(dim, (dim + 1) / 2)},
          {"both singular", draw.gaussian(dim, (dim + 2) / 3), draw.gaussian(dim, (dim + 1) / 2)},
          {"nearly equal", base, near},
          {"of other sizes", graded(1e-2), 1e-5 * graded(1e-2)},
          {"tiny", 1e-75 * graded(1e-2), 1e-75 * graded(1e-1)},
          {"huge", 1e70 * graded(1e-2), 1e70 * graded(1e-1)}};
}

// Entries rounded to float are a covariance of their own; in what follows from them double's accuracy is kept. A long
// tail of small eigenvalues, as features have, is where a cut at d float's eps would take real variance away.
TEST(DistanceRoutes, FloatEntriesGiveWhatTheyGiveInDouble) {
  constexpr Index dim = 120;
  Draw draw(5);
  Vector lambda(dim), other(dim);
  for (Index i = 0; i < dim; ++i) {
    // Singular, as covariances of fewer samples than features are: rounding makes them indefinite, so that no Cholesky
    // route serves.
    lambda(i) = i == 0 ? 1 : i < dim / 2 ? 1e-5 : 0;
    other(i) = i == 1 ? 1 : i < dim / 2 ? 2e-5 : 0;
  }
  const Block<float> a = block<float>(covariance_from(factor_with_spectrum(lambda, draw)));
  const Block<float> b = block<float>(covariance_from(factor_with_spectrum(other, draw)));
  const Block<double> wide_a = a.cast<double>(), wide_b = b.cast<double>();
  for (const Accuracy& accuracy : {full_accuracy, default_accuracy}) {
    const double expected = dense_distance_squared<double>(wide_a, wide_b, accuracy);
    EXPECT_NEAR(dense_distance_squared<float>(a, b, accuracy), expected, 1e-12 * expected);
  }
  // A sum of squares of rounding.
  const double rounding = 30 * double(dim) * eps<double>;
  EXPECT_LE(dense_distance_squared<float>(a, a, full_accuracy), rounding * rounding * wide_a.trace());
}

TEST(DistanceRoutes, KeepTheAccuracyAskedFor) {
  for (const Index dim : {1, 2, 3, 17, 40}) {
    for (const Pair& pair : pairs(dim)) {
      SCOPED_TRACE(std::string(pair.what) + " d=" + std::to_string(dim));
      const Block<double> a = block<double>(covariance_from(pair.factor_a));
      const Block<double> b = block<double>(covariance_from(pair.factor_b));
      const Real expected = factor_w2_squared(real(pair.factor_a), real(pair.factor_b));
      const Real variance = real(pair.factor_a).squaredNorm() + real(pair.factor_b).squaredNorm();
      // What the entries of a covariance can show at all: eps ||A|| in an eigenvalue, so its root in W2.
      const Real entries = Real(dim) * eps<double> * variance;
      for (const Accuracy& accuracy : {full_accuracy, default_accuracy, Accuracy{1e-3, 0}}) {
        const double found = dense_distance_squared<double>(a, b, accuracy);
        const Real allowed = std::max<Real>(accuracy.relative * expected, accuracy.of_variance * variance);
        ASSERT_GE(found, 0);
        EXPECT_LE(std::abs(Real(found) - expected), allowed + 30 * entries + 2 * std::sqrt(entries * expected));
        EXPECT_LE(std::abs(Real(dense_distance_squared<double>(b, a, accuracy)) - expected),
                  allowed + 30 * entries + 2 * std::sqrt(entries * expected));
      }
    }
  }
}

// Variances of very different sizes, sqrt(lambda) far below the rounding of the largest: what is exact is kept.
TEST(DistanceRoutes, GradedDiagonalsAreExact) {
  Draw draw(3);
  const auto check = [](const Vector& a, const Vector& b) {
    Real expected = 0;
    for (Index i = 0; i < a.size(); ++i) {
      const Real difference = std::sqrt(Real(a(i))) - std::sqrt(Real(b(i)));
      expected += difference * difference;
    }
    const Block<double> dense_a = Matrix(a.asDiagonal()), dense_b = Matrix(b.asDiagonal());
    const Real rounding = 30 * Real(a.size()) * eps<double> * (real(a).sum() + real(b).sum());
    EXPECT_LE(std::abs(Real(dense_distance_squared<double>(dense_a, dense_b, full_accuracy)) - expected),
              1e-10L * expected + rounding);
    EXPECT_LE(std::abs(Real(dense_distance_squared<double>(dense_a, dense_b)) - expected), 1e-8L * expected + rounding);
    EXPECT_LE(std::abs(Real(dense_distance_squared<double>(dense_a, dense_b, Accuracy{})) - expected),
              1e-10L * expected + rounding);
  };
  check(Eigen::Vector2d(1, 1e-16), Eigen::Vector2d(1, 1));
  check(Eigen::Vector2d(1, 1), Eigen::Vector2d(1, 1e-16));
  check(Eigen::Vector2d(1, 1e-16), Eigen::Vector2d(1e-16, 1));
  check(Eigen::Vector3d(1, 1e-30, 0), Eigen::Vector3d(0, 1, 1));
  for (const Index dim : {1, 2, 5, 30}) {
    for (int trial = 0; trial < 40; ++trial) {
      Vector a(dim), b(dim);
      for (Index i = 0; i < dim; ++i) {
        a(i) = std::pow(10.0, -20 * draw.uniform());
        b(i) = trial % 4 == 0 ? 1 : std::pow(10.0, -20 * draw.uniform());
      }
      check(a, b);
    }
  }
}

// D C D with well-conditioned C: entries of each size are good to eps of their own, so its small variances are known.
TEST(DistanceRoutes, GradedCovariancesKeepTheirSmallVariances) {
  Draw draw(4);
  for (const Index dim : {2, 3, 8, 25}) {
    for (int trial = 0; trial < 25; ++trial) {
      const auto factor = [&](double range) {
        const Matrix core = Matrix::Identity(dim, dim) + 0.3 / std::sqrt(double(dim)) * draw.gaussian(dim, dim);
        Vector scale(dim);
        for (Index i = 0; i < dim; ++i) scale(i) = std::pow(10.0, -range * draw.uniform());
        return Matrix(scale.asDiagonal() * core);
      };
      const Matrix factor_a = factor(10), factor_b = factor(trial % 2 == 0 ? 0 : 10);
      const Block<double> a = block<double>(covariance_from(factor_a)), b = block<double>(covariance_from(factor_b));
      const Real expected = factor_w2_squared(real(factor_a), real(factor_b));
      const Real variance = real(factor_a).squaredNorm() + real(factor_b).squaredNorm();
      const Real allowed = 1e-10L * expected + 100 * Real(dim) * eps<double> * variance;
      for (const auto& [first, second] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
        EXPECT_LE(std::abs(Real(dense_distance_squared<double>(*first, *second, full_accuracy)) - expected), allowed);
        EXPECT_LE(std::abs(Real(dense_distance_squared<double>(*first, *second, Accuracy{})) - expected), allowed);
        EXPECT_LE(std::abs(Real(dense_distance_squared<double>(*first, *second)) - expected),
                  allowed + 1e-8L * expected);
      }
    }
  }
}

// Where the routes can be told apart, a relative accuracy keeps the digits that the trace formula has lost.
TEST(DistanceRoutes, NearlyEqualKeepsItsDigits) {
  const Index dim = 12;
  Draw draw(5);
  const Matrix base = factor_with_spectrum(eigenvalues_of(Spectrum::graded, dim), draw);
  const Matrix near = base + 1e-6 * draw.gaussian(dim, dim);
  const Block<double> a = block<double>(covariance_from(base)), b = block<double>(covariance_from(near));
  const Real expected = procrustes_distance(real(base), real(near));
  for (const Accuracy& accuracy : {default_accuracy, full_accuracy, Accuracy{}}) {
    const Real found = std::sqrt(Real(dense_distance_squared<double>(a, b, accuracy)));
    EXPECT_LT(std::abs(found - expected), 1e-7L * expected);
    EXPECT_LT(dense_distance_squared<double>(a, a, accuracy), 1e-26);
  }
}

// A pair has one distance, whichever door it enters by: not two that agree to rounding.
TEST(DistanceRoutes, EveryDoorGivesTheSameNumber) {
  for (const Index dim : {2, 17, 40}) {
    for (const Pair& pair : pairs(dim)) {
      SCOPED_TRACE(std::string(pair.what) + " d=" + std::to_string(dim));
      const Block<double> a = block<double>(covariance_from(pair.factor_a));
      const Block<double> b = block<double>(covariance_from(pair.factor_b));
      const double found = dense_distance_squared<double>(a, b);
      EXPECT_EQ(dense_distance_squared<double>(a, b, default_accuracy), found);
      EXPECT_EQ(dense_distance<double>(a, b).squared, found);
      EXPECT_EQ(cross_distances_squared<double>({a.data(), 1, dim}, {b.data(), 1, dim})(0, 0), found);
      EXPECT_EQ(paired_distances_squared<double>({a.data(), 1, dim}, {b.data(), 1, dim})(0), found);
      // The expensive way, when it is asked for.
      EXPECT_EQ(dense_distance_squared<double>(a, b, Accuracy{}),
                dense_distance_squared<double>(a, b, Accuracy{std::numeric_limits<double>::min(), 0}));
    }
  }
}

// Triangles that differ by rounding are averaged, so that it does not matter which of them a route reads.
TEST(DistanceRoutes, TheTwoTrianglesCountAlike) {
  const Index dim = 9;
  Draw draw(8);
  const Block<double> a = covariance_from(draw.gaussian(dim, 2 * dim)), b = covariance_from(draw.gaussian(dim, dim));
  Block<double> lopsided = a;
  lopsided(5, 2) += 1e-9;
  const Block<double> other_way = lopsided.transpose();
  for (const Accuracy& accuracy : {default_accuracy, full_accuracy, Accuracy{}})
    EXPECT_EQ(dense_distance_squared<double>(lopsided, b, accuracy),
              dense_distance_squared<double>(other_way, b, accuracy));
}

// What the distance saw: definite only where it is.
TEST(DistanceRoutes, ShowsDefiniteness) {
  const Index dim = 12;
  Draw draw(7);
  const Block<double> definite = covariance_from(draw.gaussian(dim, 3 * dim));
  const Block<double> singular = covariance_from(draw.gaussian(dim, dim / 2));
  for (const Accuracy& accuracy : {default_accuracy, full_accuracy, Accuracy{}}) {
    const DenseDistance both = dense_distance<double>(definite, 2 * definite, accuracy);
    EXPECT_TRUE(both.first_is_definite && both.second_is_definite);
    EXPECT_FALSE(dense_distance<double>(definite, singular, accuracy).second_is_definite);
    EXPECT_FALSE(dense_distance<double>(singular, definite, accuracy).first_is_definite);
  }
  // Negative where the other has next to no variance: L'BL does not show it, and nothing may be claimed.
  Block<double> thin = Block<double>::Identity(dim, dim), negative = Block<double>::Identity(dim, dim);
  thin(dim - 1, dim - 1) = 1e-16;
  negative(dim - 1, dim - 1) = -1e-6;
  EXPECT_FALSE(dense_distance<double>(thin, negative).second_is_definite);
}

TEST(DistanceRoutes, RoundedToFloatIsAccepted) {
  const Index dim = 30;
  Draw draw(9);
  const Block<double> a = block<float>(covariance_from(draw.gaussian(dim, 7))).cast<double>();  // slightly indefinite
  const Block<double> b = block<float>(covariance_from(draw.gaussian(dim, 9))).cast<double>();
  const double found = dense_distance_squared<double>(a, b, default_accuracy);
  EXPECT_NEAR(found / double(w2_squared(wide(a), wide(b))), 1, 1e-2);
}

TEST(DistanceRoutes, Misuse) {
  const Block<double> identity = Block<double>::Identity(3, 3);
  Block<double> indefinite = identity, lopsided = identity, infinite = identity;
  indefinite(2, 2) = -0.5;
  lopsided(0, 1) = 0.5;
  infinite(1, 1) = std::numeric_limits<double>::infinity();
  Block<double> hollow = Block<double>::Zero(3, 3);  // no variance, yet a covariance: pivots alone do not show it
  hollow(0, 1) = hollow(1, 0) = 1;
  for (const Accuracy& accuracy : {full_accuracy, default_accuracy, Accuracy{1e-3, 0}}) {
    const auto between = [&](const Block<double>& a, const Block<double>& b) {
      dense_distance_squared<double>(a, b, accuracy);
    };
    expect_throws_naming<std::invalid_argument>({"indefinite", "-0.5", "ridge"},
                                                [&] { between(indefinite, identity); });
    expect_throws_naming<std::invalid_argument>({"indefinite", "-0.5"}, [&] { between(identity, indefinite); });
    expect_throws_naming<std::invalid_argument>({"indefinite", "-1"}, [&] { between(hollow, identity); });
    expect_throws_naming<std::invalid_argument>({"indefinite", "-1"}, [&] { between(identity, hollow); });
    expect_throws_naming<std::invalid_argument>({"not symmetric", "0.5"}, [&] { between(identity, lopsided); });
    expect_throws_naming<std::invalid_argument>({"[1, 1] is inf"}, [&] { between(infinite, identity); });
    expect_throws_naming<std::invalid_argument>({"3 and 2"}, [&] { between(identity, Block<double>::Identity(2, 2)); });
  }
}

TEST(DistanceRoutes, Stacks) {
  const Index dim = 5, n = 3, m = 4;
  Draw draw(2);
  std::vector<Matrix> covariances;
  Block<double> a(n * dim, dim), b(m * dim, dim);
  for (Index i = 0; i < n; ++i) a.middleRows(i * dim, dim) = covariance_from(draw.gaussian(dim, dim));
  for (Index j = 0; j < m; ++j) b.middleRows(j * dim, dim) = covariance_from(draw.gaussian(dim, 2 + j));
  const auto at = [&](const Block<double>& stack, Index i) { return Matrix(stack.middleRows(i * dim, dim)); };
  int calls = 0;
  const Block<double> cross =
      cross_distances_squared<double>({a.data(), n, dim}, {b.data(), m, dim}, full_accuracy, [&calls] { ++calls; });
  ASSERT_EQ(cross.rows(), n);
  ASSERT_EQ(cross.cols(), m);
  EXPECT_EQ(calls, n * m);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < m; ++j) {
      const double expected = double(w2_squared(at(a, i), at(b, j)));
      EXPECT_NEAR(cross(i, j), expected, 1e-7 * (at(a, i).trace() + at(b, j).trace()));
    }
  const Eigen::VectorXd paired = paired_distances_squared<double>({a.data(), n, dim}, {b.data(), n, dim});
  for (Index i = 0; i < n; ++i) EXPECT_DOUBLE_EQ(paired(i), cross(i, i));
  expect_throws_naming<std::invalid_argument>({"3 and 4"}, [&] {
    paired_distances_squared<double>({a.data(), n, dim}, {b.data(), m, dim});
  });
}

}  // namespace
}  // namespace itspace::test
