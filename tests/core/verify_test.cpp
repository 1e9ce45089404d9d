// SPDX-License-Identifier: Apache-2.0
//
// verify: an honest trace passes, and every kind of lie is found.
#include "runs.hpp"

#include <itspace/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace itspace::test {
namespace {

struct HonestRun {
  Problem<double> problem = make_problem<double>({.dim = 17, .rank = 4, .seed = 2});
  DenseTarget<double> target{problem.sigma};
  Result<double> result = align_here<double>(target, problem.start, {.steps = 4});
};

bool holds(const Verification& found, const std::string& name) {
  const auto claim =
      std::find_if(found.claims.begin(), found.claims.end(), [&](const Claim& c) { return c.name == name; });
  EXPECT_NE(claim, found.claims.end()) << name;
  return claim == found.claims.end() || claim->holds;
}

TEST(Verify, FindsWhatTheFactorIsWorth) {
  const HonestRun run;
  const Verification found = verify<double>(run.result.factor, run.target, &run.result.trace);
  EXPECT_TRUE(found.holds());
  EXPECT_EQ(found.found.dim, 17);
  EXPECT_EQ(found.found.rank, 4);
  EXPECT_LT(std::abs(Real(found.found.objective) - run.problem.oracle.objective(wide(run.result.factor))),
            descent_limit * eps_units<double>(run.problem.oracle, wide(run.result.factor)));
  EXPECT_TRUE(verify<double>(run.result.factor, run.target).claims.empty());
}

TEST(Verify, FindsLies) {
  const HonestRun run;
  const auto told = [&](auto change) {
    Trace trace = run.result.trace;
    change(trace);
    return verify<double>(run.result.factor, run.target, &trace);
  };
  EXPECT_FALSE(holds(told([](Trace& t) { t.dim = 18; }), "dimension"));
  EXPECT_FALSE(holds(told([](Trace& t) { t.rank = 3; }), "rank"));
  EXPECT_FALSE(holds(told([](Trace& t) { t.target_trace *= 1.01; }), "target trace"));
  EXPECT_FALSE(holds(told([](Trace& t) { t.steps.back().objective *= 0.9; }), "objective"));
  EXPECT_FALSE(holds(told([](Trace& t) { t.steps[1].objective = 2 * t.steps[0].objective; }), "monotone objective"));
  EXPECT_FALSE(holds(told([](Trace& t) { t.steps[2].promised_descent *= 5; }), "promised descent"));
  const Verification boasted = told([](Trace& t) { t.steps[1].actual_descent *= 2; });
  EXPECT_FALSE(boasted.holds());
}

}  // namespace
}  // namespace itspace::test
