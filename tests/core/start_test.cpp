// SPDX-License-Identifier: Apache-2.0
//
// The starts of appendix B.1: the top r of a covariance, the top r of features through their smaller side, the centred
// features themselves, and the seeded random one.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/gradient.hpp>
#include <itspace/rank.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>
#include <itspace/transport_map.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace itspace::test {
namespace {

template <class Scalar>
class Starts : public ::testing::Test {
 protected:
  // A spectrum that halves: sample covariances keep a gap after every leading eigenvalue.
  static Block<Scalar> features(Index samples, Index dim, double mean_size, std::uint64_t seed) {
    Draw draw(seed);
    Vector lambda(dim);
    for (Index i = 0; i < dim; ++i) lambda(i) = std::pow(0.25, double(std::min<Index>(i, 8)));
    return block<Scalar>(features_with(samples, lambda, mean_size, draw));
  }
  static RealMatrix square(const Block<Scalar>& y) { return real(y) * real(y).transpose(); }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Starts, Scalars);

TYPED_TEST(Starts, FromACovariance) {
  for (const auto [dim, rank] : all_sizes()) {
    const auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 1});
    const auto y = start_from_covariance<TypeParam>(p.sigma, rank);
    ASSERT_EQ(y.rows(), dim);
    ASSERT_EQ(y.cols(), rank);
    // The truncation, so its distance is the floor.
    EXPECT_LE(p.oracle.objective(wide(y)),
              p.oracle.floor(rank) + ratio_limit * Real(dim) * eps<TypeParam> * p.oracle.trace());
  }
}

// Both sides of n = d give the truncation of the covariance.
TYPED_TEST(Starts, FromFeatures) {
  for (const double mean_size : {0.0, 20.0}) {
    for (const auto& [n, d] : {std::pair<Index, Index>{60, 9}, {12, 30}, {9, 9}, {50, 1}, {2, 5}}) {
      const auto z = this->features(n, d, mean_size, 2);
      const RealMatrix t = centred_factor_of(wide(z));
      const RealVector s = singular_values(t);
      for (Index rank = 1; rank <= std::min<Index>({n - 1, d, 4}); ++rank) {
        SCOPED_TRACE(std::to_string(n) + "x" + std::to_string(d) + " r=" + std::to_string(rank) + " mean " +
                     std::to_string(mean_size));
        const auto y = start_from_features<TypeParam>(z, rank);
        ASSERT_EQ(y.rows(), d);
        ASSERT_EQ(y.cols(), rank);
        const RealMatrix sigma = t * t.transpose();
        const Block<double> exact = sigma.template cast<double>();
        const RealMatrix expected =
            real(truncate<double>(exact, rank)) * real(truncate<double>(exact, rank)).transpose();
        const Real gap = (rank < s.size() ? s(rank - 1) * s(rank - 1) - s(rank) * s(rank) : s(rank - 1) * s(rank - 1)) /
                         (s(0) * s(0));
        const Real centring = 1 + Real(mean_size) / s(0);
        EXPECT_LT(ratio<TypeParam>((this->square(y) - expected).norm(), d, centring * expected.norm() / gap),
                  ratio_limit);
      }
    }
  }
}

TYPED_TEST(Starts, FromWeightedFeatures) {
  const auto z = this->features(40, 6, 1, 3);
  const Vector weights = Vector::LinSpaced(40, 0, 2);
  const auto y = start_from_features<TypeParam>(z, 6, weights);
  const RealMatrix t = centred_factor_of(wide(z), weights);
  const RealMatrix sigma = t * t.transpose();
  EXPECT_LT(ratio<TypeParam>((this->square(y) - sigma).norm(), 6, sigma.norm()), ratio_limit);
}

// More columns than the features have directions: the rest is zero, and the product is the whole covariance.
TYPED_TEST(Starts, RankAboveTheSamples) {
  const auto z = this->features(4, 10, 0, 4);
  const auto y = start_from_features<TypeParam>(z, 7);
  ASSERT_EQ(y.cols(), 7);
  const RealMatrix t = centred_factor_of(wide(z));
  const RealMatrix sigma = t * t.transpose();
  EXPECT_LT(ratio<TypeParam>((this->square(y) - sigma).norm(), 7, sigma.norm()), ratio_limit);
}

