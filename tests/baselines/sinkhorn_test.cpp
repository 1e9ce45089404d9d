// SPDX-License-Identifier: Apache-2.0
//
// Entropic transport against what is known of it: the plan of the definition, the exact assignment for a small epsilon,
// the mean for a large one, and the closed form between Gaussians.
#include "baselines/sinkhorn.hpp"
#include "expect_throw.hpp"
#include "problems.hpp"

#include <itspace/covariance.hpp>

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace itspace::test {
namespace {

using baselines::Sinkhorn;

Matrix costs(const Matrix& x, const Matrix& y) {
  Matrix c(x.rows(), y.rows());
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < y.rows(); ++j) c(i, j) = (x.row(i) - y.row(j)).squaredNorm();
  return c;
}

// u_i K_ij v_j with rows and columns scaled in turn, in long double, as Sinkhorn and Knopp had it.
RealMatrix scaled_plan(const Matrix& cost, double epsilon, int iterations) {
  const RealMatrix k = (-real(cost) / Real(epsilon)).array().exp();
  const Real n = Real(cost.rows()), m = Real(cost.cols());
  RealVector u = RealVector::Ones(cost.rows()), v = RealVector::Ones(cost.cols());
  for (int i = 0; i < iterations; ++i) {
    u = (k * v).cwiseInverse() / n;
    v = (k.transpose() * u).cwiseInverse() / m;
  }
  return u.asDiagonal() * k * v.asDiagonal();
}

TEST(Sinkhorn, IsTheScalingIteration) {
  Draw draw(1);
  const Matrix x = draw.gaussian(9, 3), y = draw.gaussian(12, 3) * 0.7;
  const Matrix cost = costs(x, y);
  for (const double share : {1.0, 0.1, 0.01}) {
    Sinkhorn transport(block<double>(x), block<double>(y), share);
    EXPECT_NEAR(transport.epsilon(), share * cost.mean(), 1e-13 * cost.mean());
    int made = 0;
    // In portions, so that it goes from logarithms to products and back at several places.
    for (const int times : {1, 2, 7, 40}) {
      transport.iterate(times);
      made += times;
      const RealMatrix expected = scaled_plan(cost, transport.epsilon(), made);
      EXPECT_LT(double((real(transport.plan()) - expected).norm() / expected.norm()), 1e-10) << share << ", " << made;
    }
  }
}

TEST(Sinkhorn, MeetsBothMarginals) {
  Draw draw(2);
  const Matrix x = draw.gaussian(20, 4), y = draw.gaussian(31, 4);
  Sinkhorn transport(block<double>(x), block<double>(y), 0.05);
  EXPECT_GT(transport.marginal_error(), 0.1);
  transport.iterate(2000);
  EXPECT_LT(transport.marginal_error(), 1e-10);
  const Matrix p = transport.plan();
  EXPECT_LT((p.rowwise().sum().array() - 1.0 / 20).abs().maxCoeff(), 1e-11);
  EXPECT_LT((p.colwise().sum().array() - 1.0 / 31).abs().maxCoeff(), 1e-11);
}

TEST(Sinkhorn, ASmallEpsilonIsTheAssignment) {
  const Index n = 6;
  Draw draw(3);
  const Matrix x = draw.gaussian(n, 2), y = draw.gaussian(n, 2);
  const Matrix cost = costs(x, y);
  std::vector<Index> order(n), best;
  std::iota(order.begin(), order.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += cost(i, order[std::size_t(i)]);
    if (sum < least) {
      least = sum;
      best = order;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  // exp(-c/epsilon) underflows to nothing here: plain Sinkhorn divides 0 by 0.
  Sinkhorn transport(block<double>(x), block<double>(y), 5e-4);
  transport.iterate(20000);
  const Matrix p = transport.plan();
  const Matrix moved = wide(transport.barycentric_projection());
  for (Index i = 0; i < n; ++i) {
    EXPECT_NEAR(p(i, best[std::size_t(i)]), 1.0 / double(n), 1e-3);
    EXPECT_LT((moved.row(i) - y.row(best[std::size_t(i)])).norm(), 0.02);
  }
}

TEST(Sinkhorn, ALargeEpsilonMovesEverythingToTheMean) {
  Draw draw(4);
  const Matrix x = draw.gaussian(8, 3), y = draw.gaussian(11, 3).array() + 2;
  Sinkhorn transport(block<double>(x), block<double>(y), 1e6);
  transport.iterate(5);
  const Matrix moved = wide(transport.barycentric_projection());
  for (Index i = 0; i < 8; ++i) EXPECT_LT((moved.row(i) - y.colwise().mean()).norm(), 1e-4);
}

TEST(Sinkhorn, TheProjectionIsTheConditionalMean) {
  Draw draw(5);
  const Matrix x = draw.gaussian(5, 2), y = draw.gaussian(7, 2);
  Sinkhorn transport(block<double>(x), block<double>(y), 0.2);
  transport.iterate(1);  // rows do not sum to 1/n yet: the projection divides by what they have
  const Matrix p = transport.plan(), moved = wide(transport.barycentric_projection());
  for (Index i = 0; i < 5; ++i) EXPECT_LT((moved.row(i) - p.row(i) * y / p.row(i).sum()).norm(), 1e-13);
}

TEST(Sinkhorn, OnePointAndNoSpreadAreNoTrouble) {
  const Matrix one = Matrix::Constant(1, 1, 3.0), same = Matrix::Constant(4, 2, -1.0);
  Sinkhorn single(block<double>(one), block<double>(one), 0.1);
  single.iterate(3);
  EXPECT_NEAR(single.plan()(0, 0), 1, 1e-14);
  Sinkhorn flat(block<double>(same), block<double>(same), 0.1);
  flat.iterate(3);
  EXPECT_LT(flat.marginal_error(), 1e-13);
  EXPECT_LT((wide(flat.barycentric_projection()) - same).norm(), 1e-13);
}

TEST(SinkhornRun, RowsAreCovariancesOfMovedSamples) {
  Draw draw(6);
  const Matrix x = features_with(30, eigenvalues_of(Spectrum::power_law, 5), 2, draw),
               y = features_with(40, eigenvalues_of(Spectrum::graded, 5), -3, draw);
  const auto timed = baselines::sinkhorn(block<double>(x), block<double>(y),
                                         {.rank = 5, .steps = 3, .iterations_per_step = 4, .epsilon = 0.1});
  ASSERT_EQ(timed.result.iterates.size(), 4U);
  EXPECT_EQ(timed.result.trace.steps[0].passes, 0);
  const Matrix centred_x = x.rowwise() - x.colwise().mean(), centred_y = y.rowwise() - y.colwise().mean();
  Sinkhorn transport(block<double>(centred_x), block<double>(centred_y), 0.1);
  Matrix moved = centred_x;
  for (Index k = 0; k <= 3; ++k) {
    if (k > 0) {
      transport.iterate(4);
      moved = wide(transport.barycentric_projection());
    }
    const RealMatrix factor = centred_factor_of(moved);
    const Matrix expected = (factor * factor.transpose()).cast<double>();
    const Matrix got = wide(timed.result.iterates[std::size_t(k)]);
    EXPECT_LT((got * got.transpose() - expected).norm(), 1e-12 * expected.norm()) << "row " << k;
    if (k > 0) {
      EXPECT_GT(timed.result.trace.steps[std::size_t(k)].passes, timed.result.trace.steps[std::size_t(k) - 1].passes);
    }
  }
  // A rank beyond the samples is filled with zeros.
  const auto few = baselines::sinkhorn(block<double>(x.topRows(3)), block<double>(y), {.rank = 4, .steps = 1});
  EXPECT_EQ(few.result.factor.cols(), 4);
  EXPECT_LT(few.result.factor.rightCols(2).norm(), 1e-6 * few.result.factor.norm());
}

TEST(SinkhornRun, StopsWhenAsked) {
  Draw draw(7);
  const Matrix x = draw.gaussian(10, 3);
  const auto timed = baselines::sinkhorn(block<double>(x), block<double>(x),
                                         {.rank = 1, .steps = 5, .on_step = [](const Step& row, const auto&) {
                                            return row.index == 1 ? StepAction::stop : StepAction::proceed;
                                          }});
  EXPECT_EQ(timed.result.iterates.size(), 2U);
  EXPECT_EQ(timed.result.status(), Status::stopped);
}

TEST(EntropicGaussian, OneDimensionByHand) {
  // The precision of the joint Gaussian has -2/epsilon off its diagonal: c/(a b - c^2) = 2/epsilon; the projection
  // x -> (c/a) x leaves c^2/a.
  for (const double epsilon : {0.01, 1.0, 30.0}) {
    const double a = 0.7, b = 2.5;
    const double moved =
        baselines::entropic_gaussian_covariance(Matrix::Constant(1, 1, a), Matrix::Constant(1, 1, b), epsilon)(0, 0);
    const double c = std::sqrt(moved * a);
    EXPECT_NEAR(c / (a * b - c * c) * epsilon / 2, 1, 1e-10);
  }
}

TEST(EntropicGaussian, SatisfiesTheOptimalityConditionInAnyDimension) {
  // The optimal joint covariance [a C; C' b] has the precision block -(2/epsilon) I off its diagonal.
  const Index d = 4;
  Draw draw(8);
  const Matrix a = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::graded, d), draw)),
               b = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::power_law, d), draw));
  const double epsilon = 0.3;
  const Matrix moved = baselines::entropic_gaussian_covariance(a, b, epsilon);
  // x -> C'a^(-1) x is the symmetric positive map from a to the moved covariance, so C follows from it.
  const RealMatrix root = principal_root(real(a)), inverse = root.inverse();
  const RealMatrix map = inverse * principal_root(root * real(moved) * root) * inverse;
  const RealMatrix c = real(a) * map;
  RealMatrix joint(2 * d, 2 * d);
  joint << real(a), c, c.transpose(), real(b);
  const RealMatrix precision = joint.inverse();
  const RealMatrix expected = -RealMatrix::Identity(d, d) * Real(2 / epsilon);
  EXPECT_LT(double((precision.topRightCorner(d, d) - expected).norm() / expected.norm()), 1e-8);
}

