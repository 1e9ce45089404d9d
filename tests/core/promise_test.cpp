// SPDX-License-Identifier: Apache-2.0
//
// "Certified: no farther from the target than the one before", where that is hard: directions at the edge of rounding,
// starts of another size than the target, targets that are none. The campaign (tests/campaign) sweeps the
// neighbourhood of each.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/itspace.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

// Every certified row is no farther from the target than the one before, by the definition, beyond rounding.
template <Storage Scalar>
void expect_no_rise(const Oracle& oracle, const Result<Scalar>& result, Real units = 30) {
  const std::vector<Real> f = objectives(oracle, result);
  for (std::size_t k = 1; k < f.size(); ++k) {
    const Matrix before = wide(result.iterates[k - 1]), after = wide(result.iterates[k]);
    const Real unit = eps<Scalar> * (oracle.trace() + real(before).squaredNorm() + real(after).squaredNorm());
    if (result.trace.steps[k].certified.value_or(false)) {
      EXPECT_LE(f[k] - f[k - 1], units * unit) << "row " << k;
    }
  }
}

void expect_honest(const Result<double>& result) {
  EXPECT_FALSE(failed(result.status())) << name(result.status()) << " " << result.trace.reason;
  EXPECT_TRUE(result.trace.certified());
}

TEST(Promise, AStartWithMoreColumnsThanRowsIsRefused) {
  const Block<double> sigma = Block<double>::Identity(3, 3), start = Block<double>::Ones(3, 5);
  const DenseTarget<double> target(sigma);
  expect_throws_naming<std::invalid_argument>({"5 columns", "d = 3"}, [&] { align_here<double>(target, start); });
}

// Completion fills directions at rounding level: its certificate must not cost the others their length.
TEST(Promise, FeaturesOfManyScales) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    Matrix x = draw.gaussian(10, 8);
    for (Index j = 0; j < 8; ++j) x.col(j) *= std::pow(10.0, -3 * static_cast<double>(j));
    const Block<double> features = block<double>(x);
    const FeaturesTarget<double> target(features);
    for (const Index steps : {2, 5}) {
      const auto result = align_here<double>(target, 8, {.steps = steps, .keep_iterates = true, .seed = seed});
      expect_honest(result);
      expect_no_rise(Oracle::of_factor(centred_factor_of(x)), result);
    }
  }
}

// The rounding of F is that of the larger end of the step.
TEST(Promise, LargeStarts) {
  for (const double alpha : {0.5, 0.98, 1.0, 1.5}) {
    for (const double size : {30.0, 1e4, 1e8}) {
      const Block<double> sigma = Block<double>::Identity(4, 4);
      const DenseTarget<double> target(sigma);
      const auto result = run<double>(target, size * block<double>(Draw(3).gaussian(4, 4)), 6, StepSize::alpha(alpha));
      expect_honest(result);
      EXPECT_TRUE(verify<double>(result.factor, target, &result.trace).holds());
    }
  }
  const Block<double> one = Block<double>::Constant(1, 1, 1), thirty = Block<double>::Constant(1, 1, 30);
  const DenseTarget<double> target(one);
  expect_honest(run<double>(target, thirty, 5, StepSize::alpha(0.98)));
}

TEST(Promise, AZeroTarget) {
  const Block<double> zero = Block<double>::Zero(4, 4);
  const DenseTarget<double> target(zero);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw(seed);
    const auto result = run<double>(target, block<double>(draw.gaussian(4, 1 + Index(seed % 4))), 5,
                                    StepSize::alpha(0.1 + 1.8 * draw.uniform()));
    expect_honest(result);
    EXPECT_TRUE(verify<double>(result.factor, target, &result.trace).holds());
  }
}

// The rank reaches eigenvalues near rounding: products of an ill-conditioned Y must not come from inverses of its
// basis.
TEST(Promise, RitzOnSpectraDownToRounding) {
  Vector lambda(25);
  for (Index i = 0; i < 25; ++i) lambda(i) = std::pow(10.0, -static_cast<double>(i));
  const Block<double> sigma = Matrix(lambda.asDiagonal());
  const DenseTarget<double> target(sigma);
  for (const Index guard : {0, 8}) {
    const auto result = align_here<double>(target, 25, {.solver = Solver::ritz, .guard = guard, .keep_iterates = true});
    expect_honest(result);
    EXPECT_LE(result.trace.steps.front().objective, 4 * lambda.sum());
    expect_no_rise(Oracle::of_covariance(wide(sigma)), result);
  }
}

