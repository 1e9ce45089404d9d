// SPDX-License-Identifier: Apache-2.0
//
// The covariance of a stream against its definition: all samples at once, each with its weight, in long double.
#include "contract_suite.hpp"
#include "entries.hpp"
#include "expect_throw.hpp"

#include <itspace/online_target.hpp>

#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

namespace itspace::test {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// A stream from the definition: every sample that ever came, with the weight it has now.
struct Definition {
  Matrix samples;
  Vector weights;

  void add(const Matrix& batch, const Vector& batch_weights, double discount) {
    const Index before = samples.rows();
    Matrix all(before + batch.rows(), batch.cols());
    Vector both(all.rows());
    if (before > 0) all.topRows(before) = samples;
    all.bottomRows(batch.rows()) = batch;
    both.head(before) = discount * weights;
    both.tail(batch.rows()) = batch_weights.size() > 0 ? batch_weights : Vector::Ones(batch.rows());
    samples = all;
    weights = both;
  }
  RealVector mean() const { return weighted_mean(samples, weights); }
  RealMatrix sigma() const { return square(centred_factor_of(samples, weights)); }
  Real effective() const { return real(weights).sum() * real(weights).sum() / real(weights).squaredNorm(); }
};

// Samples cannot be centred better than eps times their size allows.
template <Storage Scalar>
Real rounding(const Definition& truth) {
  const Real sigma = truth.sigma().trace(), size = real(truth.samples).cwiseAbs().maxCoeff();
  return ratio_limit * Real(truth.samples.cols()) *
         (eps<Scalar> * sigma + eps<double> * size * std::sqrt(sigma) + eps<double> * eps<double> * size * size);
}

// What holds whatever was forgotten of the correlations.
template <Storage Scalar>
void require_moments(const OnlineTarget<Scalar>& target, const Definition& truth) {
  const RealMatrix sigma = truth.sigma();
  const Real limit = rounding<Scalar>(truth), size = real(truth.samples).cwiseAbs().maxCoeff();
  REQUIRE_LE((real(target.mean()) - truth.mean()).cwiseAbs().maxCoeff(), ratio_limit * eps<double> * size);
  REQUIRE_LE(std::abs(target.trace() - sigma.trace()), limit);
  REQUIRE_LE((real(target.deviations()).cwiseAbs2() - sigma.diagonal()).cwiseAbs().maxCoeff(), limit);
  REQUIRE_LE(std::abs(target.effective_samples() - truth.effective()), ratio_limit * eps<double> * truth.effective());
  const RealMatrix found = entries(target);
  REQUIRE_LE((found - found.transpose()).norm(), limit);
  REQUIRE_LE(std::abs(found.trace() - sigma.trace()), limit);
  REQUIRE_GE(eigenvalues((found + found.transpose()) / 2)(found.rows() - 1), -limit);
}

template <Storage Scalar>
void require_covariance(const OnlineTarget<Scalar>& target, const Definition& truth) {
  require_moments(target, truth);
  REQUIRE_LE((entries(target) - truth.sigma()).norm(), rounding<Scalar>(truth));
}

struct Batch {
  Matrix samples;
  Vector weights;  // empty: all 1
};

std::vector<Batch> draw_stream(Index dim, double mean_size) {
  Draw draw(*rc::gen::inRange<std::uint64_t>(0, 1 << 20).as("seed"));
  const Index count = *rc::gen::inRange<Index>(1, 9).as("batches");
  const bool weighted = *rc::gen::arbitrary<bool>().as("weighted");
  const Vector lambda = eigenvalues_of(Spectrum::power_law, dim);
  std::vector<Batch> stream;
  for (Index i = 0; i < count; ++i) {
    const Index rows = *rc::gen::inRange<Index>(i == 0 ? 2 : 1, 9).as("rows");
    Batch batch{features_with(rows, lambda, mean_size, draw), {}};
    if (weighted) {
      batch.weights = Vector::NullaryExpr(rows, [&] { return 0.1 + draw.uniform(); });
      if (rows > 2) batch.weights(1) = 0;
    }
    stream.push_back(std::move(batch));
  }
  return stream;
}

double discount_for(const OnlineOptions& options, Index rows) {
  return std::pow(0.5, (options.unit == HalfLifeUnit::samples ? double(rows) : 1.0) / options.half_life);
}

template <Storage Scalar>
void run(const OnlineOptions& options, const std::vector<Batch>& stream, OnlineTarget<Scalar>& target,
         Definition& truth) {
  target = OnlineTarget<Scalar>(options);
  for (const Batch& batch : stream) {
    const Block<Scalar> rows = block<Scalar>(batch.samples);
    target.update(rows, batch.weights);
    truth.add(wide(rows), batch.weights, discount_for(options, rows.rows()));
  }
}

template <class T>
class Online : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Online, Scalars);

