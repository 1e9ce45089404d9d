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

// Whether a run is certified is said by one function, for every way that it can end.
TEST(Verify, SaysOfTheRunWhatItsTraceSays) {
  const HonestRun run;
  EXPECT_EQ(verify<double>(run.result.factor, run.target).certified, std::nullopt);
  for (const Status status : {Status::step_limit, Status::converged, Status::stopped, Status::certificate_failed,
                              Status::not_finite, Status::not_a_covariance}) {
    Trace trace = run.result.trace;
    trace.status = status;
    EXPECT_EQ(trace.certified(), !failed(status)) << name(status);
    EXPECT_EQ(verify<double>(run.result.factor, run.target, &trace).certified, trace.certified()) << name(status);
    trace.steps[2].certified = false;
    EXPECT_FALSE(trace.certified()) << name(status);
  }
}

// A run that failed before it saw anything claims no objective; one that says it was done must have one.
TEST(Verify, AnObjectiveThatNobodyEvaluated) {
  const HonestRun run;
  Trace trace = run.result.trace;
  trace.steps.resize(1);
  trace.best = 0;
  trace.steps[0].objective = trace.steps[0].resolution = not_a_number;
  trace.status = Status::not_finite;
  EXPECT_TRUE(holds(verify<double>(run.problem.start, run.target, &trace), "objective"));
  trace.steps.push_back(trace.steps[0]);
  trace.status = Status::step_limit;
  EXPECT_FALSE(holds(verify<double>(run.problem.start, run.target, &trace), "objective"));
}

}  // namespace
}  // namespace itspace::test
