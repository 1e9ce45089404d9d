// SPDX-License-Identifier: Apache-2.0
//
// A short run of the campaign (script/campaign makes the long one).
#include "campaign.hpp"

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

constexpr std::uint64_t cases_per_test = 150;

class Campaign : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Campaign, FindsNothing) {
  int certified = 0;
  for (std::uint64_t i = 0; i < cases_per_test; ++i) {
    const Verdict verdict = run_case(GetParam() * cases_per_test + i);
    certified += verdict.certified;
    for (const Complaint& complaint : verdict.complaints)
      ADD_FAILURE() << verdict.description << "\n" << name(complaint.fault) << ": " << complaint.what;
  }
  EXPECT_GT(certified, 100) << "the campaign hardly made a step";
}

// Cases that once found something: a certificate by products on route root, whose basis is none of Sigma Q, and one of
// covariances so large that the squares of their norms were out of range; one so small, and singular; a probe's swap as
// long as rounding, which `verify` took for a plain step; two roots that were longer than they should be by rounding,
// which was in no resolution.
TEST(CampaignOnce, FindsNothingMore) {
  for (const std::uint64_t seed : {702023U, 1034309U, 3000392U, 4008049U, 10882U, 17804U}) {
    const Verdict verdict = run_case(seed);
    for (const Complaint& complaint : verdict.complaints)
      ADD_FAILURE() << verdict.description << "\n" << name(complaint.fault) << ": " << complaint.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Campaign, ::testing::Range<std::uint64_t>(100, 108));

}  // namespace
}  // namespace itspace::test
