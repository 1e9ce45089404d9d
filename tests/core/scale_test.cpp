// SPDX-License-Identifier: Apache-2.0
//
// Scales: covariances from 1e-150 to 1e150 in float64 and 1e-26 to 1e26 in float32 (Promise 6), and starts of quite
// another size than the target.
#include "runs.hpp"

#include <itspace/distance.hpp>
#include <itspace/start.hpp>
#include <itspace/verify.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_scale(double scale, const StepSize& size) {
  for (const Spectrum spectrum : {Spectrum::power_law, Spectrum::rank_deficient}) {
    for (const auto& [dim, rank] : {Size{1, 1}, Size{2, 1}, Size{3, 3}, Size{17, 5}, Size{17, 17}, Size{300, 16}}) {
      if (dim == 300 && spectrum == Spectrum::rank_deficient) continue;
      const ProblemShape shape{.dim = dim, .rank = rank, .seed = 1, .spectrum = spectrum, .scale = scale};
      SCOPED_TRACE(describe(shape) + " scale=" + std::to_string(std::log10(scale)));
      const auto p = make_problem<Scalar>(shape);
      ASSERT_TRUE(p.sigma.allFinite());
      const DenseTarget<Scalar> target(p.sigma);
      const auto result = run<Scalar>(target, p.start, 3, size);
      EXPECT_EQ(result.status(), Status::step_limit);
      EXPECT_TRUE(result.factor.allFinite());
      const std::vector<Real> f = objectives(p.oracle, result);
      for (std::size_t k = 0; k < f.size(); ++k) {
        const Real unit = eps_units<Scalar>(p.oracle, wide(result.iterates[k]));
        EXPECT_LE(std::abs(result.trace.steps[k].objective - f[k]), descent_limit * unit);
        if (k > 0) {
          EXPECT_TRUE(result.trace.steps[k].certified.value());
        }
      }
      if (size.kind() == StepSize::Kind::fixed) {
        EXPECT_LE(worst_broken_descent(p.oracle, result, size.resolve(3)), descent_limit);
      }
    }
  }
}

TEST(Scale, Double) {
  for (const double scale : {1e-150, 1e-100, 1e-90, 1e-80, 1e80, 1e90, 1e100, 1e150}) {
    check_scale<double>(scale, StepSize::alpha(0.9));
    check_scale<double>(scale, StepSize::line_search());
  }
}

// Where squares are numbers and their squares are not: distances, singular values and the pairs of Ritz steps are those
// of the plain matrices, scaled.
TEST(Scale, WhereSquaresOfSquaresAreNoNumbers) {
  const auto p = make_problem<double>({.dim = 24, .rank = 5, .seed = 1});
  const auto other = make_problem<double>({.dim = 24, .rank = 5, .seed = 2});
  const double unit = p.sigma.trace() + other.sigma.trace();
  const double expected = dense_distance_squared<double>(p.sigma, other.sigma);
  const DenseTarget<double> plain(p.sigma);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const auto run = align_here<double>(plain, p.start, {.steps = 4, .solver = solver});
    for (const int power : {-330, -300, -280, -260, 260, 280, 300, 330}) {
      SCOPED_TRACE(power);
      const auto scaled = [power](const Block<double>& a) { return Block<double>(a * std::ldexp(1.0, power)); };
      const auto back = [power](double value) { return std::ldexp(value, -power); };
      const Block<double> sigma = scaled(p.sigma), start = p.start * std::ldexp(1.0, power / 2);
      for (const Accuracy& accuracy : {default_accuracy, full_accuracy}) {
        const double apart = dense_distance_squared<double>(sigma, scaled(other.sigma), accuracy);
        EXPECT_NEAR(back(apart), expected, 1e-13 * unit);
        EXPECT_NEAR(back(dense_distance_squared<double>(sigma, sigma, accuracy)), 0, 1e-13 * unit);
      }
      const DenseTarget<double> target(sigma);
      const auto result = align_here<double>(target, start, {.steps = 4, .solver = solver});
      ASSERT_EQ(result.trace.steps.size(), run.trace.steps.size());
      for (std::size_t k = 0; k < run.trace.steps.size(); ++k)
        EXPECT_NEAR(back(result.trace.steps[k].objective), run.trace.steps[k].objective, 1e-12 * plain.trace());
    }
  }
}

