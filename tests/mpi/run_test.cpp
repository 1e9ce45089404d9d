// SPDX-License-Identifier: Apache-2.0
//
// Runs over the ranks: the objectives of one process, the same bits on every rank, and messages that can be foretold.
#include "held_rows.hpp"
#include "runs.hpp"
#include "same_bits.hpp"

#include <itspace/barycenter.hpp>
#include <itspace/mpi/align.hpp>
#include <itspace/mpi/streamed.hpp>
#include <itspace/mpi/targets.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace itspace::test {
namespace {

const mpi::Communicator& ranks() {
  return all_ranks();
}

using namespace spread_problem;

template <class B>
B own_rows(const B& whole) {
  return whole.middleRows(ranks().first_row(whole.rows()), ranks().own_rows(whole.rows()));
}
template <class B>
B own_columns(const B& whole) {
  return whole.middleCols(ranks().first_row(whole.cols()), ranks().own_rows(whole.cols()));
}

AlignOptions with_solver(Solver solver, Index steps = 5) {
  AlignOptions options;
  options.solver = solver;
  options.steps = steps;
  return options;
}

// Every objective within 100 eps (tr Sigma + ||Y||^2) of the other run's.
template <Storage Scalar>
void expect_same_objectives(const Trace& one, const Trace& other, const Matrix& y, double trace) {
  ASSERT_EQ(one.steps.size(), other.steps.size());
  const Real unit = eps<Scalar> * (Real(trace) + real(y).squaredNorm());
  for (std::size_t k = 0; k < one.steps.size(); ++k)
    EXPECT_LE(std::abs(Real(one.steps[k].objective) - Real(other.steps[k].objective)), 100 * unit) << k;
  EXPECT_TRUE(other.certified());
}

template <class Type>
class SpreadRun : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SpreadRun, Scalars);

TYPED_TEST(SpreadRun, RowsOfFeaturesGiveTheObjectivesOfOneProcess) {
  using S = TypeParam;
  const Block<S> z = features<S>(), y = start<S>();
  const FeaturesTarget<S> here(z);
  const mpi::FeatureRows<S> there(ranks(), own_rows(z));
  EXPECT_EQ(there.samples(), samples);
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const auto one = align<S>(here, y, with_solver(solver)), all = align<S>(there, y, with_solver(solver));
    expect_same_objectives<S>(one.trace, all.trace, wide(y), here.trace());
    EXPECT_TRUE(same_bits_on_all_ranks<S>(all.factor)) << name(solver);
  }
  const auto from_random = align<S>(there, rank, with_solver(Solver::paper));
  expect_same_objectives<S>(align<S>(here, rank, with_solver(Solver::paper)).trace, from_random.trace,
                            wide(from_random.factor), here.trace());
  EXPECT_TRUE(same_bits_on_all_ranks<S>(from_random.factor));
}

// A sweep over the rows of this rank for each pass, the first of which gathers mean and trace.
TYPED_TEST(SpreadRun, StreamsOfRowsGiveTheObjectivesOfOneProcess) {
  using S = TypeParam;
  const Block<S> z = features<S>();
  const FeaturesTarget<S> here(z);
  const auto own = std::make_shared<HeldRows<S>>(own_rows(z));
  const mpi::StreamedRows<S> there(ranks(), own, StreamedFeatures<S>::least_memory(dim));
  const auto one = align<S>(here, rank, with_solver(Solver::paper)),
             all = align<S>(there, rank, with_solver(Solver::paper));
  expect_same_objectives<S>(one.trace, all.trace, wide(one.factor), here.trace());
  EXPECT_TRUE(same_bits_on_all_ranks<S>(all.factor));
  EXPECT_EQ(own->restarts, all.trace.passes_total);
  EXPECT_EQ(there.samples(), samples);
  EXPECT_EQ(own->restarts, all.trace.passes_total);
}

