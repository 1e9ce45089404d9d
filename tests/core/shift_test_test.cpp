// SPDX-License-Identifier: Apache-2.0
//
// The test of shift: its numbers against the definition, its level where there is no shift (the simulation of
// docs/numerics.md, in small; ITSPACE_SHIFT_DRAWS makes it long), its power where there is one.
#include "expect_throw.hpp"
#include "problems.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/shift_test.hpp>
#include <itspace/shrinkage.hpp>
#include <itspace/targets.hpp>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>

namespace itspace::test {
namespace {

enum class Law { normal, student };

// Rows with covariance of eigenvalues 1/i; of Student's law with 5 degrees of freedom as a whole row, so that its
// features are not independent: the hardest for covariances.
Matrix sample(Index n, Index d, Law law, Draw& draw) {
  Matrix rows = draw.gaussian(n, d) * eigenvalues_of(Spectrum::power_law, d).cwiseSqrt().asDiagonal();
  if (law == Law::student)
    for (Index i = 0; i < n; ++i) rows.row(i) *= std::sqrt(3 / draw.gaussian(5, 1).squaredNorm());
  return rows;
}

TEST(ShiftTest, IsWhatItSays) {
  Draw draw(1);
  const Matrix source = sample(60, 5, Law::normal, draw);
  Matrix target = 2 * sample(40, 5, Law::normal, draw);
  target.array() += 1;
  const ShiftTest found = shift_test<double>(source, target);
  EXPECT_EQ(found.samples_source, 60);
  EXPECT_EQ(found.samples_target, 40);
  EXPECT_EQ(found.dim, 5);
  EXPECT_EQ(found.rank, 5);  // all directions, so that it is W2^2 itself
  EXPECT_NEAR(found.explained, 1, 30 * eps64);
  const Matrix s = covariance<double>(source), t = covariance<double>(target);
  const double wanted = dense_distance_squared<double>(s, t, Accuracy{});
  EXPECT_NEAR(found.covariance.observed, wanted, 1e-6 * wanted);
  const double shift = (mean<double>(source) - mean<double>(target)).squaredNorm();
  EXPECT_NEAR(found.mean.observed, shift, 100 * eps64 * shift);
  const Matrix pooled = (59 * s + 39 * t) / 98;
  const double c = 1.0 / 60 + 1.0 / 40;
  EXPECT_NEAR(found.mean.noise, c * pooled.trace(), 100 * eps64 * pooled.trace());
  const Eigen::VectorXd spectrum = Eigen::SelfAdjointEigenSolver<Matrix>(pooled).eigenvalues();
  // Shrunk by OAS.
  const double rho = oas_shrinkage<double>(DenseTarget<double>(pooled), 98);
  const Eigen::VectorXd shrunk = (1 - rho) * spectrum.array() + rho * spectrum.mean();
  const NoiseMoments noise = covariance_noise(shrunk, c);
  EXPECT_NEAR(found.covariance.noise, noise.mean, 1e3 * eps64 * noise.mean);
  EXPECT_NEAR(found.covariance.noise_deviation, std::sqrt(noise.variance), 1e3 * eps64);
  for (const ShiftOutcome* part : {&found.mean, &found.covariance}) {
    EXPECT_NEAR(part->z, (part->observed - part->noise) / part->noise_deviation, 1e-9 * std::abs(part->z));
    EXPECT_LT(part->p_normal, 1e-6);
    EXPECT_EQ(part->p_permutation, 1.0 / 200);
  }
  // Each direction is what it claims, and the list is sorted.
  ASSERT_FALSE(found.directions.empty());
  double last = 0;
  for (const MovedDirection& moved : found.directions) {
    const Eigen::VectorXd v = moved.direction;
    EXPECT_NEAR(v.norm(), 1, 100 * eps64);
    EXPECT_NEAR(moved.mean_shift, v.dot(Eigen::VectorXd(mean<double>(target) - mean<double>(source))), 1e-12);
    EXPECT_NEAR(moved.deviation_source, std::sqrt(v.dot(s * v)), 1e-12);
    EXPECT_NEAR(moved.deviation_target, std::sqrt(v.dot(t * v)), 1e-12);
    const double variance = v.dot(pooled * v);
    EXPECT_NEAR(moved.mean_z, moved.mean_shift / std::sqrt(c * variance), 1e-9 * (1 + std::abs(moved.mean_z)));
    EXPECT_NEAR(moved.deviation_z, (v.dot(t * v) - v.dot(s * v)) / (variance * std::sqrt(2 * c)),
                1e-9 * (1 + std::abs(moved.deviation_z)));
    const double p = std::min(moved.mean_p, moved.deviation_p);
    EXPECT_LE(p, 0.025);
    EXPECT_GE(p, last);
    last = p;
  }
}

// The gamma tail: of shape 1 it is exp(-x), and the normal p is monotone in the statistic.
TEST(ShiftTest, NormalTheoryIsAProbability) {
  Draw draw(2);
  const Matrix source = sample(80, 6, Law::normal, draw), target = sample(80, 6, Law::normal, draw);
  double last = 2;
  for (const double shift : {0.0, 0.1, 0.2, 0.4, 0.8, 1.6}) {
    Matrix moved = target;
    moved.rowwise() += mean<double>(source).transpose() - mean<double>(target).transpose();
    moved.array() += shift;
    const double p = shift_test<double>(source, moved, {.permutations = 0}).mean.p_normal;
    EXPECT_GE(p, 0);
    EXPECT_LE(p, 1);
    EXPECT_LT(p, last);
    last = p;
  }
  const ShiftTest theory = shift_test<double>(source, target, {.permutations = 0});
  EXPECT_TRUE(std::isnan(theory.mean.p_permutation));
}

// A shift of the mean is not one of the covariance, and the other way round.
TEST(ShiftTest, TellsMeansFromCovariances) {
  for (const auto& [d, n] : {std::pair<Index, Index>{8, 120}, {150, 60}}) {
    Draw draw(3);
    const Matrix source = sample(n, d, Law::normal, draw), same = sample(n, d, Law::normal, draw);
    Matrix shifted = same;
    shifted.rowwise() += Eigen::RowVectorXd::Constant(d, 1.0);
    const ShiftTest plain = shift_test<double>(source, same), by_mean = shift_test<double>(source, shifted);
    EXPECT_EQ(by_mean.mean.p_permutation, 1.0 / 200) << d;
    EXPECT_GT(by_mean.covariance.p_permutation, 0.05) << d;
    EXPECT_GT(plain.mean.p_permutation, 0.05) << d;
    const Matrix centred = same.rowwise() - same.colwise().mean();
    const Matrix wider = 1.5 * centred;
    const ShiftTest by_spread = shift_test<double>(source.rowwise() - source.colwise().mean(), wider);
    EXPECT_EQ(by_spread.covariance.p_permutation, 1.0 / 200) << d;
    EXPECT_EQ(by_spread.mean.p_permutation, 1) << d;  // both are 0
  }
}

// The direction that moved is found, and it alone.
TEST(ShiftTest, NamesTheDirection) {
  Draw draw(4);
  const Index d = 30;
  const Matrix source = sample(200, d, Law::normal, draw);
  Matrix target = sample(200, d, Law::normal, draw);
  target.col(1) *= 4;
  const ShiftTest found = shift_test<double>(source, target, {.rank = 10});
  ASSERT_FALSE(found.directions.empty());
  EXPECT_GT(std::abs(found.directions[0].direction(1)), 0.95);
  EXPECT_NEAR(found.directions[0].deviation_target / found.directions[0].deviation_source, 4, 1);
  EXPECT_GT(found.directions[0].deviation_z, 5);
  EXPECT_LT(found.rank, d);
  EXPECT_LT(found.explained, 1);
}

TEST(ShiftTest, FollowsItsSeedAndItsUnits) {
  Draw draw(5);
  const Matrix source = sample(30, 6, Law::student, draw), target = sample(25, 6, Law::student, draw);
  const auto p = [&](const ShiftTestOptions& options, double scale = 1) {
    const ShiftTest found = shift_test<double>(Matrix(scale * source), Matrix(scale * target), options);
    return std::pair{found.mean.p_permutation, found.covariance.p_permutation};
  };
  EXPECT_EQ(p({.seed = 3}), p({.seed = 3}));
  EXPECT_EQ(p({.seed = 3}), p({.seed = 3}, 1024));
  EXPECT_NE(p({.permutations = 999, .seed = 3}), p({.permutations = 999, .seed = 4}));
  const Block<float> a = source.cast<float>(), b = target.cast<float>();
  EXPECT_NEAR(shift_test<float>(a, b).covariance.observed, shift_test<double>(source, target).covariance.observed,
              1e-4 * shift_test<double>(source, target).covariance.observed);
}

// Constant samples, and constant features.
TEST(ShiftTest, OfConstants) {
  const Matrix one = Matrix::Ones(5, 3), two = Matrix::Constant(4, 3, 2.0);
  const ShiftTest same = shift_test<double>(one, Matrix(Matrix::Ones(4, 3)));
  EXPECT_EQ(same.mean.p_permutation, 1);
  EXPECT_EQ(same.covariance.observed, 0);
  EXPECT_TRUE(same.directions.empty());
  EXPECT_EQ(same.mean.p_normal, 1);
  EXPECT_LT(shift_test<double>(one, two).mean.p_permutation, 0.05);
  EXPECT_LE(shift_test<double>(one, two).covariance.observed, 100 * eps64 * eps64);
  Draw draw(6);
  Matrix a = sample(20, 4, Law::normal, draw), b = sample(20, 4, Law::normal, draw);
  a.col(2).setConstant(3);
  b.col(2).setConstant(3);
  EXPECT_EQ(shift_test<double>(a, b).rank, 3);
}

TEST(ShiftTest, RefusesWhatItCannotTest) {
  Draw draw(7);
  const Matrix good = draw.gaussian(10, 3), wide = draw.gaussian(10, 4), few = draw.gaussian(2, 3);
  expect_misuse({"3 columns", "target 4"}, [&] { shift_test<double>(good, wide); });
  expect_misuse({"target has 2 row", "at least 3"}, [&] { shift_test<double>(good, few); });
  Matrix poisoned = good;
  poisoned(4, 1) = std::nan("");
  expect_misuse({"source[4, 1] is nan"}, [&] { shift_test<double>(poisoned, good); });
  expect_misuse({"rank is 0"}, [&] { shift_test<double>(good, good, {.rank = 0}); });
  expect_misuse({"permutations is -1"}, [&] { shift_test<double>(good, good, {.permutations = -1}); });
  expect_misuse({"level is 1"}, [&] { shift_test<double>(good, good, {.level = 1}); });
}

// Means that did not move are exchangeable, so that the list's level is exact. In units of the variances within the
// sets, which are small just where the sets happen to differ, it was 13 % here.
TEST(ShiftTest, TheListOfMeansHasItsLevelWithFewSamples) {
  constexpr int draws = 300;
  Draw draw(77);
  int listed = 0;
  for (int k = 0; k < draws; ++k) {
    const Matrix source = sample(8, 40, Law::normal, draw), target = sample(8, 40, Law::normal, draw);
    const ShiftTest found = shift_test<double>(source, target, {.permutations = 39, .seed = std::uint64_t(k)});
    listed += std::any_of(found.directions.begin(), found.directions.end(),
                          [](const MovedDirection& moved) { return moved.mean_p <= 0.025; });
  }
  EXPECT_LT(double(listed) / draws, 0.025 + 4 * std::sqrt(0.025 * 0.975 / draws));
}

struct Level {
  Law law;
  Index d, n1, n2;