TEST(EntropicGaussian, ReachesTheTargetAsEpsilonVanishesAndZeroAsItGrows) {
  Draw draw(9);
  const Matrix a = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::graded, 5), draw)),
               b = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::power_law, 5), draw));
  EXPECT_LT((baselines::entropic_gaussian_covariance(a, b, 0) - b).norm(), 1e-12 * b.norm());
  EXPECT_LT((baselines::entropic_gaussian_covariance(a, b, 1e-6) - b).norm(), 1e-4 * b.norm());
  EXPECT_LT(baselines::entropic_gaussian_covariance(a, b, 1e6).norm(), 1e-4 * b.norm());
  expect_throws_naming<std::invalid_argument>(
      {"eigenvalue", "0"}, [&] { baselines::entropic_gaussian_covariance(Matrix::Zero(5, 5), b, 0.1); });
}

TEST(SinkhornGaussian, TendsToTheClosedForm) {
  for (const Index d : {2, 3}) {
    Draw draw(std::uint64_t(20 + d));
    const Matrix a = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::power_law, d), draw)),
                 b = 2 * covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::power_law, d), draw));
    const double share = 0.3, mean_cost = a.trace() + b.trace();  // E||x - y||^2
    const Matrix expected = baselines::entropic_gaussian_covariance(a, b, share * mean_cost);
    const auto timed =
        baselines::sinkhorn_gaussian(block<double>(a), block<double>(b), 2000, 1,
                                     {.rank = d, .steps = 1, .iterations_per_step = 60, .epsilon = share});
    const Matrix got = wide(timed.result.factor) * wide(timed.result.factor).transpose();
    // A covariance of n samples errs by about sqrt(2/n) = 3 % in each entry; at epsilon = 0 it would be b, 30 % off.
    EXPECT_LT((got - expected).norm(), 0.12 * expected.norm());
    EXPECT_GT((expected - b).norm(), 0.25 * expected.norm());
    const Matrix first = wide(timed.result.iterates[0]);
    EXPECT_LT((first * first.transpose() - a).norm(), 1e-12 * a.norm());
  }
}

