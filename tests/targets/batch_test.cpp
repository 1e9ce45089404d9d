// SPDX-License-Identifier: Apache-2.0
//
// A batch is what align makes of each problem alone on one thread, bit for bit, whatever the number of threads; and one
// bad problem is no other's business.
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/batch.hpp>
#include <itspace/covariance.hpp>
#include <itspace/random.hpp>
#include <itspace/threads.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace itspace::test {
namespace {

template <Storage Scalar>
constexpr Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();

// NaN is NaN here.
template <class Derived, class Other>
bool same_bits(const Eigen::MatrixBase<Derived>& a, const Eigen::MatrixBase<Other>& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      if (!(a(i, j) == b(i, j)) && !(std::isnan(a(i, j)) && std::isnan(b(i, j)))) return false;
  return true;
}

// Covariances of any spectrum, features with them, and starts, stacked.
template <Storage Scalar>
struct Stacks {
  Index count, dim, rank, samples;
  Block<Scalar> sigma, features, start;

  Stacks(Index problems, Index d, Index r, std::uint64_t seed)
      : count(problems),
        dim(d),
        rank(r),
        samples(d + 3),
        sigma(problems * d, d),
        features(problems * samples, d),
        start(problems * d, r) {
    for (Index i = 0; i < count; ++i) {
      const Spectrum spectrum = std::begin(all_spectra)[static_cast<std::size_t>(i) % std::size(all_spectra)];
      const auto p = make_problem<Scalar>({dim, rank, seed + static_cast<std::uint64_t>(i), spectrum});
      sigma.middleRows(i * dim, dim) = p.sigma;
      start.middleRows(i * dim, dim) = p.start;
    }
    Random(seed).fill_normal<Scalar>(features);
  }

  MatrixStack<Scalar> covariances() const { return {sigma.data(), count, dim, dim}; }
  MatrixStack<Scalar> samples_of_each() const { return {features.data(), count, samples, dim}; }
  MatrixStack<Scalar> starts() const { return {start.data(), count, dim, rank}; }
  BlockView<Scalar> sigma_of(Index i) { return sigma.middleRows(i * dim, dim); }
  BlockView<Scalar> start_of(Index i) { return start.middleRows(i * dim, dim); }
};

template <Storage Scalar>
void expect_as_alone(const BatchResult<Scalar>& batch, Index i, const Result<Scalar>& alone, const std::string& what) {
  const auto at = static_cast<std::size_t>(i);
  EXPECT_TRUE(same_bits(batch.factor(i), alone.factor)) << what;
  Vector objectives = Vector::Constant(batch.objectives.cols(), not_a_number);
  for (const Step& step : alone.trace.steps) objectives(step.index) = step.objective;
  EXPECT_TRUE(same_bits(batch.objectives.row(i).transpose(), objectives)) << what;
  EXPECT_EQ(batch.status[at], alone.status()) << what;
  EXPECT_EQ(batch.reasons[at], alone.trace.reason) << what;
  EXPECT_EQ(batch.best[at], alone.trace.best) << what;
  EXPECT_EQ(batch.certified[at] != 0, alone.trace.certified()) << what;
}

// The four ways to pose a batch, each against a loop of lone runs on one thread.
template <Storage Scalar>
void expect_loop_of_align(const Stacks<Scalar>& stacks, const AlignOptions& options, const std::string& what) {
  for (const StackOf kind : {StackOf::covariances, StackOf::features}) {
    const bool features = kind == StackOf::features;
    const MatrixStack<Scalar> targets = features ? stacks.samples_of_each() : stacks.covariances();
    const BatchOptions batch{.targets = kind};
    const auto from_starts = align_batch<Scalar>(targets, stacks.starts(), options, batch);
    const auto from_random = align_batch<Scalar>(targets, stacks.rank, options, batch);
    const ThreadScope one(1);
    for (Index i = 0; i < stacks.count; ++i) {
      const std::string here = what + (features ? " features " : " covariance ") + std::to_string(i);
      const auto compare = [&](TargetRef<Scalar> target) {
        expect_as_alone<Scalar>(from_starts, i, align<Scalar>(target, stacks.starts()[i], options), here);
        expect_as_alone<Scalar>(from_random, i, align<Scalar>(target, stacks.rank, options), here + " random start");
      };
      if (features) {
        const FeaturesTarget<Scalar> target(targets[i]);
        compare(target);
      } else {
        const DenseTarget<Scalar> target(targets[i]);
        compare(target);
      }
    }
  }
}

template <class Scalar>
class Batch : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Batch, Scalars);