OnlineOptions draw_forgetting() {
  OnlineOptions options;
  options.half_life = *rc::gen::element(never, 0.7, 3.0, 40.0).as("half-life");
  options.unit = *rc::gen::element(HalfLifeUnit::batches, HalfLifeUnit::samples).as("unit");
  options.exact_batches = *rc::gen::inRange<Index>(1, 4).as("exact batches");
  return options;
}

// k >= d: nothing is lost.
TYPED_TEST(Online, WithRoomForAllIsTheWeightedCovariance) {
  rc::detail::checkGTest([] {
    const Index dim = *rc::gen::inRange<Index>(1, 12).as("dim");
    OnlineOptions options = draw_forgetting();
    options.kept_rank = dim + *rc::gen::inRange<Index>(0, 3).as("room");
    OnlineTarget<TypeParam> target;
    Definition truth;
    run<TypeParam>(options, draw_stream(dim, *rc::gen::element(0.0, 100.0).as("mean")), target, truth);
    require_covariance(target, truth);
  });
}

// While no more than k samples are old, whatever d is.
TYPED_TEST(Online, WithFewOldSamplesIsTheWeightedCovariance) {
  rc::detail::checkGTest([] {
    OnlineOptions options = draw_forgetting();
    options.kept_rank = 80;  // 8 batches of at most 8 samples, and a row for each mean
    OnlineTarget<TypeParam> target;
    Definition truth;
    run<TypeParam>(options, draw_stream(90, 3), target, truth);
    require_covariance(target, truth);
  });
}

// With little room: the moments stay exact, Sigma stays a covariance and is off by no more than what was dropped.
TYPED_TEST(Online, WithLittleRoomKeepsMeanVariancesTraceAndCounts) {
  rc::detail::checkGTest([] {
    const Index dim = *rc::gen::inRange<Index>(2, 45).as("dim");
    OnlineOptions options = draw_forgetting();
    options.kept_rank = *rc::gen::inRange<Index>(1, 10).as("kept");
    OnlineTarget<TypeParam> target;
    Definition truth;
    run<TypeParam>(options, draw_stream(dim, *rc::gen::element(0.0, 100.0).as("mean")), target, truth);
    require_moments(target, truth);
  });
}

TYPED_TEST(Online, AWindowIsTheCovarianceOfItsBatches) {
  rc::detail::checkGTest([] {
    const Index dim = *rc::gen::inRange<Index>(1, 12).as("dim");
    OnlineOptions options;
    options.window = *rc::gen::inRange<Index>(1, 5).as("window");
    options.kept_rank = 1;
    std::vector<Batch> stream = draw_stream(dim, 3);
    OnlineTarget<TypeParam> target(options);
    for (const Batch& batch : stream) target.update(block<TypeParam>(batch.samples), batch.weights);
    Definition truth;
    const std::size_t first = stream.size() - std::min(stream.size(), std::size_t(options.window));
    for (std::size_t i = first; i < stream.size(); ++i)
      truth.add(wide(block<TypeParam>(stream[i].samples)), stream[i].weights, 1);
    RC_PRE(truth.weights.size() > 1 && truth.effective() > 1.5L);
    require_covariance(target, truth);
  });
}

