// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision: a target with float32 data and double blocks is the double target on the same values, to a few
// roundings of double, whatever the sizes, weights and means; and so is everything that is computed through it.
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();

// Coordinates of very different scales around means of their own, as raw features are.
Block<float> raw_features(Index samples, Index dim, Draw& draw) {
  Matrix z = draw.gaussian(samples, dim);
  for (Index j = 0; j < dim; ++j) {
    const double scale = std::pow(10, 8 * draw.uniform() - 4);
    z.col(j) = (scale * (z.col(j).array() + 10 * draw.normal())).matrix();
  }
  return block<float>(z);
}

// Products and traces agree in units of `unit` (a bound on what the terms of a sum add up to) times eps64.
void require_same(const TargetArgument<double>& given, const TargetArgument<double>& wide_given, double unit,
                  Index cols, Draw& draw) {
  const TargetRef<double> mixed = given, wide_target = wide_given;
  const Index d = mixed.dim();
  REQUIRE_EQ(d, wide_target.dim());
  const Block<double> y = draw.gaussian(d, cols);
  Block<double> a(d, cols), b(d, cols);
  mixed.apply(y, a);
  wide_target.apply(y, b);
  const double limit = 30 * eps64 * unit;
  REQUIRE_LE((a - b).norm(), limit * y.norm());
  REQUIRE_LE(std::abs(mixed.trace() - wide_target.trace()), limit);
  REQUIRE_EQ(mixed.factor_cols(), wide_target.factor_cols());
  if (!mixed.has_factor()) return;
  const Index n = mixed.factor_cols();
  const Block<double> p = draw.gaussian(n, cols);
  Block<double> ty(n, cols), ty_wide(n, cols);
  mixed.apply_factor_transposed(y, ty);
  wide_target.apply_factor_transposed(y, ty_wide);
  REQUIRE_LE((ty - ty_wide).norm(), 30 * eps64 * std::sqrt(unit) * y.norm());
  mixed.apply_factor(p, a);
  wide_target.apply_factor(p, b);
  REQUIRE_LE((a - b).norm(), 30 * eps64 * std::sqrt(unit) * p.norm());
}

struct Shape {
  Index rows, dim, cols;
};
Shape draw_sizes() {
  // Beyond 256 rows and 64 columns products take other ways through BLAS.
  return {*rc::gen::inRange<Index>(2, 700).as("rows"), *rc::gen::inRange<Index>(1, 400).as("dim"),
          *rc::gen::elementOf(std::vector<Index>{1, 5, 16, 70}).as("cols")};
}

RC_GTEST_PROP(Mixed, FeaturesAreTheDoubleTarget, ()) {
  const Shape shape = draw_sizes();
  Draw draw(*rc::gen::inRange<std::uint64_t>(0, 1 << 20).as("seed"));
  const bool weighted = *rc::gen::arbitrary<bool>().as("weighted");
  const Block<float> z = raw_features(shape.rows, shape.dim, draw);
  const Block<double> z_wide = z.cast<double>();
  const Vector weights = weighted ? Vector(Vector::LinSpaced(shape.rows, 0.25, 2)) : Vector();
  const FeaturesTarget<double, float> mixed(z, weights);
  const FeaturesTarget<double> wide_target(z_wide, weights);
  REQUIRE_LE((mixed.mean() - wide_target.mean()).norm(), eps64 * mixed.mean().norm());
  // The rows are centred to eps64 of their mean.
  const double rows = static_cast<double>(std::max(shape.rows, shape.dim));
  const double unit = rows * (wide_target.trace() + mixed.mean().squaredNorm());
  require_same(mixed, wide_target, unit, shape.cols, draw);
}

RC_GTEST_PROP(Mixed, OtherTargetsAreTheDoubleTargets, ()) {
  const Shape shape = draw_sizes();
  Draw draw(*rc::gen::inRange<std::uint64_t>(0, 1 << 20).as("seed"));
  const Block<float> t = raw_features(shape.dim, shape.rows, draw);
  const Block<double> t_wide = t.cast<double>();
  const double unit = static_cast<double>(std::max(shape.rows, shape.dim)) * t_wide.squaredNorm();
  require_same(FactorTarget<double, float>(t), FactorTarget<double>(t_wide), unit, shape.cols, draw);

  const Block<float> sigma = block<float>(covariance_from(t_wide));
  const Block<double> sigma_wide = sigma.cast<double>();
  require_same(DenseTarget<double, float>(sigma), DenseTarget<double>(sigma_wide), unit, shape.cols, draw);

  const Vector lambda = Vector::LinSpaced(t.cols(), 1, 0), diagonal = Vector::LinSpaced(t.rows(), 0, 2);
  require_same(LowRankDiagonalTarget<double, float>(t, lambda, diagonal),
               LowRankDiagonalTarget<double>(t_wide, lambda, diagonal), unit + 2 * double(t.rows()), shape.cols, draw);
}

TEST(Mixed, StartsAreThoseOfDouble) {
  Draw draw(7);
  for (const Index samples : {40, 200}) {
    const Block<float> z = raw_features(samples, 60, draw);
    const Block<double> z_wide = z.cast<double>();
    const auto same = [](const Block<double>& a, const Block<double>& b) {
      EXPECT_LE((a * a.transpose() - b * b.transpose()).norm(), 1e-12 * b.squaredNorm());
    };
    same(start_from_features<double, float>(z, 5), start_from_features<double>(z_wide, 5));
    const Block<float> sigma = covariance<float>(z);
    same(start_from_covariance<double, float>(sigma, 5), start_from_covariance<double>(sigma.cast<double>(), 5));
    same(truncate_factor<double, float>(z, 5), truncate_factor<double>(z_wide, 5));
  }
}

// A whole run, every solver: the objectives of the double run, although float32 cannot tell them from noise here.
TEST(Mixed, RunsAreThoseOfDouble) {
  Draw draw(8);
  const Block<float> from = raw_features(300, 50, draw);
  Block<float> to = from.topRows(200);
  to += 0.1F * from.bottomRows(200);
  const Block<double> to_wide = to.cast<double>();
  const FeaturesTarget<double, float> mixed(to);
  const FeaturesTarget<double> wide_target(to_wide);
  const Block<double> start = start_from_features<double, float>(from, 8);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const auto a = align<double>(mixed, start, {.steps = 5, .solver = solver});
    const auto b = align<double>(wide_target, start, {.steps = 5, .solver = solver});
    ASSERT_EQ(a.trace.steps.size(), b.trace.steps.size());
    for (std::size_t k = 0; k < a.trace.steps.size(); ++k)
      EXPECT_NEAR(a.trace.steps[k].objective, b.trace.steps[k].objective,
                  1e-9 * b.trace.steps[k].objective + b.trace.steps[k].resolution)
          << k;
  }
}

}  // namespace
}  // namespace itspace::test