// What the last rank meets in its rows, all throw.
TEST(StreamedRows, ABadValueOfOneEndsAll) {
  Block<double> own = own_rows(features<double>());
  if (ranks().rank() == ranks().size() - 1) own(own.rows() - 1, 7) = std::nan("");
  const mpi::StreamedRows<double> target(ranks(), std::make_shared<HeldRows<double>>(own));
  try {
    align<double>(target, rank);
    FAIL() << "a value that is not finite was taken";
  } catch (const mpi::AgreedMisuse& error) {
    EXPECT_NE(std::string(error.what()).find("column 7 is nan"), std::string::npos) << error.what();
  }
}

TYPED_TEST(SpreadRun, RowsOfACovarianceGiveTheObjectivesOfOneProcess) {
  using S = TypeParam;
  const auto problem = make_problem<S>({.dim = dim, .rank = rank, .seed = 5});
  const DenseTarget<S> here(problem.sigma);
  const mpi::DenseRows<S> there(ranks(), own_rows(problem.sigma));
  const auto one = align<S>(here, problem.start, with_solver(Solver::paper));
  const auto all = align<S>(there, problem.start, with_solver(Solver::paper));
  expect_same_objectives<S>(one.trace, all.trace, wide(problem.start), here.trace());
  EXPECT_TRUE(same_bits_on_all_ranks<S>(all.factor));
  // And with the rows of Y spread as well.
  const auto spread = mpi::align<S>(there, mpi::spread<S>(ranks(), problem.start), with_solver(Solver::ritz, 3));
  expect_same_objectives<S>(align<S>(here, problem.start, with_solver(Solver::ritz, 3)).trace, spread.trace,
                            wide(problem.start), here.trace());
}

TYPED_TEST(SpreadRun, ColumnsOfFeaturesGiveTheObjectivesOfOneProcess) {
  using S = TypeParam;
  const Block<S> z = features<S>(), y = start<S>();
  const FeaturesTarget<S> here(z);
  const mpi::FeatureColumns<S> there(ranks(), dim, own_columns(z));
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    const auto one = align<S>(here, y, with_solver(solver));
    const auto all = mpi::align<S>(there, mpi::spread<S>(ranks(), y), with_solver(solver));
    expect_same_objectives<S>(one.trace, all.trace, wide(y), here.trace());
    const Block<S> whole = mpi::gather<S>(ranks(), all.factor);
    EXPECT_LE((real(whole) * real(whole).transpose() - real(one.factor) * real(one.factor).transpose()).norm(),
              1000 * eps<S> * (here.trace() + real(y).squaredNorm()))
        << name(solver);
  }
  // Products with the factor, n x r blocks spread as well.
  AlignOptions by_factor = with_solver(Solver::paper);
  by_factor.route = Route::factor;
  const auto one = align<S>(here, rank, by_factor);
  expect_same_objectives<S>(one.trace, mpi::align<S>(there, rank, by_factor).trace, wide(one.factor), here.trace());
}

TEST(SpreadRuns, ABarycenterOfSpreadTargets) {
  const Block<double> z = features<double>(), other = 0.5 * features<double>(0).rowwise().reverse();
  const mpi::FeatureRows<double> a(ranks(), own_rows(z)), b(ranks(), own_rows(other));
  const FeaturesTarget<double> a_here(z), b_here(other);
  const Eigen::VectorXd weights = Eigen::Vector2d(1, 2);
  const std::vector<TargetRef<double>> here{a_here, b_here}, there{a, b};
  const auto one = barycenter<double>(here, weights, start<double>());
  const auto all = barycenter<double>(there, weights, start<double>());
  expect_same_objectives<double>(one.trace, all.trace, wide(start<double>()), a.trace() + b.trace());
  EXPECT_TRUE(same_bits_on_all_ranks<double>(all.factor));
}