// Samples on k directions and noise that each feature has for itself: what is kept is all there is to know.
TEST(Online, KeepsTheLeadingDirectionsOfALongStream) {
  constexpr Index d = 120, k = 6, n = 50;
  Draw draw(5);
  const Matrix directions = draw.orthonormal(d, k) * 10;
  OnlineTarget<double> target({.half_life = 30, .kept_rank = 2 * k});
  Definition truth;
  for (int i = 0; i < 60; ++i) {
    const Matrix batch = draw.gaussian(n, k) * directions.transpose() + draw.gaussian(n, d);
    target.update(block<double>(batch));
    truth.add(batch, {}, std::exp2(-1 / 30.0));
  }
  require_moments(target, truth);
  const RealMatrix sigma = truth.sigma();
  const RealVector lambda = eigenvalues(sigma), found = eigenvalues(entries(target));
  // What is dropped is noise, of which the largest eigenvalue is lambda(k); it cannot move Sigma by more.
  EXPECT_LE(spectral_norm(entries(target) - sigma), lambda(k));
  for (Index i = 0; i < k; ++i) EXPECT_LE(std::abs(found(i) - lambda(i)), lambda(k)) << i;
}

// Nothing before had the direction, and the samples along it come in pairs that cancel where they are added up as they
// are: it is found all the same.
TEST(Online, FindsADirectionThatNothingBeforeHad) {
  constexpr Index d = 120, n = 24, kept = 4, mixed = 6;  // of the 20 rows that hold 4 directions a third look for more
  Draw draw(14);
  OnlineTarget<double> target({.half_life = 10, .kept_rank = kept});
  Definition truth;
  const auto add = [&](const Matrix& batch) {
    target.update(block<double>(batch));
    truth.add(batch, {}, std::exp2(-0.1));
  };
  for (int i = 0; i < 10; ++i) {
    Matrix batch = Matrix::Zero(n, d);
    batch.leftCols(d / 2) = draw.gaussian(n, d / 2);
    add(batch);
  }
  Vector direction = Vector::Zero(d);
  direction.tail(d / 2).setConstant(1 / std::sqrt(double(d / 2)));
  Matrix batch(n, d);
  for (Index i = 0; i < n; ++i) batch.row(i) = (i / mixed % 2 == 0 ? 20 : -20) * direction.transpose();
  for (int i = 0; i < 5; ++i) add(batch);
  require_moments(target, truth);
  const RealVector u = real(direction);
  const Real along = u.dot(truth.sigma() * u);
  EXPECT_LE(std::abs(u.dot(entries(target) * u) - along), 0.05L * along);
}

// Halves at the half-life, in both units; the effective count of a plain forgetting factor g = 1 - f is (2 - g)/g.
TEST(Online, HalfLifeAndEffectiveCount) {
  const Block<double> batch = Block<double>::Random(4, 3);
  for (const auto& [unit, half_life] :
       {std::pair{HalfLifeUnit::batches, 5.0}, std::pair{HalfLifeUnit::samples, 20.0}}) {
    OnlineTarget<double> target({.half_life = half_life, .unit = unit});
    for (int i = 0; i < 6; ++i) target.update(batch);
    Real expected = 0;
    for (int i = 0; i < 6; ++i) expected += 4 * std::pow(0.5L, i / 5.0L);
    EXPECT_LE(std::abs(target.weight() - expected), 30 * eps<double> * expected);
  }
  const double forgetting = 0.05;
  OnlineTarget<double> target({.half_life = -1 / std::log2(1 - forgetting)});
  for (int i = 0; i < 2000; ++i) target.update(batch.topRows(1));
  const double expected = (2 - forgetting) / forgetting;
  EXPECT_LE(std::abs(target.effective_samples() - expected), 30 * eps<double> * expected);
}

TEST(Online, InfiniteHalfLifeDependsNeitherOnOrderNorOnCuts) {
  constexpr Index d = 25, n = 60;
  Draw draw(8);
  const Matrix all = features_with(n, eigenvalues_of(Spectrum::graded, d), 50, draw);
  const Matrix reversed = all.colwise().reverse();
  Definition truth;
  truth.add(all, {}, 1);
  for (const Matrix& order : {all, reversed}) {
    for (const Index size : {1, 7, 20, 60}) {
      for (const Index kept : {d, Index(4)}) {
        OnlineTarget<double> target({.kept_rank = kept});
        for (Index first = 0; first < n; first += size)
          target.update(block<double>(order.middleRows(first, std::min(size, n - first))));
        if (kept == d)
          require_covariance(target, truth);
        else
          require_moments(target, truth);
      }
    }
  }
}