TYPED_TEST(Batch, IsALoopOfAlign) {
  Draw draw(7);
  for (int round = 0; round < 12; ++round) {
    const Index d = 1 + static_cast<Index>(draw.uniform() * 20), r = 1 + static_cast<Index>(draw.uniform() * double(d));
    const Stacks<TypeParam> stacks(9, d, r, static_cast<std::uint64_t>(round));
    for (const Solver solver : {Solver::paper, Solver::ritz}) {
      AlignOptions options;
      options.solver = solver;
      options.steps = round % 4;
      options.seed = static_cast<std::uint64_t>(round);
      const ThreadScope threads(1 + round % 4);
      expect_loop_of_align<TypeParam>(
          stacks, options, std::string(name(solver)) + " d=" + std::to_string(d) + " r=" + std::to_string(r));
    }
  }
}

TYPED_TEST(Batch, TakesTheOptionsOfAlign) {
  const Stacks<TypeParam> stacks(5, 11, 3, 100);
  AlignOptions tolerant{.steps = 30};
  tolerant.tolerance = 0.5;  // ends early: the rest of the row is NaN
  expect_loop_of_align<TypeParam>(stacks, tolerant, "tolerance");
  AlignOptions searching{.steps = 3};
  searching.step_size = StepSize::line_search();
  expect_loop_of_align<TypeParam>(stacks, searching, "line search");
  AlignOptions probing{.steps = 4};
  probing.probe = true;
  expect_loop_of_align<TypeParam>(stacks, probing, "probe");
  AlignOptions unevaluated{.steps = 2};
  unevaluated.evaluate_last = false;
  expect_loop_of_align<TypeParam>(stacks, unevaluated, "last not evaluated");
  AlignOptions by_root{.steps = 2};
  by_root.route = Route::root;
  expect_loop_of_align<TypeParam>(stacks, by_root, "route root");
}

// Large enough that a lone run would cut its products into parts, and alone in its batch: the bits stay those of one
// thread, whichever thread it is on.
TYPED_TEST(Batch, IsThatOfOneThreadOnAnyNumber) {
  const Stacks<TypeParam> stacks(3, 150, 20, 200);
  for (const Index count : {1, 3})
    for (const Index threads : {1, 2, 3, 4}) {
      const ThreadScope scope(threads);
      const MatrixStack<TypeParam> targets{stacks.sigma.data(), count, 150, 150};
      const MatrixStack<TypeParam> starts{stacks.start.data(), count, 150, 20};
      const auto batch = align_batch<TypeParam>(targets, starts);
      const ThreadScope one(1);
      for (Index i = 0; i < count; ++i) {
        const DenseTarget<TypeParam> target(targets[i]);
        expect_as_alone<TypeParam>(batch, i, align<TypeParam>(target, starts[i]), std::to_string(threads));
      }
    }
}

TYPED_TEST(Batch, OneBadProblemIsNoOthersBusiness) {
  Stacks<TypeParam> stacks(40, 6, 2, 300);
  const Stacks<TypeParam> good = stacks;
  stacks.sigma_of(3)(2, 4) = nan<TypeParam>;
  stacks.sigma_of(17)(5, 1) += TypeParam(10) * stacks.sigma_of(17).norm();
  stacks.sigma_of(18) *= -1;
  stacks.start_of(20)(0, 0) = std::numeric_limits<TypeParam>::infinity();
  stacks.sigma_of(39).diagonal()(5) = -stacks.sigma_of(39).norm();
  for (const Index threads : {1, 3}) {
    const ThreadScope scope(threads);
    const auto batch = align_batch<TypeParam>(stacks.covariances(), stacks.starts());
    const std::vector<std::pair<Index, Status>> bad = {{3, Status::not_finite},
                                                       {17, Status::not_a_covariance},
                                                       {18, Status::not_a_covariance},
                                                       {20, Status::not_finite},
                                                       {39, Status::not_a_covariance}};
    const ThreadScope one(1);
    for (Index i = 0; i < stacks.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto found = std::find_if(bad.begin(), bad.end(), [&](const auto& entry) { return entry.first == i; });
      if (found == bad.end()) {
        const DenseTarget<TypeParam> target(good.covariances()[i]);
        expect_as_alone<TypeParam>(batch, i, align<TypeParam>(target, good.starts()[i]), std::to_string(i));
        continue;
      }
      EXPECT_EQ(batch.status[at], found->second) << i;
      EXPECT_EQ(batch.certified[at], 0) << i;
      EXPECT_TRUE(same_bits(batch.factor(i), stacks.starts()[i])) << i;
      EXPECT_TRUE(batch.objectives.row(i).array().isNaN().all()) << i;
      if (i != 20) {  // of a start the status says all
        EXPECT_NE(batch.reasons[at], "") << i;
      }
    }
    EXPECT_NE(batch.reasons[3].find("[2, 4] is nan"), std::string::npos) << batch.reasons[3];
    EXPECT_NE(batch.reasons[17].find("[5, 1]"), std::string::npos) << batch.reasons[17];
  }
}

