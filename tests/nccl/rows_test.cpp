// SPDX-License-Identifier: Apache-2.0
//
// Features on the GPUs of several ranks: the covariance of all rows, the objectives of one process, the same bits
// everywhere. Needs as many GPUs as ranks; with the stand-ins, none.
#include "mpi_ranks.hpp"
#include "runs.hpp"
#include "same_bits.hpp"

#include <itspace/nccl/targets.hpp>
#include <itspace/targets.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

const mpi::Communicator& ranks() {
  return all_ranks();
}

// All ranks say the same, or none of them would go on.
std::string why_not_here() {
  std::string why = nccl::why_not();
#ifndef ITSPACE_STAND_IN
  if (why.empty() && cuda::device_count() < std::max(2, ranks().size()))
    why = "there are " + std::to_string(cuda::device_count()) + " GPUs";
#endif
  return ranks().any(!why.empty()) ? "a sum between GPUs needs two GPUs or more, one for each rank, and NCCL: " + why
                                   : "";
}

#define ITSPACE_NEEDS_GPUS() \
  if (const std::string why = why_not_here(); !why.empty()) GTEST_SKIP() << why

const nccl::Communicator& gpus() {
#ifdef ITSPACE_STAND_IN
  static const nccl::Communicator all(ranks(), cuda::Device(0));  // the one that it lets us use
#else
  static const nccl::Communicator all(ranks(), cuda::Device(ranks().rank()));
#endif
  return all;
}

using namespace spread_problem;

template <class Type>
class GpuRows : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GpuRows, Scalars);

// Rows shared out evenly; and so that the first rank has none, and the last but one a single row.
TYPED_TEST(GpuRows, AreTheCovarianceOfAll) {
  ITSPACE_NEEDS_GPUS();
  using S = TypeParam;
  const Block<S> z = features<S>(1000), y = start<S>();
  const RealMatrix factor = centred_factor_of(wide(z)), sigma = factor * factor.transpose();
  for (const bool skewed : {false, true}) {
    Index first = ranks().first_row(samples), count = ranks().own_rows(samples);
    if (skewed && ranks().size() > 1) {
      const int last = ranks().size() - 1, own = ranks().rank();
      const auto begin = [&](int p) { return p > last ? samples : p == last ? Index(last > 1 ? 1 : 0) : Index(0); };
      first = begin(own);
      count = begin(own + 1) - first;
    }
    const Block<S> own = z.middleRows(first, count);
    const nccl::FeatureRows<S> target(gpus(), own);
    EXPECT_EQ(target.samples(), samples);
    EXPECT_LE(std::abs(Real(target.trace()) - sigma.trace()), ratio_limit * samples * eps<double> * sigma.trace());
    // As it lies, and as columns of a wider block.
    for (const Index wider : {0, 3}) {
      cuda::Block<S> in = cuda::to_device<S>(gpus().device(), y), memory(gpus().device(), dim, rank + wider);
      const cuda::View<S> out(memory.data(), dim, rank, rank + wider);
      target.apply(in, out);
      const Block<S> found = cuda::to_host<S>(gpus().device(), out);
      EXPECT_LE((real(found) - sigma * real(y)).norm(), ratio_limit * eps<S> * sigma.norm() * real(y).norm());
      EXPECT_TRUE(same_bits_on_all_ranks<S>(found));
    }
  }
}

TYPED_TEST(GpuRows, GiveTheObjectivesOfOneProcess) {
  ITSPACE_NEEDS_GPUS();
  using S = TypeParam;
  const Block<S> z = features<S>(), y = start<S>();
  const FeaturesTarget<S> here(z);
  const nccl::FeatureRows<S> there(gpus(),
                                   Block<S>(z.middleRows(ranks().first_row(samples), ranks().own_rows(samples))));
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    AlignOptions options;
    options.solver = solver;
    options.steps = 4;
    const auto one = align<S>(here, y, options);
    const auto all = cuda::align<S>(there, ConstBlockView<S>(y), options);
    ASSERT_EQ(one.trace.steps.size(), all.trace.steps.size());
    const Real unit = eps<S> * (Real(here.trace()) + real(y).squaredNorm());
    for (std::size_t k = 0; k < one.trace.steps.size(); ++k)
      EXPECT_LE(std::abs(Real(one.trace.steps[k].objective) - Real(all.trace.steps[k].objective)), 100 * unit) << k;
    EXPECT_TRUE(all.trace.certified());
    EXPECT_TRUE(same_bits_on_all_ranks<S>(cuda::to_host<S>(gpus().device(), all.factor)));
  }
}

// Found out by all, before any of them waits for the others' GPUs.
TEST(GpuRows, RanksThatPartAreFoundOut) {
  ITSPACE_NEEDS_GPUS();
  if (ranks().size() < 2) GTEST_SKIP() << "one rank cannot part from itself";
  const Block<float> z = features<float>();
  Block<float> y = start<float>();
  const nccl::FeatureRows<float> target(
      gpus(), Block<float>(z.middleRows(ranks().first_row(samples), ranks().own_rows(samples))));
  if (ranks().rank() == 1) y(17, 2) += 1.0F;
  cuda::Block<float> in = cuda::to_device<float>(gpus().device(), y), out(gpus().device(), dim, rank);
  EXPECT_THROW(target.apply(in, out), mpi::Lost);
}

}  // namespace
}  // namespace itspace::test