// 10,000 batches: no error piles up, memory does not grow.
TYPED_TEST(Online, TenThousandBatches) {
  constexpr Index d = 24, n = 5, kept = 4, batches = 10000;
  for (const double half_life : {never, 20.0}) {
    OnlineTarget<TypeParam> target({.half_life = half_life, .kept_rank = kept});
    Draw draw(9);
    Definition truth;
    const Vector lambda = eigenvalues_of(Spectrum::power_law, d);
    truth.samples.resize(n * batches, d);
    truth.weights.resize(n * batches);
    for (Index i = 0; i < batches; ++i) {
      const Block<TypeParam> batch = block<TypeParam>(features_with(n, lambda, 10, draw));
      target.update(batch);
      truth.samples.middleRows(i * n, n) = wide(batch);
      truth.weights.segment(i * n, n).setConstant(std::pow(0.5, double(batches - 1 - i) / half_life));
    }
    // A sum of N terms in double rounds by up to N eps; that is the limit of what was summed, in either order.
    const RealMatrix sigma = truth.sigma();
    const Real limit = rounding<TypeParam>(truth) + Real(batches) * eps<double> * sigma.trace();
    EXPECT_LE(std::abs(target.trace() - sigma.trace()), limit);
    EXPECT_LE((real(target.deviations()).cwiseAbs2() - sigma.diagonal()).cwiseAbs().maxCoeff(), limit);
    EXPECT_LE((real(target.mean()) - truth.mean()).norm(), Real(batches) * eps<double> * truth.mean().norm());
    const RealMatrix found = entries(target);
    EXPECT_LE(std::abs(found.trace() - sigma.trace()), limit);
    EXPECT_GE(eigenvalues((found + found.transpose()) / 2)(d - 1), -limit);
    EXPECT_EQ(target.version(), std::uint64_t(batches));
    EXPECT_LE(target.parts().old.front().rows->rows(), kept + 16);
    EXPECT_EQ(target.parts().recent.size(), 1u);
  }
}

// Where nothing is lost rounding alone decides whether rows exceed their variances; it must not pile up either way.
TYPED_TEST(Online, RoundingOfOldRowsDoesNotPileUp) {
  constexpr Index d = 3, n = 4;
  OnlineTarget<TypeParam> target({.kept_rank = d});
  Draw draw(12);
  for (Index i = 0; i < 3000; ++i) {
    target.update(block<TypeParam>(draw.gaussian(n, d)));
    if (i == 0) continue;
    const auto& old = target.parts().old.front();
    const RealVector taken = real(*old.rows).cwiseAbs2().colwise().sum().transpose();
    for (Index j = 0; j < d; ++j) ASSERT_LE(taken(j), Real(old.variances(j)) * (1 + 4 * eps<TypeParam>)) << i;
  }
}

TYPED_TEST(Online, AnyScaleOfValuesAndWeights) {
  const double largest = std::is_same_v<TypeParam, float> ? 1e17 : 1e150;
  Draw draw(10);
  const Matrix z = features_with(40, eigenvalues_of(Spectrum::power_law, 30), 1, draw);
  for (const double scale : {1.0, largest, 1 / largest}) {
    for (const double weight : {1.0, 1e100, 1e-100}) {
      OnlineTarget<TypeParam> target({.half_life = 2, .kept_rank = 5});
      Definition truth;
      for (Index i = 0; i < 4; ++i) {
        const Block<TypeParam> rows = block<TypeParam>(scale * z.middleRows(10 * i, 10));
        target.update(rows, Vector::Constant(10, weight));
        truth.add(wide(rows), {}, std::sqrt(0.5));
      }
      require_moments(target, truth);
    }
  }
}