TYPED_TEST(Starts, FromAllFeatures) {
  for (const auto& [n, d] : {std::pair<Index, Index>{5, 12}, {12, 5}}) {
    for (const Vector& weights : {Vector(), Vector(Vector::LinSpaced(n, 1, 2))}) {
      const auto z = this->features(n, d, 3, 5);
      const auto y = start_from_all_features<TypeParam>(z, weights);
      ASSERT_EQ(y.rows(), d);
      ASSERT_EQ(y.cols(), n);
      const RealMatrix t = centred_factor_of(wide(z), weights);
      EXPECT_LT(ratio<TypeParam>((real(y) - t).norm(), d, t.norm() + real(z).norm() / std::sqrt(Real(n))), ratio_limit);
    }
  }
}

// Y0 = Sigma Omega, scaled to ||Y0||^2 = tr Sigma: inside the range of Sigma.
TYPED_TEST(Starts, Random) {
  for (const Spectrum spectrum : all_spectra) {
    for (const auto [dim, rank] : all_sizes()) {
      const auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 6, .spectrum = spectrum});
      const DenseTarget<TypeParam> target(p.sigma);
      const auto y = random_start<TypeParam>(target, rank, 3);
      ASSERT_EQ(y.rows(), dim);
      ASSERT_EQ(y.cols(), rank);
      EXPECT_LT(ratio<TypeParam>(real(y).squaredNorm() - p.oracle.trace(), rank, p.oracle.trace()), ratio_limit);
      if (spectrum == Spectrum::rank_deficient && dim <= 17) {
        const RealMatrix u = polar(real(p.factor));
        const RealMatrix outside = real(y) - u * (u.transpose() * real(y));
        EXPECT_LT(ratio<TypeParam>(outside.norm(), dim, real(y).norm()), ratio_limit);
      }
    }
  }
}

// Features without variance: the mean of equal values is that value, whatever their weights, so that trace, products
// and starts are exactly zero, not rounding of either sign.
TYPED_TEST(Starts, OfConstantFeaturesAreZero) {
  Draw draw(11);
  for (int trial = 0; trial < 200; ++trial) {
    const Index n = 2 + trial % 17, d = 1 + trial % 7, rank = 1 + trial % d;
    Block<TypeParam> z(n, d);
    for (Index j = 0; j < d; ++j) z.col(j).setConstant(TypeParam(draw.normal() * std::pow(10.0, 8 * draw.normal())));
    Vector weights(n);
    for (Index i = 0; i < n; ++i) weights(i) = std::pow(10.0, 4 * draw.normal());
    for (const Vector& w : {Vector(), weights}) {
      const FeaturesTarget<TypeParam> target(z, w);
      EXPECT_EQ(target.trace(), 0);
      EXPECT_EQ(random_start<TypeParam>(target, rank, 1).norm(), 0);
      EXPECT_EQ(start_from_target<TypeParam>(target, rank).norm(), 0);
      EXPECT_EQ(start_from_features<TypeParam>(z, rank, w).norm(), 0);
      EXPECT_EQ(covariance<TypeParam>(z, w).norm(), 0);
      AlignOptions options;
      options.steps = 2;
      const auto result = align_here<TypeParam>(target, rank, options);
      EXPECT_EQ(result.factor.norm(), 0);
    }
  }
}

// tr Sigma = sum_{i<j} w_i w_j ||z_i - z_j||^2/(2 sum_{i<j} w_i w_j), in which nothing cancels.
Real trace_by_pairs(const Matrix& z, const Vector& weights) {
  Real squares = 0, pairs = 0;
  for (Index i = 0; i < z.rows(); ++i) {
    for (Index j = 0; j < i; ++j) {
      const Real weight = Real(weights(i)) * Real(weights(j));
      squares += weight * (real(z.row(i)) - real(z.row(j))).squaredNorm();
      pairs += 2 * weight;
    }
  }
  return squares / pairs;
}

