// SPDX-License-Identifier: Apache-2.0
//
// Following a stream: the factor and its records against the oracle of the target as it is at each batch.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/online.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

template <class Scalar>
Matrix entries(const OnlineTarget<Scalar>& target) {
  Block<Scalar> out(target.dim(), target.dim());
  target.apply(Block<Scalar>::Identity(target.dim(), target.dim()), out);
  const Matrix sigma = wide(out);
  return (sigma + sigma.transpose()) / 2;
}

// Batches around a mean of 5 whose covariance is lambda in a basis of its own.
class Source {
 public:
  Source(Index dim, std::uint64_t seed, double scale = 1)
      : draw_(seed), factor_(factor_with_spectrum(scale * eigenvalues_of(Spectrum::power_law, dim), draw_)) {}

  Matrix batch(Index rows) {
    Matrix out = draw_.gaussian(rows, factor_.cols()) * factor_.transpose();
    out.array() += 5;
    return out;
  }
  Matrix covariance() const { return factor_ * factor_.transpose(); }

 private:
  Draw draw_;
  Matrix factor_;
};

template <class T>
class Aligner : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Aligner, Scalars);

TYPED_TEST(Aligner, EveryRowIsThatOfTheTargetAtItsBatch) {
  constexpr Index d = 24, r = 3;
  Source source(d, 1);
  OnlineAligner<TypeParam> aligner({.rank = r, .stream = {.half_life = 5}});
  for (std::uint64_t i = 1; i <= 12; ++i) {
    SCOPED_TRACE(i);
    const Observation seen = aligner.observe(block<TypeParam>(source.batch(10)));
    EXPECT_EQ(seen.batch, i);
    EXPECT_EQ(seen.samples, 10);
    EXPECT_FALSE(seen.skipped);
    EXPECT_EQ(seen.warning, "");
    EXPECT_EQ(seen.effective_samples, aligner.target().effective_samples());
    ASSERT_TRUE(seen.trace);
    EXPECT_TRUE(seen.trace->certified()) << seen.trace->reason;
    ASSERT_EQ(seen.trace->steps.size(), 3u);
    EXPECT_EQ(seen.trace->target_trace, aligner.target().trace());
    const Oracle oracle = Oracle::of_covariance(entries(aligner.target()));
    const Step& best = seen.trace->steps[std::size_t(seen.trace->best)];
    EXPECT_EQ(best.objective, aligner.objective());
    EXPECT_EQ(std::uint64_t(best.target_version), i);
    EXPECT_LE(std::abs(aligner.objective() - oracle.objective(wide(aligner.factor()))),
              best.resolution + Real(d) * eps_units<TypeParam>(oracle, wide(aligner.factor())));
    ASSERT_EQ(aligner.factor().rows(), d);
    ASSERT_EQ(aligner.factor().cols(), r);
  }
  EXPECT_EQ(*aligner.options().stream.kept_rank, 4 * r);
}

// A stream that repeats itself ends where the batch answer is: at the floor of its covariance.
TEST(Aligner, AConstantStreamConvergesToTheBatchAnswer) {
  constexpr Index d = 20, r = 3, n = 60;
  Source source(d, 2);
  const Block<double> batch = block<double>(source.batch(n));
  OnlineAligner<double> aligner({.rank = r, .stream = {.half_life = 4, .kept_rank = d}});
  for (int i = 0; i < 400; ++i) aligner.observe(batch);
  // All batches are one: the sum of weights divides out but for the count, 1 - sum w^2/(sum w)^2.
  const Oracle one = Oracle::of_covariance(wide(covariance<double>(batch)));
  const double effective = aligner.target().effective_samples();
  const Real scale = Real(n - 1) / Real(n) / (1 - 1 / Real(effective));
  const Real floor = scale * one.floor(r);
  EXPECT_LE(std::abs(aligner.objective() - floor), 1e-6L * floor);
}

// A step change: within one half-life of batches the objective against the new covariance is nearer to its end than to
// its beginning.
// Two features have nearly all of the variance: float32 does not see the others beside them, and float64 does. Data
// whose squares vanish in float32 are not seen either.
TEST(Aligner, SaysWhereFloat32DoesNotResolveTheObjective) {
  const auto warning_of = []<class Scalar>(Scalar, double size, double largest) {
    Matrix batch = Draw(3).gaussian(60, 10);
    batch.leftCols(2) *= largest;
    OnlineAligner<Scalar> aligner({.rank = 3, .stream = {.half_life = 5}});
    aligner.observe(block<Scalar>(size * batch));
    return aligner.observe(block<Scalar>(size * batch)).warning;
  };
  EXPECT_EQ(warning_of(float(), 1, 1), "");
  EXPECT_NE(warning_of(float(), 1, 1e5).find("float32 resolves W2^2 only to"), std::string::npos);
  EXPECT_NE(warning_of(float(), 1e-25, 1).find("Follow the stream in float64"), std::string::npos);
  EXPECT_EQ(warning_of(double(), 1, 1e5), "");
  EXPECT_EQ(warning_of(double(), 1e-25, 1), "");
}

TEST(Aligner, AStepChangeIsFollowedWithinTheHalfLife) {
  constexpr Index d = 20, r = 3, n = 400, half_life = 6;
  Source before(d, 3), after(d, 4);
  OnlineAligner<double> aligner({.rank = r, .stream = {.half_life = half_life, .kept_rank = d}});
  for (int i = 0; i < 60; ++i) aligner.observe(block<double>(before.batch(n)));
  const Oracle truth = Oracle::of_covariance(after.covariance());
  const Real at_change = truth.objective(wide(aligner.factor()));
  for (int i = 0; i < half_life; ++i) aligner.observe(block<double>(after.batch(n)));
  const Real floor = truth.floor(r);
  EXPECT_LE(truth.objective(wide(aligner.factor())) - floor, (at_change - floor) / 2);
  for (int i = 0; i < 10 * half_life; ++i) aligner.observe(block<double>(after.batch(n)));
  EXPECT_LE(truth.objective(wide(aligner.factor())) - floor, (at_change - floor) / 20);
}

