// SPDX-License-Identifier: Apache-2.0
//
// A batch on a device is the host's: objectives and YY' to rounding, statuses and words to the letter, problem by
// problem; and one bad problem is no other's business.
#include "expect_throw.hpp"
#include "on_device.hpp"

#include <itspace/cuda/batch.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

namespace itspace::test {
namespace {

// Problems that have nothing special about them, stacked, on both sides.
template <Storage Scalar>
struct Stacks {
  Index count, dim, rank;
  Block<Scalar> sigma, start;

  Stacks(Index problems, Index d, Index r, std::uint64_t seed)
      : count(problems), dim(d), rank(r), sigma(problems * d, d), start(problems * d, r) {
    for (Index i = 0; i < count; ++i) {
      const auto p =
          make_problem<Scalar>({.dim = dim, .rank = rank, .seed = seed + static_cast<std::uint64_t>(i % 20)});
      sigma_of(i) = p.sigma;
      start_of(i) = p.start;
    }
  }

  BlockView<Scalar> sigma_of(Index i) { return sigma.middleRows(i * dim, dim); }
  BlockView<Scalar> start_of(Index i) { return start.middleRows(i * dim, dim); }
  MatrixStack<Scalar> targets() const { return {sigma.data(), count, dim, dim}; }
  MatrixStack<Scalar> starts() const { return {start.data(), count, dim, rank}; }