TEST(Promise, RitzOnSmoothKernels) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Draw draw(seed);
    const Index d = 40, r = 20 + Index(seed % 11);
    Vector x(d);
    for (Index i = 0; i < d; ++i) x(i) = draw.uniform();
    Matrix kernel(d, d);
    for (Index i = 0; i < d; ++i)
      for (Index j = 0; j < d; ++j) kernel(i, j) = std::exp(-8 * (x(i) - x(j)) * (x(i) - x(j)));
    const Block<double> sigma = block<double>(kernel);
    const DenseTarget<double> target(sigma);
    const auto result = align_here<double>(
        target, r, {.steps = 5, .solver = Solver::ritz, .guard = Index(seed % 3), .keep_iterates = true, .seed = seed});
    expect_honest(result);
    expect_no_rise(Oracle::of_covariance(kernel), result);
  }
}

// What r x r data show of a target that is no covariance.
struct Suspicious {
  Block<double> sigma;
  double claimed_trace;
  bool adds = false;
  Index dim() const { return sigma.rows(); }
  double trace() const { return claimed_trace; }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const {
    if (adds) {
      out += sigma * y;
    } else {
      out = sigma * y;
    }
  }
};

void expect_refused(const Suspicious& target, const std::string& word) {
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const Block<double> start = block<double>(Draw(1).gaussian(10, 3));
    const auto result = align_here<double>(target, start, {.steps = 3, .solver = solver});
    EXPECT_EQ(result.status(), Status::not_a_covariance);
    EXPECT_FALSE(result.trace.certified());
    EXPECT_NE(result.trace.reason.find(word), std::string::npos) << result.trace.reason;
    EXPECT_TRUE(result.factor.allFinite());
  }
}

TEST(Promise, ImpossibleTargetsAreNamed) {
  const Block<double> identity = Block<double>::Identity(10, 10);
  Block<double> skew = identity;
  skew(0, 1) = 0.5;
  expect_refused({identity, -1}, "trace is -1");
  expect_refused({-identity, 10}, "eigenvalue of -1");
  expect_refused({identity, 2}, "trace() says 2");
  expect_refused({skew, 10}, "not symmetric");
  expect_refused({identity, 10, true}, "overwrite");
}

// The rounding of a covariance that was computed in float32 is no objection.
TEST(Promise, RoundingIsNoObjection) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Draw draw(seed);
    const Index d = 12;
    const Block<float> factor = block<float>(draw.gaussian(d, 4));
    const Block<float> product = factor * factor.transpose();
    const Block<double> sigma = product.cast<double>();  // eigenvalues down to -eps32
    const Suspicious target{sigma, sigma.trace()};
    const auto result = align_here<double>(target, block<double>(draw.gaussian(d, d)), {.steps = 3});
    expect_honest(result);
  }
}

// A row says how finely its objective is known, and it is so.
TEST(Promise, Float32KnowsWhatItDoesNotKnow) {
  Draw draw(5);
  Matrix x = draw.gaussian(60, 12);
  for (Index j = 0; j < 12; ++j) x.col(j) *= std::pow(10.0, 4 - 0.7 * static_cast<double>(j));
  const Block<float> features = block<float>(x);
  const FeaturesTarget<float> coarse(features);
  const FeaturesTarget<double, float> mixed(features);
  const Oracle oracle = Oracle::of_factor(centred_factor_of(wide(features)));
  const AlignOptions options{.steps = 6, .solver = Solver::ritz, .keep_iterates = true};
  const auto in_float = align_here<float>(coarse, 8, options);
  EXPECT_TRUE(unresolved(in_float.trace.steps.back()));
  for (std::size_t k = 0; k < in_float.iterates.size(); ++k) {
    const Step& row = in_float.trace.steps[k];
    EXPECT_LE(std::abs(Real(row.objective) - oracle.objective(wide(in_float.iterates[k]))), row.resolution);
  }
  const auto in_double = align_here<double>(mixed, 8, options);
  EXPECT_FALSE(unresolved(in_double.trace.steps.back()));
  EXPECT_LE(oracle.objective(wide(in_double.factor)), oracle.objective(wide(in_float.factor)));
}

}  // namespace
}  // namespace itspace::test
