// SPDX-License-Identifier: Apache-2.0
//
// Misuse of align and of its options throws std::invalid_argument that names the value and the limit, and so does a
// number that is not finite at any other door.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/gradient.hpp>
#include <itspace/moments.hpp>
#include <itspace/rank.hpp>
#include <itspace/start.hpp>
#include <itspace/transport_map.hpp>
#include <itspace/verify.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace itspace::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

class Misuse : public ::testing::Test {
 protected:
  const Problem<double> problem_ = make_problem<double>({.dim = 7, .rank = 3, .seed = 1});
  const DenseTarget<double> target_{problem_.sigma};

  void align_with(const AlignOptions& options) { align<double>(target_, problem_.start, options); }
};

TEST_F(Misuse, AlphaOutsideZeroTwo) {
  expect_misuse({"0", "2"}, [] { StepSize::alpha(0); });
  expect_misuse({"2"}, [] { StepSize::alpha(2); });
  expect_misuse({"-0.5", "2"}, [] { StepSize::alpha(-0.5); });
  expect_misuse({"2.5", "2"}, [] { StepSize::alpha(2.5); });
  expect_misuse({"nan"}, [] { StepSize::alpha(nan); });
  expect_misuse({"inf"}, [] { StepSize::alpha(inf); });
}

TEST_F(Misuse, LambdaNotPositive) {
  expect_misuse({"0"}, [] { StepSize::lambda(0); });
  expect_misuse({"-3", "positive"}, [] { StepSize::lambda(-3); });
  expect_misuse({"nan"}, [] { StepSize::lambda(nan); });
  expect_misuse({"inf"}, [] { StepSize::lambda(inf); });
}

// alpha = 2 lambda/(1 + 2 lambda) rises from 0 to 1 with lambda, over all of its range.
TEST_F(Misuse, EveryLambdaHasAnAlpha) {
  double last = 0;
  for (int exponent = -1074; exponent <= 1023; ++exponent) {
    const double lambda = std::ldexp(1.0, exponent), alpha = StepSize::lambda(lambda).resolve(3);
    const long double expected = 2 * static_cast<long double>(lambda) / (1 + 2 * static_cast<long double>(lambda));
    ASSERT_GE(alpha, last) << lambda;
    ASSERT_LE(alpha, 1) << lambda;
    ASSERT_LE(std::abs(alpha - expected), 2 * std::numeric_limits<double>::epsilon() * expected) << lambda;
    last = alpha;
  }
  EXPECT_EQ(StepSize::lambda(std::numeric_limits<double>::max()).resolve(1), 1);
}

TEST_F(Misuse, NegativeSteps) {
  expect_misuse({"-1", "0"}, [&] { align_with({.steps = -1}); });
}

TEST_F(Misuse, NegativeTolerance) {
  AlignOptions options;
  options.tolerance = -0.25;
  expect_misuse({"-0.25", "0"}, [&] { align_with(options); });
  options.tolerance = nan;
  expect_misuse({"nan"}, [&] { align_with(options); });
}

TEST_F(Misuse, NegativeGramRegularization) {
  AlignOptions options;
  options.route = Route::gram;
  options.gram_regularization = -0.125;
  expect_misuse({"-0.125", "0"}, [&] { align_with(options); });
  options.gram_regularization = inf;
  expect_misuse({"inf"}, [&] { align_with(options); });
}

TEST_F(Misuse, StartOfAnotherDimension) {
  const Block<double> start = Block<double>::Ones(5, 2);
  expect_misuse({"5", "7"}, [&] { align<double>(target_, start); });
}

TEST_F(Misuse, StartWithoutColumns) {
  const Block<double> start(7, 0);
  expect_misuse({"0"}, [&] { align<double>(target_, start); });
}

TEST_F(Misuse, RankOutsideOneToD) {
  expect_misuse({"0", "7"}, [&] { align<double>(target_, 0); });
  expect_misuse({"-2", "7"}, [&] { align<double>(target_, -2); });
  expect_misuse({"8", "7"}, [&] { align<double>(target_, 8); });
  expect_misuse({"0", "7"}, [&] { random_start<double>(target_, 0); });
  expect_misuse({"8", "7"}, [&] { random_start<double>(target_, 8); });
}

TEST_F(Misuse, FactorRouteWithoutAFactor) {
  AlignOptions options;
  options.route = Route::factor;
  expect_misuse({"factor"}, [&] { align_with(options); });
}