  BatchResult<Scalar> here(const AlignOptions& options, const BatchOptions& batch = {}) const {
    return align_batch<Scalar>(targets(), starts(), options, batch);
  }
  cuda::BatchResult<Scalar> there(const AlignOptions& options, const BatchOptions& batch = {}) const {
    const auto on_device = cuda::to_device(device(), targets()), first = cuda::to_device(device(), starts());
    return cuda::align_batch<Scalar>(device(), {on_device.data(), count, dim, dim}, {first.data(), count, dim, rank},
                                     options, batch);
  }
};

template <Storage Scalar>
Block<Scalar> fetched(const cuda::BatchResult<Scalar>& batch, Index i) {
  return cuda::to_host<Scalar>(device(), batch.factor(i));
}

// NaN is NaN here.
template <class Derived, class Other>
bool same_bits(const Eigen::MatrixBase<Derived>& a, const Eigen::MatrixBase<Other>& b) {
  return ((a.array() == b.array()) || (a.array() != a.array() && b.array() != b.array())).all();
}

template <Storage Scalar>
void expect_agreement(const cuda::BatchResult<Scalar>& there, const BatchResult<Scalar>& here, Index i) {
  SCOPED_TRACE(i);
  const auto at = static_cast<std::size_t>(i);
  ASSERT_EQ(there.status[at], here.status[at]) << there.reasons[at];
  EXPECT_EQ(there.reasons[at], here.reasons[at]);
  EXPECT_EQ(there.best[at], here.best[at]);
  EXPECT_EQ(there.certified[at], here.certified[at]);
  ASSERT_EQ(there.traces[at].steps.size(), here.traces[at].steps.size());
  const RealMatrix y = real(fetched(there, i)), z = real(Block<Scalar>(here.factor(i)));
  const Real r = Real(here.rank), size = Real(here.traces[at].target_trace) + z.squaredNorm();
  for (std::size_t k = 0; k < here.traces[at].steps.size(); ++k) {
    SCOPED_TRACE(k);
    const Step &a = there.traces[at].steps[k], &b = here.traces[at].steps[k];
    const Real apart = 2 * ratio_limit * eps<Scalar> * r * Real(k + 1);
    EXPECT_EQ(a.passes, here.traces[at].steps[0].passes + Index(k));
    EXPECT_EQ(a.certified, b.certified);
    EXPECT_EQ(a.objective, there.objectives(i, Index(k)));
    EXPECT_LE(std::abs(Real(a.objective) - Real(b.objective)), a.resolution + b.resolution + apart * size);
    EXPECT_LE(a.resolution, 30 * b.resolution);
    EXPECT_LE(a.certificate_gap, 1e-9 * a.objective + a.resolution);
  }
  const Real steps = Real(here.objectives.cols());
  EXPECT_LE((y * y.transpose() - z * z.transpose()).norm(),
            2 * ratio_limit * eps<Scalar> * r * steps * z.squaredNorm());
}

Index made_there(const auto& batch) {
  return std::count(batch.on_device.begin(), batch.on_device.end(), std::uint8_t(1));
}

template <class Scalar>
class CudaBatch : public ::testing::Test {
 protected:
  void SetUp() override { ITSPACE_NEEDS_DEVICE(); }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaBatch, Scalars);

TYPED_TEST(CudaBatch, AgreesWithTheHost) {
  using S = TypeParam;
  for (const auto& [d, r, steps] :
       {std::tuple<Index, Index, Index>{64, 8, 2}, {33, 5, 3}, {17, 17, 1}, {40, 12, 2}, {61, 20, 2}, {1, 1, 1}}) {
    SCOPED_TRACE(::testing::Message() << "d=" << d << " r=" << r);
    const Stacks<S> stacks(7, d, r, 1);
    const AlignOptions options{.steps = steps};
    const BatchOptions traces{.keep_traces = true};
    const auto there = stacks.there(options, traces);
    const auto here = stacks.here(options, traces);
    EXPECT_EQ(made_there(there), stacks.count);
    for (Index i = 0; i < stacks.count; ++i) expect_agreement<S>(there, here, i);
    const auto again = stacks.there(options, traces);
    EXPECT_EQ(cuda::to_host<S>(device(), there.factors), cuda::to_host<S>(device(), again.factors)) << "the same bits";
    EXPECT_EQ(there.objectives, again.objectives) << "the same bits";
  }
}

TYPED_TEST(CudaBatch, StartsAtRandomAsTheHostDoes) {
  using S = TypeParam;
  const Stacks<S> stacks(5, 30, 6, 3);
  const AlignOptions options{.steps = 2, .seed = 9};
  const BatchOptions traces{.keep_traces = true};
  const auto memory = cuda::to_device(device(), stacks.targets());
  const auto there = cuda::align_batch<S>(device(), {memory.data(), 5, 30, 30}, 6, options, traces);
  const auto here = align_batch<S>(stacks.targets(), 6, options, traces);
  EXPECT_EQ(made_there(there), stacks.count);
  for (Index i = 0; i < stacks.count; ++i) expect_agreement<S>(there, here, i);
}

// More problems than one launch takes, and a start that is read only.
TYPED_TEST(CudaBatch, IsThatOfItsPieces) {
  using S = TypeParam;
  const Stacks<S> many(9001, 4, 2, 5), few(20, 4, 2, 5);  // the same twenty over and over
  const auto targets = cuda::to_device(device(), many.targets()), starts = cuda::to_device(device(), many.starts());
  const auto there = cuda::align_batch<S>(device(), {targets.data(), 9001, 4, 4}, {starts.data(), 9001, 4, 2});
  const auto expected = few.there({});
  const Block<S> factors = cuda::to_host<S>(device(), there.factors),
                 of_few = cuda::to_host<S>(device(), expected.factors);
  for (Index i = 0; i < many.count; ++i) {
    ASSERT_EQ(there.status[static_cast<std::size_t>(i)], Status::step_limit);
    ASSERT_EQ(factors.middleRows(i * 4, 4), of_few.middleRows(i % 20 * 4, 4)) << i;
    ASSERT_EQ(there.objectives.row(i), expected.objectives.row(i % 20)) << i;
  }
  EXPECT_EQ(cuda::to_host<S>(device(), starts), many.start);
}

// What the launch cannot certify is the host's, with its words and its bits; the others are as without it.
TYPED_TEST(CudaBatch, OneBadProblemIsNoOthersBusiness) {
  using S = TypeParam;
  const S nan = std::numeric_limits<S>::quiet_NaN();
  const Stacks<S> good(12, 16, 3, 8);
  Stacks<S> stacks = good;
  stacks.sigma_of(1)(2, 3) = nan;
  stacks.sigma_of(2)(4, 4) = std::numeric_limits<S>::infinity();
  stacks.sigma_of(3)(5, 6) += S(0.5);
  stacks.sigma_of(4)(7, 7) = S(-1);
  stacks.start_of(5).setZero();
  stacks.start_of(6).col(1) = stacks.start_of(6).col(0);
  stacks.start_of(7)(3, 1) = nan;
  stacks.sigma_of(8).setZero();
  // Indefinite, where Y does not look: its variances add up to less than what Y sees.
  stacks.sigma_of(9) = Block<S>::Identity(16, 16) * S(0.01);
  stacks.sigma_of(9)(0, 1) = stacks.sigma_of(9)(1, 0) = 1;
  stacks.start_of(9).setIdentity();
  stacks.start_of(9).col(1).swap(stacks.start_of(9).col(2));
  stacks.start_of(9)(1, 0) = stacks.start_of(9)(3, 2) = 1;
  stacks.start_of(9)(1, 2) = 0;
  stacks.sigma_of(10) *= S(1e-34);
  // Steps so short that all of them keep their promises.
  const AlignOptions options{.steps = 2, .step_size = StepSize::alpha(0.1)};
  const auto there = stacks.there(options), alone = good.there(options);
  const auto here = stacks.here(options);
  for (const Index i : {0, 11}) {
    EXPECT_EQ(there.on_device[static_cast<std::size_t>(i)], 1);
    EXPECT_TRUE(same_bits(fetched(there, i), fetched(alone, i))) << i;
  }
  for (Index i = 1; i < 11; ++i) {
    SCOPED_TRACE(i);
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(there.status[at], here.status[at]);
    EXPECT_EQ(there.reasons[at], here.reasons[at]);
    EXPECT_EQ(there.on_device[at], 0);
    EXPECT_TRUE(same_bits(fetched(there, i), here.factor(i)));
    EXPECT_TRUE(same_bits(there.objectives.row(i), here.objectives.row(i)));
  }
  EXPECT_EQ(there.status[1], Status::not_finite);
  EXPECT_EQ(there.status[3], Status::not_a_covariance);
  EXPECT_EQ(there.status[9], Status::not_a_covariance);
}

// The triangles of a product of matrices on a GPU differ by rounding.
TYPED_TEST(CudaBatch, AveragesRoundingAway) {
  using S = TypeParam;
  Stacks<S> stacks(3, 21, 4, 11);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 20; ++j) stacks.sigma_of(i)(j, j + 1) *= 1 + S(2) * std::numeric_limits<S>::epsilon();
  const BatchOptions traces{.keep_traces = true};
  const auto there = stacks.there({.steps = 2}, traces);
  const auto here = stacks.here({.steps = 2}, traces);
  EXPECT_EQ(made_there(there), stacks.count);
  for (Index i = 0; i < 3; ++i) expect_agreement<S>(there, here, i);
}

// Sizes, options and data that no launch takes: the host's bits.
TYPED_TEST(CudaBatch, IsTheHostsWhereNoLaunchTakesIt) {
  using S = TypeParam;
  const auto expect_same = [](const Stacks<S>& stacks, const AlignOptions& options, const char* what) {
    SCOPED_TRACE(what);
    const auto there = stacks.there(options);
    const auto here = stacks.here(options);
    EXPECT_EQ(made_there(there), 0);
    EXPECT_EQ(there.status, here.status);
    EXPECT_TRUE(same_bits(there.objectives, here.objectives));
    EXPECT_TRUE(same_bits(cuda::to_host<S>(device(), there.factors), here.factors));
  };
  const Stacks<S> stacks(3, 12, 3, 20);
  expect_same(stacks, {.steps = 2, .solver = Solver::ritz}, "ritz");
  expect_same(stacks, {.steps = 2, .step_size = StepSize::line_search()}, "line search");
  expect_same(stacks, {.steps = 2, .route = Route::root}, "root");
  expect_same(stacks, {.steps = 9, .tolerance = 0.5}, "tolerance");
  expect_same(stacks, {.steps = 0}, "no step");
  expect_same(Stacks<S>(2, 40, 33, 21), {.steps = 1}, "33 columns");
  expect_same(Stacks<S>(2, 300, 2, 22), {.steps = 1}, "larger than shared memory");
  const auto memory = cuda::to_device(device(), stacks.targets());
  const BatchOptions of_features{.targets = StackOf::features};
  const auto there = cuda::align_batch<S>(device(), {memory.data(), 3, 12, 12}, 2, {}, of_features);
  EXPECT_TRUE(same_bits(cuda::to_host<S>(device(), there.factors),
                        align_batch<S>(stacks.targets(), 2, {}, of_features).factors));
}

TYPED_TEST(CudaBatch, RefusesWhatTheHostRefuses) {
  using S = TypeParam;
  const auto memory = cuda::to_device(device(), Stacks<S>(2, 6, 2, 1).targets());
  const cuda::MatrixStack<S> targets{memory.data(), 2, 6, 6};
  const auto run = [&](const cuda::MatrixStack<S>& of, const cuda::MatrixStack<S>& starts, AlignOptions options = {}) {
    return [=] { cuda::align_batch<S>(device(), of, starts, options); };
  };
  expect_misuse({"2 targets and 3 starts"}, run(targets, {memory.data(), 3, 6, 2}));
  expect_misuse({"5 rows"}, run(targets, {memory.data(), 2, 5, 2}));
  expect_misuse({"4 x 6"}, run({memory.data(), 2, 4, 6}, {memory.data(), 2, 6, 2}));
  expect_misuse({"keep_iterates"}, run(targets, {memory.data(), 2, 6, 2}, {.keep_iterates = true}));
  expect_misuse({"7"}, [&] { cuda::align_batch<S>(device(), targets, 7); });
  const auto none = cuda::align_batch<S>(device(), {nullptr, 0, 6, 6}, 2);
  EXPECT_EQ(none.count, 0);
  EXPECT_TRUE(none.status.empty());
}

TYPED_TEST(CudaBatch, EndsWhenItIsAskedTo) {
  using S = TypeParam;
  const Stacks<S> stacks(4, 6, 2, 30);
  BatchOptions at_once;
  at_once.should_stop = [] { return true; };
  const auto there = stacks.there({}, at_once);
  const auto here = stacks.here({}, at_once);
  EXPECT_EQ(there.status, here.status);
  EXPECT_EQ(there.reasons, here.reasons);
  EXPECT_EQ(cuda::to_host<S>(device(), there.factors), stacks.start);
  BatchOptions broken;
  broken.should_stop = []() -> bool { throw std::runtime_error("mine"); };
  expect_throws_naming<std::runtime_error>({"mine"}, [&] { stacks.there({}, broken); });
}

}  // namespace
}  // namespace itspace::test
