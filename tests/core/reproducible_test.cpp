// SPDX-License-Identifier: Apache-2.0
//
// Same inputs, same bits; another seed, another draw. Seeds matter only where something is drawn.
#include "runs.hpp"

#include <itspace/start.hpp>

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

TEST(Reproducible, SameInputsSameBits) {
  const auto p = make_problem<double>({.dim = 17, .rank = 4, .seed = 1});
  const DenseTarget<double> target(p.sigma);
  for (const StepSize& size : {StepSize(), StepSize::line_search()}) {
    const auto a = run<double>(target, p.start, 5, size);
    const auto b = run<double>(target, p.start, 5, size);
    EXPECT_EQ(a.factor, b.factor);
    for (std::size_t k = 0; k < 6; ++k) {
      EXPECT_EQ(a.iterates[k], b.iterates[k]);
      EXPECT_EQ(a.trace.steps[k].objective, b.trace.steps[k].objective);
    }
  }
}

TEST(Reproducible, RandomStartsBySeed) {
  const auto p = make_problem<float>({.dim = 17, .rank = 4, .seed = 2});
  const DenseTarget<float> target(p.sigma);
  EXPECT_EQ(random_start<float>(target, 4, 5), random_start<float>(target, 4, 5));
  EXPECT_NE(random_start<float>(target, 4, 5), random_start<float>(target, 4, 6));
  AlignOptions options;
  options.seed = 5;
  options.keep_iterates = true;
  const auto result = align_here<float>(target, 4, options);
  EXPECT_EQ(result.iterates.at(0), random_start<float>(target, 4, 5));
}

TEST(Reproducible, CompletionBySeed) {
  const auto p = make_problem<double>({.dim = 17, .rank = 4, .seed = 3});
  const DenseTarget<double> target(p.sigma);
  const Block<double> zero = Block<double>::Zero(17, 4);
  AlignOptions options;
  options.seed = 1;
  const auto a = run<double>(target, zero, 2, StepSize(), options);
  EXPECT_EQ(a.factor, run<double>(target, zero, 2, StepSize(), options).factor);
  options.seed = 2;
  EXPECT_NE(a.factor, run<double>(target, zero, 2, StepSize(), options).factor);
}

// Nothing is drawn, so the seed changes nothing.
TEST(Reproducible, PlainRunsIgnoreTheSeed) {
  const auto p = make_problem<double>({.dim = 17, .rank = 4, .seed = 4});
  const DenseTarget<double> target(p.sigma);
  AlignOptions options;
  options.seed = 1;
  const auto a = run<double>(target, p.start, 3, StepSize(), options);
  options.seed = 2;
  EXPECT_EQ(a.factor, run<double>(target, p.start, 3, StepSize(), options).factor);
}

// A start in a larger matrix (stride > cols) is the same start.
TEST(Reproducible, StridedStartsAreTheSame) {
  const auto p = make_problem<double>({.dim = 17, .rank = 4, .seed = 5});
  Block<double> wider = Block<double>::Constant(17, 9, 1e300);
  wider.middleCols(2, 4) = p.start;
  const DenseTarget<double> target(p.sigma);
  const auto a = align_here<double>(target, p.start);
  const auto b = align_here<double>(target, wider.middleCols(2, 4));
  EXPECT_EQ(a.factor, b.factor);
}

}  // namespace
}  // namespace itspace::test