// Nor do distances take a way on which products vanish.
TEST(Scale, DistancesOfCovariancesWhoseProductsVanish) {
  const auto p = make_problem<double>({.dim = 31, .rank = 5, .seed = 1});
  const auto other = make_problem<double>({.dim = 31, .rank = 5, .seed = 2});
  const double expected = dense_distance_squared<double>(p.sigma, other.sigma, full_accuracy);
  for (const int power : {-500, -532, -560, -700}) {
    const auto scaled = [power](const Block<double>& a) { return Block<double>(a * std::ldexp(1.0, power)); };
    for (const Accuracy& accuracy : {default_accuracy, full_accuracy}) {
      const double apart = dense_distance_squared<double>(scaled(p.sigma), scaled(other.sigma), accuracy);
      EXPECT_NEAR(std::ldexp(apart, -power), expected, 1e-8 * expected) << power;
    }
  }
}

// Past the promised scales a product or its square may overflow: the outcome is then not_finite, or right.
TEST(Scale, BeyondThePromiseItIsRightOrNotFinite) {
  const auto p = make_problem<double>({.dim = 17, .rank = 5, .seed = 1});
  const DenseTarget<double> plain(p.sigma);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const auto expected = align_here<double>(plain, p.start, {.steps = 3, .solver = solver});
    for (const int power : {504, 508, 510, 512, 532, 664, 996}) {
      SCOPED_TRACE(power);
      const Block<double> sigma = p.sigma * std::ldexp(1.0, power), start = p.start * std::ldexp(1.0, power / 2);
      const DenseTarget<double> scaled(sigma);
      const auto result = align_here<double>(scaled, start, {.steps = 3, .solver = solver});
      if (result.status() == Status::not_finite) continue;
      // At the end of the road one of the two may see, by a last bit, that there is nothing left to gain.
      const std::size_t rows = std::min(result.trace.steps.size(), expected.trace.steps.size());
      ASSERT_GE(rows, 2u);
      EXPECT_NEAR(std::ldexp(result.trace.steps.back().objective, -power), expected.trace.steps.back().objective,
                  1e-12 * plain.trace());
      for (std::size_t k = 0; k < rows; ++k)
        EXPECT_NEAR(std::ldexp(result.trace.steps[k].objective, -power), expected.trace.steps[k].objective,
                    1e-12 * plain.trace());
    }
  }
}

TEST(Scale, Float) {
  for (const double scale : {1e-26, 1e-20, 1e20, 1e26}) {
    check_scale<float>(scale, StepSize::alpha(0.9));
    check_scale<float>(scale, StepSize::line_search());
  }
}

// Where the entries of Sigma lose their digits in float32, a run in it says that it does not know its objectives;
// the same data under blocks of double are right.
TEST(Scale, WhatVanishesInFloatIsNotResolved) {
  const Matrix features = Draw(5).gaussian(60, 17);
  const FeaturesTarget<double> plain(block<double>(features));
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const AlignOptions options{.steps = 3, .solver = solver};
    const auto expected = align_here<double>(plain, 4, options);
    for (const int power : {-65, -75, -90, -120}) {
      SCOPED_TRACE(power);
      const Block<float> small = block<float>(std::ldexp(1.0, power) * features);
      const FeaturesTarget<float> single(small);
      const auto lost = align_here<float>(single, 4, options);
      EXPECT_NE(lost.status(), Status::not_a_covariance);
      for (const Step& step : lost.trace.steps) EXPECT_TRUE(unresolved(step)) << step.index;
      EXPECT_TRUE(verify<float>(lost.factor, single, &lost.trace).holds());
      const FeaturesTarget<double, float> mixed(small);
      const auto found = align_here<double>(mixed, 4, options);
      ASSERT_EQ(found.trace.steps.size(), expected.trace.steps.size());
      for (std::size_t k = 0; k < expected.trace.steps.size(); ++k) {
        EXPECT_FALSE(unresolved(found.trace.steps[k]));
        // The data were rounded to float32, and those below its least number lost digits.
        EXPECT_NEAR(std::ldexp(found.trace.steps[k].objective, -2 * power), expected.trace.steps[k].objective,
                    1e-5 * plain.trace());
      }
    }
  }
}