TEST(Aligner, MapsSamplesIntoTheFrameOfTheSource) {
  constexpr Index d = 12, r = 3;
  Source from(d, 5), to(d, 6);
  const Block<double> source = block<double>(to.batch(500));
  const LowRankGaussian source_model =
      model_of<double>(FeaturesTarget<double>(source), start_from_features<double>(source, r), mean<double>(source));
  OnlineAligner<double> aligner({.rank = r, .steps = 5});
  Block<double> batch;
  for (int i = 0; i < 20; ++i) {
    batch = block<double>(from.batch(100));
    aligner.observe(batch);
  }
  const LowRankGaussian model = aligner.model();
  EXPECT_EQ(model.samples, aligner.target().effective_samples());
  EXPECT_EQ(model.deviations, aligner.target().deviations());
  EXPECT_EQ(model.mean, aligner.target().mean());
  const TransportMap expected(model, source_model, MapKind::monge), found = aligner.map(source_model);
  EXPECT_EQ(found.matrix(), expected.matrix());
  EXPECT_EQ(aligner.map(source_model, MapKind::mean).kind(), MapKind::mean);
}

TEST(Aligner, BeginsWhereItIsTold) {
  constexpr Index d = 8, r = 2;
  Source source(d, 8);
  const Block<double> start = block<double>(Draw(9).gaussian(d, r)), batch = block<double>(source.batch(30));
  OnlineAligner<double> aligner({.rank = r});
  expect_throws_naming<std::invalid_argument>({"8 x 3", "rank = 2"},
                                              [&] { aligner.begin_at(Block<double>::Zero(d, 3)); });
  aligner.begin_at(start);
  EXPECT_EQ(aligner.factor(), start);
  expect_throws_naming<std::invalid_argument>({"5 columns", "8 rows"},
                                              [&] { aligner.observe(Block<double>::Zero(3, 5)); });
  const Observation seen = aligner.observe(batch);
  const Oracle oracle = Oracle::of_covariance(entries(aligner.target()));
  const Step& first = seen.trace->steps.front();
  EXPECT_LE(std::abs(first.objective - oracle.objective(wide(start))),
            first.resolution + Real(d) * eps_units<double>(oracle, wide(start)));
  expect_throws_naming<std::invalid_argument>({"1 batches already"}, [&] { aligner.begin_at(start); });
}

TEST(Aligner, NothingToSeeIsSkippedAndABadBatchChangesNothing) {
  Source source(6, 7);
  OnlineAligner<double> aligner({.rank = 2, .drift = DriftOptions{.reference_batches = 4}});
  expect_throws_naming<std::invalid_argument>({"no factor yet"}, [&] { aligner.factor(); });
  EXPECT_TRUE(std::isnan(aligner.objective()));
  // One sample is no covariance; a second that does not differ gives none either.
  const Block<double> one = block<double>(source.batch(1));
  EXPECT_FALSE(aligner.observe(one).trace);
  EXPECT_FALSE(aligner.observe(one).trace);
  EXPECT_TRUE(aligner.observe(block<double>(source.batch(5))).trace);
  const Block<double> factor = aligner.factor();
  const Matrix sigma = entries(aligner.target());

  const Observation nothing = aligner.observe(Block<double>(0, 6));
  EXPECT_TRUE(nothing.skipped);
  EXPECT_NE(nothing.warning.find("no rows"), std::string::npos);
  EXPECT_EQ(nothing.batch, 3u);
  EXPECT_TRUE(aligner.observe(one, Vector::Zero(1)).skipped);
  Block<double> bad = block<double>(source.batch(5));
  bad(3, 2) = std::numeric_limits<double>::infinity();
  expect_throws_naming<std::invalid_argument>({"batch[3, 2]"}, [&] { aligner.observe(bad); });
  expect_throws_naming<std::invalid_argument>({"7 columns", "dimension 6"},
                                              [&] { aligner.observe(Block<double>::Zero(3, 7)); });
  expect_throws_naming<std::invalid_argument>({"rank is 2", "1 columns"},
                                              [&] { aligner.observe(Block<double>::Zero(3, 1)); });
  expect_throws_naming<std::invalid_argument>({"2 weights"}, [&] { aligner.observe(one, Vector::Ones(2)); });
  EXPECT_EQ(aligner.factor(), factor);
  EXPECT_EQ(entries(aligner.target()), sigma);
  EXPECT_EQ(aligner.target().version(), 3u);
  EXPECT_EQ(aligner.parts().drift->parts().counts.size(), 3u);
}

TEST(Aligner, BadOptionsAreNamed) {
  const auto refused = [](const OnlineAlignerOptions& options, std::initializer_list<std::string> parts) {
    expect_throws_naming<std::invalid_argument>(parts, [&] { OnlineAligner<double>{options}; });
  };
  refused({.rank = 0}, {"rank is 0"});
  refused({.steps = -1}, {"steps is -1"});
  refused({.stream = {.half_life = -2}}, {"half_life is -2"});
  refused({.drift = DriftOptions{.run_length = 1}}, {"run_length is 1"});
  refused({.drift = DriftOptions{.reference_batches = 3}}, {"reference_batches is 3"});
}

}  // namespace
}  // namespace itspace::test