TYPED_TEST(Batch, WithoutAStartABadProblemHasNoFactor) {
  Stacks<TypeParam> stacks(3, 5, 2, 400);
  stacks.sigma_of(1)(0, 0) = nan<TypeParam>;
  const auto batch = align_batch<TypeParam>(stacks.covariances(), 2);
  EXPECT_EQ(batch.status[1], Status::not_finite);
  EXPECT_TRUE(batch.factor(1).array().isNaN().all());
  EXPECT_TRUE(batch.factor(0).allFinite() && batch.factor(2).allFinite());
}

// As NumPy's users have them: products that were rounded on the way.
TYPED_TEST(Batch, AveragesAwayTheAsymmetryOfRounding) {
  Stacks<TypeParam> stacks(3, 8, 3, 500);
  const TypeParam largest = stacks.sigma_of(1).cwiseAbs().maxCoeff();
  stacks.sigma_of(1)(2, 6) += largest * std::numeric_limits<float>::epsilon();
  Block<TypeParam> averaged = stacks.covariances()[1];
  symmetrise<TypeParam>(averaged);
  const auto batch = align_batch<TypeParam>(stacks.covariances(), stacks.starts());
  const ThreadScope one(1);
  const DenseTarget<TypeParam> target(averaged);
  expect_as_alone<TypeParam>(batch, 1, align<TypeParam>(target, stacks.starts()[1]), "averaged");
}

TYPED_TEST(Batch, OfNothingIsNothing) {
  for (const StackOf kind : {StackOf::covariances, StackOf::features}) {
    const auto batch = align_batch<TypeParam>({nullptr, 0, 4, 4}, {nullptr, 0, 4, 2}, {.steps = 3}, {.targets = kind});
    EXPECT_EQ(batch.factors.rows(), 0);
    EXPECT_EQ(batch.factors.cols(), 2);
    EXPECT_EQ(batch.objectives.rows(), 0);
    EXPECT_EQ(batch.objectives.cols(), 4);
    EXPECT_TRUE(batch.status.empty());
    EXPECT_EQ(align_batch<TypeParam>({nullptr, 0, 4, 4}, 2, {}, {.targets = kind}).count, 0);
  }
}

TEST(MixedBatch, IsALoopOfAlign) {
  const Stacks<float> stacks(6, 9, 4, 600);
  const Block<double> start = stacks.start.cast<double>();
  const MatrixStack<double> starts{start.data(), 6, 9, 4};
  const auto batch = align_batch<double, float>(stacks.covariances(), starts);
  const auto of_features =
      align_batch<double, float>(stacks.samples_of_each(), starts, {}, {.targets = StackOf::features});
  const ThreadScope one(1);
  for (Index i = 0; i < 6; ++i) {
    const DenseTarget<double, float> target(stacks.covariances()[i]);
    expect_as_alone<double>(batch, i, align<double>(target, starts[i]), "mixed");
    const FeaturesTarget<double, float> features(stacks.samples_of_each()[i]);
    expect_as_alone<double>(of_features, i, align<double>(features, starts[i]), "mixed features");
  }
}

TEST(BatchOf, TracesOnRequest) {
  const Stacks<double> stacks(4, 7, 2, 700);
  EXPECT_TRUE(align_batch<double>(stacks.covariances(), 2).traces.empty());
  const auto batch = align_batch<double>(stacks.covariances(), stacks.starts(), {.steps = 3}, {.keep_traces = true});
  ASSERT_EQ(batch.traces.size(), 4u);
  for (Index i = 0; i < 4; ++i) {
    const DenseTarget<double> target(stacks.covariances()[i]);
    const Trace alone = align<double>(target, stacks.starts()[i], {.steps = 3}).trace;
    const Trace& trace = batch.traces[static_cast<std::size_t>(i)];
    ASSERT_EQ(trace.steps.size(), alone.steps.size());
    EXPECT_EQ(trace.status, alone.status);
    EXPECT_EQ(trace.passes_total, alone.passes_total);
    for (std::size_t k = 0; k < alone.steps.size(); ++k)
      EXPECT_EQ(trace.steps[k].certificate_gap, alone.steps[k].certificate_gap);
  }
}

