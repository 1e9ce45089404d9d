// SPDX-License-Identifier: Apache-2.0
//
// One bad instance never stops the others.
#include "suite.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <string>

namespace itspace::experiments {
namespace {

namespace fs = std::filesystem;

class Suite : public ::testing::Test {
 protected:
  Suite() { fs::remove_all(folder_); }
  ~Suite() override { fs::remove_all(folder_); }

  // Memory runs out at every checkpoint of the first instance whose text has `where` in it.
  SuiteEvents out_of_memory(const std::string& where) {
    SuiteEvents events;
    events.progress = [where](Index index, Index, const std::string& doing, double) {
      if (index == 0 && doing.find(where) != std::string::npos) throw std::bad_alloc();
    };
    return events;
  }

  fs::path folder_ = fs::path(::testing::TempDir()) /
                     (std::string("itspace-suite-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const SuiteOptions options_{
      .out = folder_, .folders = {}, .instances = {"synthetic-32", "synthetic-24"}, .resume = false, .command = {}};
  const AlignmentOptions quick_{.rank = 4, .steps = 2, .seeds = {0}, .methods = {"paper-1"}};
};

TEST_F(Suite, GoesOnAfterAnInstanceThatRanOutOfMemory) {
  for (const std::string where : {"loading", "covariances", "paper-1"}) {
    const SuiteOutcome outcome = run_alignment_suite(quick_, options_, out_of_memory(where));
    ASSERT_EQ(outcome.results.alignment.size(), 2u);
    const AlignmentInstance &failed = outcome.results.alignment[0], &other = outcome.results.alignment[1];
    EXPECT_EQ(failed.info.name, "synthetic-32");
    EXPECT_EQ(failed.info.outcome, Outcome::failed);
    EXPECT_NE(failed.info.reason.find("synthetic-32: out of memory"), std::string::npos) << failed.info.reason;
    EXPECT_TRUE(failed.runs.empty());
    EXPECT_EQ(other.info.outcome, Outcome::done);
    EXPECT_FALSE(other.runs.empty());
    EXPECT_TRUE(outcome.bad_environment);
    EXPECT_FALSE(outcome.interrupted);
    // So that --resume tries it again.
    EXPECT_FALSE(fs::exists(folder_ / "instances" / "synthetic-32.json"));
    EXPECT_TRUE(fs::exists(folder_ / "instances" / "synthetic-24.json"));
  }
}

TEST_F(Suite, OfCovariateDriftGoesOnToo) {
  CovDriftOptions quick;
  quick.rank = 4;
  quick.seeds = {0};
  quick.drifts = {"none"};
  quick.severities = {8};
  quick.budgets = {1};
  quick.methods = {"paper-1"};
  const SuiteOutcome outcome = run_covdrift_suite(quick, options_, out_of_memory("linear head"));
  ASSERT_EQ(outcome.results.covdrift.size(), 2u);
  EXPECT_EQ(outcome.results.covdrift[0].info.outcome, Outcome::failed);
  EXPECT_EQ(outcome.results.covdrift[1].info.outcome, Outcome::done);
}

}  // namespace
}  // namespace itspace::experiments