// Sigma times a random block overflows: the run says so, and what it returns are numbers all the same.
TEST(Scale, ARandomStartIsOfNumbersWhereProductsAreNone) {
  const Block<float> features = block<float>(1e30 * Draw(5).gaussian(60, 17));
  const FeaturesTarget<float> target(features);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const auto result = align_here<float>(target, 4, {.steps = 2, .solver = solver});
    EXPECT_EQ(result.status(), Status::not_finite);
    EXPECT_TRUE(result.factor.allFinite());
  }
}

TEST(Scale, Routes) {
  for (const double scale : {1e-150, 1e150}) {
    const auto p = make_problem<double>({.dim = 17, .rank = 5, .seed = 2, .scale = scale});
    const DenseTarget<double> dense(p.sigma);
    const FactorTarget<double> factored(p.factor);
    const RealMatrix expected = p.oracle.certificate_factor(wide(p.start));
    const auto error = [&](TargetRef<double> target, Route route) {
      return ratio<double>((real(certificate_factor<double>(target, p.start, route)) - expected).norm(), 5,
                           expected.norm());
    };
    EXPECT_LT(error(dense, Route::qr), ratio_limit);
    EXPECT_LT(error(dense, Route::root), ratio_limit);
    EXPECT_LT(error(dense, Route::gram), ratio_limit * 1000);  // kappa^2
    EXPECT_LT(error(factored, Route::factor), ratio_limit);
  }
}

// B does not depend on the size of Y, only on its directions.
TEST(Scale, OfTheStartAlone) {
  for (const double size : {1e-60, 1e-8, 1e8, 1e60}) {
    auto p = make_problem<double>({.dim = 17, .rank = 5, .seed = 3});
    p.start *= size;
    const DenseTarget<double> target(p.sigma);
    const RealMatrix expected = p.oracle.certificate_factor(wide(p.start));
    EXPECT_LT(ratio<double>((real(certificate_factor<double>(target, p.start)) - expected).norm(), 5, expected.norm()),
              ratio_limit)
        << size;
  }
}

TEST(Scale, RandomStarts) {
  for (const double scale : {1e-150, 1.0, 1e150}) {
    const auto p = make_problem<double>({.dim = 17, .rank = 5, .seed = 4, .scale = scale});
    const DenseTarget<double> target(p.sigma);
    const auto start = random_start<double>(target, 5, 1);
    EXPECT_LT(ratio<double>(real(start).squaredNorm() - p.oracle.trace(), 5, p.oracle.trace()), ratio_limit);
    AlignOptions options;
    options.steps = 3;
    EXPECT_EQ(align_here<double>(target, 5, options).status(), Status::step_limit);
  }
}

TEST(Scale, Distances) {
  for (const double scale : {1e-150, 1e150}) {
    const auto p = make_problem<double>({.dim = 17, .rank = 17, .seed = 5, .scale = scale});
    const auto q = make_problem<double>({.dim = 17, .rank = 17, .seed = 6, .scale = scale});
    const Real expected = w2_squared(wide(p.sigma), wide(q.sigma));
    const Real size = p.oracle.trace() + q.oracle.trace();
    EXPECT_LT(ratio<double>(dense_distance_squared<double>(p.sigma, q.sigma) - expected, 17, size), ratio_limit);
    EXPECT_LT(ratio<double>(factor_distance_squared(p.factor, q.factor) - expected, 17, size), ratio_limit);
    const DenseTarget<double> target(q.sigma);
    EXPECT_LT(ratio<double>(target_distance_squared<double>(p.factor, target) - expected, 17, size), ratio_limit);
  }
}

}  // namespace
}  // namespace itspace::test