// Nothing of the target is touched before the options are in order.
TEST_F(Misuse, IsFoundBeforeAnyWork) {
  struct Untouchable {
    Index dim() const { return 7; }
    double trace() const { throw std::logic_error("asked for the trace"); }
    void apply(const ConstBlockView<double>&, BlockView<double>) const { throw std::logic_error("applied"); }
  };
  const Untouchable target;
  expect_misuse({"-1"}, [&] { align<double>(target, problem_.start, {.steps = -1}); });
  expect_misuse({"9"}, [&] { align<double>(target, 9); });
}

template <class Scalar>
class Doors : public ::testing::Test {
 protected:
  static constexpr Index dim = 4;
  // Each kind of number that is none, with the word for it.
  template <class Call>
  static void for_each_poison(Call call) {
    call(static_cast<Scalar>(nan), std::string("nan"));
    call(static_cast<Scalar>(inf), std::string("inf"));
    call(static_cast<Scalar>(-inf), std::string("-inf"));
  }
  static Block<Scalar> poisoned(Scalar poison) {
    Block<Scalar> sigma = identity;
    sigma(1, 2) = poison;
    return sigma;
  }
  static inline const Block<Scalar> identity = Block<Scalar>::Identity(dim, dim);
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Doors, Scalars);

TYPED_TEST(Doors, OfDistancesRefuseCovariancesThatAreNotFinite) {
  this->for_each_poison([&](TypeParam poison, const std::string& word) {
    const Block<TypeParam> bad = this->poisoned(poison), good = this->identity;
    const StackView<TypeParam> bad_stack{bad.data(), 1, 4}, good_stack{good.data(), 1, 4};
    const auto refused = [&](auto call) { expect_misuse({"covariance[1, 2] is " + word}, call); };
    refused([&] { dense_distance_squared<TypeParam>(bad, good); });
    refused([&] { dense_distance_squared<TypeParam>(good, bad); });
    refused([&] { dense_distance_squared<TypeParam>(bad, good, full_accuracy); });
    refused([&] { dense_distance_squared<TypeParam>(good, bad, default_accuracy); });
    refused([&] { cross_distances_squared<TypeParam>(bad_stack, good_stack); });
    refused([&] { cross_distances_squared<TypeParam>(good_stack, bad_stack); });
    refused([&] { paired_distances_squared<TypeParam>(bad_stack, good_stack); });
    refused([&] { paired_distances_squared<TypeParam>(good_stack, bad_stack); });
    refused([&] { geodesic<TypeParam>(bad, good, 0.5); });
    refused([&] { geodesic<TypeParam>(good, bad, 0.5); });
    refused([&] { coupling_cost<TypeParam>(bad, good); });
    refused([&] { coupling_cost<TypeParam>(good, bad); });
    expect_misuse({"t is " + word}, [&] { geodesic<TypeParam>(good, good, static_cast<double>(poison)); });
  });
}

TYPED_TEST(Doors, OfCovariancesRefuseWhatIsNotFinite) {
  this->for_each_poison([&](TypeParam poison, const std::string& word) {
    const Block<TypeParam> bad = this->poisoned(poison);
    Block<TypeParam> in_place = bad;
    const auto refused = [&](auto call) { expect_misuse({"[1, 2] is " + word, "finite"}, call); };
    refused([&] { check_symmetric<TypeParam>(bad); });
    refused([&] { check_covariance<TypeParam>(bad); });
    refused([&] { symmetrise<TypeParam>(in_place); });
    refused([&] { make_positive_definite<TypeParam>(in_place); });
    refused([&] { leading_eigenvalues<TypeParam>(bad, 2); });
    refused([&] { leading_eigenvalues_of_factor(block<double>(bad), 2); });
    refused([&] { truncate<TypeParam>(bad, 2); });
    refused([&] { truncate_factor<TypeParam>(bad, 2); });
    refused([&] { start_from_covariance<TypeParam>(bad, 2); });
    const auto value = static_cast<double>(poison);
    const auto bad_eps = [&](auto call) { expect_misuse({"eps is " + word, "0 or more"}, call); };
    bad_eps([&] { check_symmetric<TypeParam>(this->identity, value); });
    bad_eps([&] { check_covariance<TypeParam>(this->identity, value); });
  });
}