TEST(BatchOf, ProblemsThatWereNotBegunKeepTheirStarts) {
  const Stacks<double> stacks(60, 5, 2, 800);
  for (const Index threads : {1, 3}) {
    const ThreadScope scope(threads);
    int asked = 0;
    BatchOptions options;
    options.should_stop = [&] { return ++asked > 10; };
    // Route gram: one problem after the other.
    const auto batch =
        align_batch<double>(stacks.covariances(), stacks.starts(), {.steps = 2, .route = Route::gram}, options);
    Index begun = 0;
    for (Index i = 0; i < stacks.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (batch.status[at]) {
        ++begun;
        continue;
      }
      EXPECT_TRUE(same_bits(batch.factor(i), stacks.starts()[i]));
      EXPECT_EQ(batch.certified[at], 0);
      EXPECT_NE(batch.reasons[at].find("stopped"), std::string::npos);
    }
    // On one thread a problem asks once before it begins and once for each of its three iterates; the third is under
    // way when the answer comes.
    if (threads == 1) {
      EXPECT_EQ(begun, 3);
      EXPECT_EQ(batch.status[1], Status::step_limit);
      EXPECT_EQ(batch.status[2], Status::stopped);
    }
  }
}

TEST(BatchOf, ProblemsSideBySideAreStoppedTogether) {
  const Stacks<double> stacks(60, 5, 2, 800);
  const ThreadScope scope(1);
  int asked = 0;
  BatchOptions options;
  options.should_stop = [&] { return ++asked > 8; };
  const auto batch = align_batch<double>(stacks.covariances(), stacks.starts(), {.steps = 2}, options);
  // Asked once at the beginning, and for each of seven that are begun at once; the answer comes with their first
  // iterates.
  for (Index i = 0; i < stacks.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(batch.status[at], i < 7 ? std::optional(Status::stopped) : std::nullopt) << i;
    EXPECT_TRUE(same_bits(batch.factor(i), stacks.starts()[i])) << i;
  }
}

TEST(BatchOf, WhatShouldStopThrowsComesOut) {
  const Stacks<double> stacks(60, 5, 2, 900);
  BatchOptions options;
  options.should_stop = []() -> bool { throw std::runtime_error("enough"); };
  for (const Index threads : {1, 3}) {
    const ThreadScope scope(threads);
    expect_throws_naming<std::runtime_error>(
        {"enough"}, [&] { align_batch<double>(stacks.covariances(), stacks.starts(), {}, options); });
    EXPECT_EQ(align_batch<double>(stacks.covariances(), stacks.starts()).status[59], Status::step_limit);
  }
}

TEST(BatchOf, MisuseIsNamed) {
  const Stacks<double> stacks(2, 5, 2, 1000);
  const auto targets = stacks.covariances();
  const auto misuse = [](std::initializer_list<std::string> parts, auto call) {
    expect_throws_naming<std::invalid_argument>(parts, call);
  };
  const MatrixStack<double> wide{stacks.features.data(), 2, 4, 5}, one_start{stacks.start.data(), 1, 5, 2};
  const MatrixStack<double> flat{stacks.start.data(), 2, 4, 2}, broad{stacks.sigma.data(), 1, 5, 10};
  misuse({"4 x 5", "square", "features"}, [&] { align_batch<double>(wide, 2); });
  misuse({"2 targets", "1 starts"}, [&] { align_batch<double>(targets, one_start); });
  misuse({"4 rows", "dimension 5"}, [&] { align_batch<double>(targets, flat); });
  misuse({"10 columns", "d = 5"}, [&] { align_batch<double>({stacks.sigma.data(), 1, 5, 5}, broad); });
  misuse({"rank is 6", "5"}, [&] { align_batch<double>(targets, 6); });
  misuse({"steps is -1"}, [&] { align_batch<double>(targets, 2, {.steps = -1}); });
  misuse({"steps is 4294967296", "2147483647"}, [&] { align_batch<double>(targets, 2, {.steps = Index(1) << 32}); });
  misuse({"keep_iterates"}, [&] { align_batch<double>(targets, 2, {.keep_iterates = true}); });
  misuse({"route factor"}, [&] { align_batch<double>(targets, 2, {.route = Route::factor}); });
  misuse({"-1 x 5 x 5"}, [&] { align_batch<double>({nullptr, -1, 5, 5}, 2); });
  misuse({"features", "1"}, [&] {
    align_batch<double>({stacks.features.data(), 2, 1, 5}, 2, {}, {.targets = StackOf::features});
  });
}

}  // namespace
}  // namespace itspace::test