// Spread of the last bits, and weights that differ beyond all digits: the trace is that of the definition, never below
// 0, and the start has its size.
TYPED_TEST(Starts, OfBarelyVaryingFeaturesAreFinite) {
  Draw draw(12);
  for (int trial = 0; trial < 200; ++trial) {
    const Index n = 2 + trial % 9, d = 1 + trial % 5;
    Block<TypeParam> z(n, d);
    for (Index j = 0; j < d; ++j) {
      const auto value = TypeParam(draw.normal() * 100);
      for (Index i = 0; i < n; ++i) z(i, j) = draw.uniform() < 0.5 ? value : std::nextafter(value, TypeParam(1e9));
    }
    Vector weights(n);
    for (Index i = 0; i < n; ++i) weights(i) = std::pow(10.0, -40 * draw.uniform());
    for (const Vector& w : {Vector(), weights}) {
      const FeaturesTarget<TypeParam> target(z, w);
      const Real expected = trace_by_pairs(wide(z), w.size() > 0 ? w : Vector::Ones(n));
      ASSERT_GE(target.trace(), 0);
      // The mean is good to eps64 of the values, and a float's spread is eps32 of them; a double's is of the same size.
      const Real share = sizeof(TypeParam) == sizeof(float) ? 1e-3L : 30;
      EXPECT_LE(std::abs(Real(target.trace()) - expected), share * expected);
      const auto y = random_start<TypeParam>(target, 1, 1);
      ASSERT_TRUE(y.allFinite());
      if (y.norm() > 0) {
        EXPECT_LE(std::abs(real(y).squaredNorm() - Real(target.trace())), 30 * eps<TypeParam> * Real(target.trace()));
      }
    }
  }
}

// An operator that claims a trace below zero is no covariance; a start from it is a finite one all the same.
TEST(RandomStart, OfANegativeTraceIsFinite) {
  const Block<double> sigma = -Block<double>::Identity(4, 4);
  EXPECT_TRUE(random_start<double>(DenseTarget<double>(sigma), 2, 1).allFinite());
  const Block<double> zero = Block<double>::Zero(4, 4);
  EXPECT_EQ(random_start<double>(DenseTarget<double>(zero), 2, 1).norm(), 0);
}

// Products that are no numbers, as a broken operator makes them.
class Broken {
 public:
  explicit Broken(double value) : value_(value) {}

  Index dim() const { return 4; }
  double trace() const { return 4; }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const {
    out = y;
    out.row(2).setConstant(value_);
  }

 private:
  double value_;
};

// Adds to its output where it should overwrite it.
struct Adding {
  Index dim() const { return 4; }
  double trace() const { return 4; }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out += y; }
};

// Products that are finite, and a size to scale them to that is not.
struct WithoutSize {
  Index dim() const { return 4; }
  double trace() const { return std::numeric_limits<double>::infinity(); }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out = y; }
};

// A start is never made of numbers that are none: asked for by itself it is refused, and a run that would begin there
// ends with its status.
TEST(RandomStart, OfABrokenOperatorIsRefused) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Broken target(value);
    expect_throws_naming<std::invalid_argument>(
        {"applied to a random block[2, 0] is ", std::isnan(value) ? "nan" : "inf", "finite"},
        [&] { random_start<double>(target, 2); });
    const auto result = align_here<double>(target, 2);
    EXPECT_EQ(result.status(), Status::not_finite);
  }
  const Adding adding;
  expect_throws_naming<std::invalid_argument>({"apply()", "overwrite"}, [&] { random_start<double>(adding, 2); });
  // (Split spaces hand the parts of a block through memory of their own, where nothing is added to.)
  EXPECT_EQ(align<double>(adding, 2).status(), Status::not_a_covariance);
  const WithoutSize without;
  expect_throws_naming<std::invalid_argument>({"trace()", "inf", "finite"}, [&] { random_start<double>(without, 2); });
  EXPECT_EQ(align_here<double>(without, 2).status(), Status::not_finite);
}