TEST(Online, VersionChangesWithEachBatchAndCopiesStayAsTheyAre) {
  Draw draw(3);
  OnlineTarget<double> target({.half_life = 4, .kept_rank = 2});
  EXPECT_EQ(target.version(), 0u);
  EXPECT_EQ(target.dim(), 0);
  EXPECT_EQ(target.effective_samples(), 0);
  EXPECT_TRUE(target.update(block<double>(draw.gaussian(1, 5))));
  EXPECT_EQ(target.trace(), 0);  // one sample
  EXPECT_EQ(entries(target).norm(), 0);
  EXPECT_TRUE(target.update(block<double>(draw.gaussian(6, 5))));
  EXPECT_EQ(TargetRef<double>(target).version(), 2u);
  const OnlineTarget<double> copy = target;
  const RealMatrix before = entries(copy);
  EXPECT_TRUE(target.update(block<double>(draw.gaussian(6, 5))));
  EXPECT_EQ(target.version(), 3u);
  EXPECT_EQ(copy.version(), 2u);
  EXPECT_EQ(entries(copy), before);
}

TEST(Online, ABadBatchChangesNothing) {
  Draw draw(4);
  OnlineTarget<double> target({.half_life = 4, .kept_rank = 2});
  const Block<double> good = block<double>(draw.gaussian(6, 3));
  for (int i = 0; i < 3; ++i) target.update(good);
  const RealMatrix before = entries(target);
  Block<double> bad = good;
  bad(4, 1) = std::nan("");
  expect_throws_naming<std::invalid_argument>({"batch[4, 1]"}, [&] { target.update(bad); });
  expect_throws_naming<std::invalid_argument>({"4 columns", "dimension 3"},
                                              [&] { target.update(Block<double>::Zero(2, 4)); });
  expect_throws_naming<std::invalid_argument>({"5 weights", "6 samples"},
                                              [&] { target.update(good, Vector::Ones(5)); });
  expect_throws_naming<std::invalid_argument>({"weights[2]", "-1"}, [&] {
    Vector weights = Vector::Ones(6);
    weights(2) = -1;
    target.update(good, weights);
  });
  expect_throws_naming<std::invalid_argument>({"1e+200"}, [&] { target.update(good, Vector::Constant(6, 1e200)); });
  EXPECT_FALSE(target.update(Block<double>(0, 3)));
  EXPECT_FALSE(target.update(good, Vector::Zero(6)));
  EXPECT_EQ(target.version(), 3u);
  EXPECT_EQ(entries(target), before);
}

TEST(Online, BadOptionsAreNamed) {
  const auto refused = [](const OnlineOptions& options, std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { OnlineTarget<double>{options}; });
  };
  refused({.half_life = 0}, {"half_life is 0"});
  refused({.half_life = -3}, {"half_life is -3"});
  refused({.half_life = std::nan("")}, {"half_life is nan"});
  refused({.window = -1}, {"window is -1"});
  refused({.half_life = 3, .window = 2}, {"window of 2", "half-life of 3", "one of the two"});
  refused({.exact_batches = 0}, {"exact_batches is 0"});
  refused({.kept_rank = 0}, {"kept_rank is 0"});
}

// The contract of every target, in each of the states of a stream. The truth where something is lost is the operator
// itself on the unit vectors, held against the definition above.
template <class T, Index kept, Index window>
struct Stream {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Draw draw(6);
    OnlineTarget<Scalar> target(
        {.half_life = window > 0 ? never : 2.5, .window = window, .kept_rank = kept > 0 ? kept : dim});
    const Vector lambda = eigenvalues_of(Spectrum::power_law, dim);
    for (const Index rows : {7, 1, 30, 12}) target.update(block<Scalar>(features_with(rows, lambda, 2, draw)));
    const RealMatrix found = entries(target);
    const RealMatrix sigma = (found + found.transpose()) / 2;
    return made<Scalar>(std::move(target), sigma);
  }
};
template <class T>
using Makers = ::testing::Types<Stream<T, 0, 0>, Stream<T, 1, 0>, Stream<T, 8, 0>, Stream<T, 1, 2>>;
INSTANTIATE_TYPED_TEST_SUITE_P(OnlineFloat, Contract, Makers<float>);
INSTANTIATE_TYPED_TEST_SUITE_P(OnlineDouble, Contract, Makers<double>);

}  // namespace
}  // namespace itspace::test