TYPED_TEST(Doors, OfTargetsRefuseProductsThatAreNotFinite) {
  this->for_each_poison([&](TypeParam poison, const std::string&) {
    const Block<TypeParam> bad = this->poisoned(poison);
    const Block<TypeParam> factor = this->identity.leftCols(3);
    const DenseTarget<TypeParam> target(bad);
    const auto refused = [&](auto call) { expect_misuse({"finite"}, call); };
    refused([&] { objective_and_gradient<TypeParam>(factor, target); });
    refused([&] { target_distance_squared<TypeParam>(factor, target); });
    refused([&] { model_of<TypeParam>(target, factor, Eigen::VectorXd::Zero(4)); });
    refused([&] { verify<TypeParam>(factor, target); });
    refused([&] { verify<TypeParam>(bad, DenseTarget<TypeParam>(this->identity)); });
    const auto spelled_out = [&](auto call) { expect_misuse({"target applied to the identity[", "is nan"}, call); };
    spelled_out([&] { start_from_target<TypeParam>(target, 2); });
    spelled_out([&] { rank_explaining<TypeParam>(target, 0.5); });
  });
}

TYPED_TEST(Doors, OfFeaturesRefuseWeightsThatAreNotFinite) {
  this->for_each_poison([&](TypeParam poison, const std::string& word) {
    const Block<TypeParam> features = this->identity, factor = this->identity.leftCols(2);
    Eigen::VectorXd weights = Eigen::VectorXd::Ones(4);
    weights(3) = static_cast<double>(poison);
    const auto refused = [&](auto call) { expect_misuse({"weights[3] is " + word, "finite"}, call); };
    refused([&] { covariance<TypeParam>(features, weights); });
    refused([&] { centred_factor<TypeParam>(features, weights); });
    refused([&] { compact_factor<TypeParam>(features, weights); });
    refused([&] { mean<TypeParam>(features, weights); });
    refused([&] { start_from_features<TypeParam>(features, 2, weights); });
    refused([&] { start_from_all_features<TypeParam>(features, weights); });
    refused([&] { objective_and_features_gradient<TypeParam>(factor, features, weights); });
    refused([&] { FeaturesTarget<TypeParam>(features, weights); });
  });
}

TYPED_TEST(Doors, OfMomentsRefuseWhatIsNotFinite) {
  this->for_each_poison([&](TypeParam poison, const std::string& word) {
    MomentAccumulator moments;
    moments.update<TypeParam>(this->identity);
    expect_misuse({"batch[1, 2] is " + word}, [&] { moments.update<TypeParam>(this->poisoned(poison)); });
    EXPECT_EQ(moments.count(), 4);
    Eigen::VectorXd mean = moments.mean();
    Block<double> scatter = moments.scatter();
    scatter(1, 2) = static_cast<double>(poison);
    expect_misuse({"scatter[1, 2] is " + word}, [&] { MomentAccumulator(4, mean, scatter); });
    mean(2) = static_cast<double>(poison);
    expect_misuse({"mean[0, 2] is " + word}, [&] { MomentAccumulator(4, mean, moments.scatter()); });
  });
}

// All of the samples are left as they are.
TYPED_TEST(Doors, OfAMapRefuseSamplesThatAreNotFinite) {
  const LowRankGaussian from{Block<double>::Ones(4, 1), Eigen::VectorXd::Zero(4), 1}, to{from.factor, from.mean, 2};
  const TransportMap map(from, to);
  this->for_each_poison([&](TypeParam poison, const std::string& word) {
    Block<TypeParam> samples = this->poisoned(poison);
    expect_misuse({"samples[1, 2] is " + word}, [&] { map.apply<TypeParam>(samples); });
    samples(1, 2) = 0;
    EXPECT_EQ(samples, this->identity);
  });
}

using DoublesDoors = Doors<double>;

TEST_F(DoublesDoors, OfMeansAndFactorsRefuseWhatIsNotFinite) {
  for_each_poison([&](double poison, const std::string& word) {
    const Eigen::VectorXd good = Eigen::VectorXd::Zero(4);
    Eigen::VectorXd bad = good;
    bad(2) = poison;
    expect_misuse({"finite"}, [&] { mean_distance_squared(bad, good); });
    expect_misuse({"finite"}, [&] { mean_distance_squared(good, bad); });
    const Block<double> factor = poisoned(poison);
    const auto refused = [&](auto call) { expect_misuse({"factor[1, 2] is " + word}, call); };
    refused([&] { factor_distance_squared(factor, identity); });
    refused([&] { factor_distance_squared(identity, factor); });
    refused([&] { geodesic_factor(factor, identity, 0.5); });
    refused([&] { geodesic_factor(identity, factor, 0.5); });
    expect_misuse({"t is " + word}, [&] { geodesic_factor(identity, identity, poison); });
  });
}