  std::string name() const { return (law == Law::normal ? "normal_" : "student_") + std::to_string(d); }
  friend void PrintTo(const Level& level, std::ostream* out) { *out << level.name(); }
};

class ShiftLevel : public testing::TestWithParam<Level> {};

// Where there is no shift, 5 % of tests say there is one. The limits are four standard errors around 3 to 8 %.
TEST_P(ShiftLevel, IsKept) {
  const char* asked = std::getenv("ITSPACE_SHIFT_DRAWS");
  const int draws = asked != nullptr ? std::atoi(asked) : 40;
  const Index permutations = asked != nullptr ? 199 : 39;
  const auto [law, d, n1, n2] = GetParam();
  Draw draw(1000);
  int mean = 0, covariance = 0, mean_theory = 0, covariance_theory = 0, listed = 0, by_mean = 0, by_deviation = 0;
  for (int k = 0; k < draws; ++k) {
    const Matrix source = sample(n1, d, law, draw), target = sample(n2, d, law, draw);
    const ShiftTest found =
        shift_test<double>(source, target, {.permutations = permutations, .seed = 1000 + std::uint64_t(k)});
    mean += found.mean.p_permutation <= 0.05;
    covariance += found.covariance.p_permutation <= 0.05;
    mean_theory += found.mean.p_normal <= 0.05;
    covariance_theory += found.covariance.p_normal <= 0.05;
    listed += !found.directions.empty();
    const auto any = [&](double MovedDirection::*p) {
      return std::any_of(found.directions.begin(), found.directions.end(),
                         [p](const MovedDirection& moved) { return moved.*p <= 0.025; });
    };
    by_mean += any(&MovedDirection::mean_p);
    by_deviation += any(&MovedDirection::deviation_p);
  }
  const double error = std::sqrt(0.05 * 0.95 / draws);
  const auto share = [&](int count) { return double(count) / draws; };
  for (const double level : {share(mean), share(covariance)}) {
    EXPECT_GT(level, 0.03 - 4 * error);
    EXPECT_LT(level, 0.08 + 4 * error);
  }
  if (asked == nullptr) return;
  std::cout << "| " << (law == Law::normal ? "normal" : "t(5)") << " | " << d << " | " << n1 << ", " << n2 << std::fixed
            << std::setprecision(1);
  for (const int count : {mean, covariance, listed, by_mean, by_deviation, mean_theory, covariance_theory})
    std::cout << " | " << 100 * share(count);
  std::cout << " |" << std::endl;
}

constexpr Level levels[] = {
    {Law::normal, 10, 100, 60},  {Law::normal, 30, 25, 90},  {Law::normal, 100, 40, 60},  {Law::normal, 200, 30, 30},
    {Law::student, 10, 100, 60}, {Law::student, 30, 25, 90}, {Law::student, 100, 40, 60}, {Law::student, 200, 30, 30},
};
INSTANTIATE_TEST_SUITE_P(NoShift, ShiftLevel, testing::ValuesIn(levels),
                         [](const testing::TestParamInfo<Level>& row) { return row.param.name(); });

}  // namespace
}  // namespace itspace::test