// One exchange of d x r for a product, in two halves, and not a word besides.
TEST(SpreadRuns, MessagesOfReplicatedBlocksAreAsForetold) {
  const mpi::FeatureRows<float> target(ranks(), own_rows(features<float>()));
  const std::int64_t others = ranks().size() - 1, row = rank * sizeof(float), stamp = 8;
  const auto own = std::int64_t(ranks().own_rows(dim));
  const std::int64_t bytes = others * stamp + (dim - own) * row + others * (stamp + own * row);
  const mpi::Traffic before = ranks().traffic();
  const auto result = align<float>(target, start<float>(), with_solver(Solver::paper, 4));
  const mpi::Traffic after = ranks().traffic();
  EXPECT_EQ(result.trace.steps.size(), 5u);  // a pass for each of four steps, and one for the last objective
  EXPECT_EQ(after.messages - before.messages, 5 * 2 * others);
  EXPECT_EQ(after.bytes - before.bytes, 5 * bytes);
}

// With Y spread: one sum of n x r for a product, and few small ones for what is r x r.
TEST(SpreadRuns, MessagesOfSpreadBlocksAreAsForetold) {
  const mpi::FeatureColumns<double> target(ranks(), dim, own_columns(features<double>()));
  const std::int64_t others = ranks().size() - 1;
  const auto messages_of = [&](Index steps) {
    const mpi::Traffic before = ranks().traffic();
    mpi::align<double>(target, mpi::spread<double>(ranks(), start<double>()), with_solver(Solver::paper, steps));
    return ranks().traffic().messages - before.messages;
  };
  constexpr std::int64_t small_sums = 3;  // the Gram matrix of Y, those of the product, the norms of the step
  EXPECT_EQ(messages_of(7) - messages_of(3), 4 * (2 + small_sums) * others);
}

TEST(SpreadRuns, WhatOneRankWantsToEndEndsForAll) {
  const mpi::FeatureRows<double> target(ranks(), own_rows(features<double>()));
  const OnStep<double> last_rank_stops = [](const Step& step, const ConstBlockView<double>&) {
    return step.index == 2 && ranks().rank() == ranks().size() - 1 ? StepAction::stop : StepAction::proceed;
  };
  const auto result = align<double>(target, start<double>(), with_solver(Solver::paper, 9),
                                    mpi::agreed<double>(ranks(), last_rank_stops));
  EXPECT_EQ(result.status(), Status::stopped);
  EXPECT_EQ(result.trace.steps.size(), 3u);

  const mpi::FeatureColumns<double> columns(ranks(), dim, own_columns(features<double>()));
  const auto spread = mpi::align<double>(
      columns, rank, with_solver(Solver::paper, 9), [](const Step& step, const mpi::ConstView<double>&) {
        return step.index == 1 && ranks().rank() == 0 ? StepAction::stop : StepAction::proceed;
      });
  EXPECT_EQ(spread.status(), Status::stopped);
  EXPECT_EQ(spread.trace.steps.size(), 2u);
}

// A rank whose Y differs in one bit is found out before its numbers are used.
TEST(SpreadRuns, ARankWithOtherBitsIsFoundOut) {
  if (ranks().size() == 1) GTEST_SKIP() << "one rank has nobody to differ from";
  const mpi::FeatureRows<double> target(ranks(), own_rows(features<double>()));
  Block<double> y = start<double>(), out(dim, rank);
  if (ranks().rank() == ranks().size() - 1) y(dim - 1, 0) = std::nextafter(y(dim - 1, 0), 10.0);
  EXPECT_THROW(target.apply(y, out), mpi::Lost);
}

TEST(SpreadRuns, RefusesSharesThatDoNotFit) {
  Block<double> rows = own_rows(features<double>());
  if (ranks().rank() == ranks().size() - 1) rows = Block<double>(rows.leftCols(dim - 1));
  if (ranks().size() > 1) {
    EXPECT_THROW(mpi::FeatureRows<double>(ranks(), Block<double>(rows)), mpi::AgreedMisuse);
  }
  EXPECT_THROW(mpi::FeatureRows<double>(ranks(), Block<double>(0, 4)), mpi::AgreedMisuse);
  EXPECT_THROW(mpi::DenseRows<double>(ranks(), Block<double>(dim + 1, dim)), mpi::AgreedMisuse);
  EXPECT_THROW(mpi::FeatureColumns<double>(ranks(), dim, Block<double>(samples, dim + 1)), mpi::AgreedMisuse);
}

}  // namespace
}  // namespace itspace::test