TEST(SinkhornGaussian, SingularCovariancesAndSeeds) {
  Draw draw(30);
  const Matrix a = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::rank_deficient, 6), draw)),
               b = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::rank_deficient, 6), draw));
  const auto run = [&](std::uint64_t seed) {
    return baselines::sinkhorn_gaussian(block<double>(a), block<double>(b), 50, seed, {.rank = 2, .steps = 2})
        .result.factor;
  };
  EXPECT_TRUE(run(1).allFinite());
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(SinkhornRun, MisuseIsNamed) {
  const Block<double> two = Block<double>::Random(5, 2), three = Block<double>::Random(5, 3);
  expect_throws_naming<std::invalid_argument>({"5 x 2", "5 x 3"}, [&] { Sinkhorn(two, three, 0.1); });
  expect_throws_naming<std::invalid_argument>({"epsilon is 0"}, [&] { Sinkhorn(two, two, 0); });
  expect_throws_naming<std::invalid_argument>({"rank is 3", "2"}, [&] { baselines::sinkhorn(two, two, {.rank = 3}); });
  expect_throws_naming<std::invalid_argument>(
      {"iterations", "0"}, [&] { baselines::sinkhorn(two, two, {.rank = 1, .iterations_per_step = 0}); });
  Block<double> broken = two;
  broken(3, 1) = std::nan("");
  expect_throws_naming<std::invalid_argument>({"target[3, 1]"}, [&] { baselines::sinkhorn(two, broken, {.rank = 1}); });
  const Block<double> square = Block<double>::Identity(2, 2);
  expect_throws_naming<std::invalid_argument>({"samples is 1"},
                                              [&] { baselines::sinkhorn_gaussian(square, square, 1, 0, {.rank = 1}); });
}

}  // namespace
}  // namespace itspace::test