// The doors of the library name the first value that is not finite.
TYPED_TEST(Starts, NonFiniteValuesAreNamed) {
  for (const TypeParam poison :
       {std::numeric_limits<TypeParam>::quiet_NaN(), -std::numeric_limits<TypeParam>::infinity()}) {
    for (const auto& [n, d] : {std::pair<Index, Index>{12, 5}, {5, 12}}) {
      auto z = this->features(n, d, 1, 3);
      const auto other = z;
      z(2, 3) = poison;
      const Block<TypeParam> factor = Block<TypeParam>::Ones(d, 2);
      const auto refused = [&](auto call) { expect_throws_naming<std::invalid_argument>({"features[2, 3] is"}, call); };
      refused([&] { start_from_features<TypeParam>(z, 2); });
      refused([&] { start_from_all_features<TypeParam>(z); });
      refused([&] { covariance<TypeParam>(z); });
      refused([&] { centred_factor<TypeParam>(z); });
      refused([&] { compact_factor<TypeParam>(z); });
      refused([&] { mean<TypeParam>(z); });
      refused([&] { features_distance<TypeParam>(z, other); });
      refused([&] { features_distance<TypeParam>(other, z); });
      refused([&] { features_distance<TypeParam>(other, z, default_accuracy); });
      refused([&] { objective_and_features_gradient<TypeParam>(factor, z); });
      Block<TypeParam> bad = factor;
      bad(1, 1) = poison;
      const auto bad_factor = [&](auto call) {
        expect_throws_naming<std::invalid_argument>({"factor[1, 1] is"}, call);
      };
      bad_factor([&] { objective_and_features_gradient<TypeParam>(bad, other); });
      const Block<TypeParam> sigma = Block<TypeParam>::Identity(d, d);
      const DenseTarget<TypeParam> target(sigma);
      const FeaturesTarget<TypeParam> factored(other);
      bad_factor([&] { objective_and_gradient<TypeParam>(bad, target); });
      bad_factor([&] { target_distance_squared<TypeParam>(bad, target); });
      bad_factor([&] { target_distance_squared<TypeParam>(bad, factored); });
      bad_factor([&] { model_of<TypeParam>(target, bad, Eigen::VectorXd::Zero(d)); });
      const FactorTarget<TypeParam> of_bad(bad);
      EXPECT_THROW(start_from_target<TypeParam>(of_bad, 1), std::invalid_argument);
      EXPECT_THROW(target_distance_squared<TypeParam>(factor, of_bad), std::invalid_argument);
      const Block<double> wide_bad = bad.template cast<double>(), wide_good = factor.template cast<double>();
      bad_factor([&] { factor_distance_squared(wide_bad, wide_good); });
      bad_factor([&] { factor_distance_squared(wide_good, wide_bad); });
      bad_factor([&] { geodesic_factor(wide_bad, wide_good, 0.5); });
      Block<TypeParam> wrong = sigma;
      wrong(0, 2) = poison;
      const auto bad_covariance = [&](auto call) {
        expect_throws_naming<std::invalid_argument>({"covariance[0, 2] is"}, call);
      };
      bad_covariance([&] { dense_distance_squared<TypeParam>(wrong, sigma); });
      bad_covariance([&] { dense_distance_squared<TypeParam>(sigma, wrong, full_accuracy); });
      bad_covariance([&] { geodesic<TypeParam>(wrong, sigma, 0.5); });
      bad_covariance([&] { coupling_cost<TypeParam>(sigma, wrong); });
      bad_covariance([&] { start_from_covariance<TypeParam>(wrong, 1); });
      const DenseTarget<TypeParam> operator_of(wrong);
      EXPECT_THROW(rank_explaining<TypeParam>(operator_of, 0.9), std::invalid_argument);
      EXPECT_THROW(start_from_target<TypeParam>(operator_of, 1), std::invalid_argument);
      EXPECT_THROW(model_of<TypeParam>(target, factor, Eigen::VectorXd::Constant(d, double(poison))),
                   std::invalid_argument);
    }
    const double wide_poison = double(poison);
    Vector values = Vector::Ones(3);
    values(1) = wide_poison;
    EXPECT_THROW(floor_r(values, 1), std::invalid_argument);
    EXPECT_THROW(floor_r(3, values, 1), std::invalid_argument);
    EXPECT_THROW(floor_r(wide_poison, Vector::Ones(3), 1), std::invalid_argument);
    EXPECT_TRUE(std::isnan(gap_r(1, wide_poison, 0)));
    EXPECT_THROW(rank_explaining(values, 3, 0.9), std::invalid_argument);
    EXPECT_THROW(mean_distance_squared(values, Vector::Ones(3)), std::invalid_argument);
  }
}

TYPED_TEST(Starts, Misuse) {
  const auto z = this->features(5, 3, 0, 7);
  const Block<TypeParam> one = z.topRows(1);
  expect_throws_naming<std::invalid_argument>({"0", "3"}, [&] { start_from_features<TypeParam>(z, 0); });
  expect_throws_naming<std::invalid_argument>({"4", "3"}, [&] { start_from_features<TypeParam>(z, 4); });
  expect_throws_naming<std::invalid_argument>({"1", "2"}, [&] { start_from_features<TypeParam>(one, 1); });
  expect_throws_naming<std::invalid_argument>({"1", "2"}, [&] { start_from_all_features<TypeParam>(one); });
  expect_throws_naming<std::invalid_argument>({"4", "5"},
                                              [&] { start_from_features<TypeParam>(z, 1, Vector::Ones(4)); });
  expect_throws_naming<std::invalid_argument>(
      {"4", "3"}, [&] { start_from_covariance<TypeParam>(Block<TypeParam>::Identity(3, 3), 4); });
}

}  // namespace
}  // namespace itspace::test