TEST_F(DoublesDoors, OfEigenvaluesRefuseWhatIsNotFinite) {
  for_each_poison([&](double poison, const std::string& word) {
    Eigen::VectorXd values = Eigen::VectorXd::Ones(4);
    expect_misuse({"trace is " + word}, [&] { rank_explaining(values, poison, 0.5); });
    expect_misuse({"share", word}, [&] { rank_explaining(values, 4, poison); });
    expect_misuse({"share", word}, [&] { rank_explaining<double>(DenseTarget<double>(identity), poison); });
    expect_misuse({"trace is " + word}, [&] { floor_r(poison, values, 2); });
    values(2) = poison;
    expect_misuse({"eigenvalue 2 is " + word}, [&] { rank_explaining(values, 4, 0.5); });
    expect_misuse({"[2] is " + word}, [&] { floor_r(4, values, 2); });
    expect_misuse({"[2] is " + word}, [&] { floor_r(values, 2); });
  });
}

TEST_F(DoublesDoors, OfModelsRefuseWhatIsNotFinite) {
  const DenseTarget<double> target(identity);
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(4);
  const LowRankGaussian good{identity.leftCols(2), zero, 1};
  for_each_poison([&](double poison, const std::string& word) {
    Eigen::VectorXd mean = zero;
    mean(2) = poison;
    expect_misuse({"mean", "finite"}, [&] { model_of<double>(target, good.factor, mean); });
    expect_misuse({"floor", word}, [&] { model_of<double>(target, good.factor, zero, poison); });
    LowRankGaussian factor = good, remainder = good, shifted = good;
    factor.factor = poisoned(poison);
    remainder.remainder = poison;
    shifted.mean = mean;
    const auto refused = [&](std::initializer_list<std::string> parts, const LowRankGaussian& model) {
      expect_misuse(parts, [&] { TransportMap(model, good); });
      expect_misuse(parts, [&] { TransportMap(good, model); });
    };
    refused({"factor[1, 2] is " + word}, factor);
    refused({"remainder", word}, remainder);
    refused({"mean", "finite"}, shifted);

    const TransportMap::Parts parts = TransportMap(good, good).parts();
    const auto part_refused = [&](auto spoil) {
      TransportMap::Parts bad = parts;
      spoil(bad);
      EXPECT_THROW(TransportMap{bad}, std::invalid_argument) << word;
    };
    part_refused([&](TransportMap::Parts& bad) { bad.scalar = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.basis(1, 0) = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.core(1, 0) = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.mean_from(1) = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.mean_to(1) = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.from_root(1, 0) = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.to_root(1, 0) = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.from_remainder = poison; });
    part_refused([&](TransportMap::Parts& bad) { bad.to_remainder = poison; });
  });
}

TEST_F(DoublesDoors, RefuseNegativeCounts) {
  const Eigen::VectorXd values = Eigen::VectorXd::Ones(4);
  expect_misuse({"count is -1", "0"}, [&] { leading_eigenvalues<double>(identity, -1); });
  expect_misuse({"count is -1", "0"}, [&] { leading_eigenvalues_of_factor(identity, -1); });
  expect_misuse({"rank is -1", "0"}, [&] { floor_r(4, values, -1); });
  expect_misuse({"rank is -1", "0"}, [&] { floor_r(values, -1); });
}

TEST(Accuracies, AreSharesAndFinite) {
  const Block<double> one = Block<double>::Identity(3, 3), two = 4 * one;
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, infinite, std::numeric_limits<double>::quiet_NaN()}) {
    expect_misuse({"accuracy", "finite"}, [&] { dense_distance_squared<double>(one, two, {bad, 0}); });
    expect_misuse({"accuracy", "finite"}, [&] { dense_distance_squared<double>(one, two, {0, bad}); });
  }
}

TEST(Accuracies, ACouplingIsOfSquareMatrices) {
  const Block<double> square = Block<double>::Identity(3, 3), wide = Block<double>::Ones(3, 4);
  expect_misuse({"3 x 4", "square"}, [&] { coupling_cost<double>(square, wide); });
}

}  // namespace
}  // namespace itspace::test
