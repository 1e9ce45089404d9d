// SPDX-License-Identifier: Apache-2.0
#include "covdrift_split.hpp"

#include "expect_throw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace itspace::experiments {
namespace {

using test::expect_throws_naming;

LabelledSet a_set(std::vector<int> labels) {
  return {Block<float>::Zero(static_cast<Index>(labels.size()), 2), std::move(labels)};
}

// Labels 0, 1, 2, 0, 1, ...; the target begins with 1.
Instance an_instance(Index sources, Index targets) {
  Instance instance;
  std::vector<int> source, target;
  for (Index i = 0; i < sources; ++i) source.push_back(static_cast<int>(i % 3));
  for (Index i = 0; i < targets; ++i) target.push_back(static_cast<int>((i + 1) % 3));
  instance.info.name = "toy";
  instance.source = a_set(source);
  instance.target = a_set(target);
  return instance;
}

std::set<Index> set_of(const std::vector<Index>& rows) {
  return {rows.begin(), rows.end()};
}

std::vector<Index> common(const std::vector<Index>& a, const std::vector<Index>& b) {
  std::vector<Index> both;
  const auto in_a = set_of(a), in_b = set_of(b);
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(both));
  return both;
}

TEST(Split, HalvesTheTargetAndTakesFourFifthsOfTheSource) {
  const Instance instance = an_instance(100, 61);
  for (const std::uint64_t seed : {0, 1, 2}) {
    const Split split = split_rows(instance, seed, 1000);
    EXPECT_FALSE(split.paired);
    EXPECT_EQ(set_of(split.train).size(), 80u);
    EXPECT_EQ(split.train.size(), 80u);
    EXPECT_LT(*std::max_element(split.train.begin(), split.train.end()), 100);
    EXPECT_EQ(split.unlabeled.size(), 30u);
    EXPECT_EQ(split.test.size(), 31u);
    EXPECT_TRUE(common(split.unlabeled, split.test).empty());
    std::set<Index> all = set_of(split.unlabeled);
    all.merge(set_of(split.test));
    EXPECT_EQ(all.size(), 61u);
    EXPECT_EQ(*all.rbegin(), 60);
  }
}

TEST(Split, IsTheSameForTheSameSeedOnly) {
  const Instance instance = an_instance(100, 60);
  const Split once = split_rows(instance, 5, 1000), again = split_rows(instance, 5, 1000);
  EXPECT_EQ(once.train, again.train);
  EXPECT_EQ(once.test, again.test);
  const Split other = split_rows(instance, 6, 1000);
  EXPECT_NE(set_of(once.train), set_of(other.train));
  EXPECT_NE(set_of(once.test), set_of(other.test));
}

TEST(Split, TakesAtMostTheAllowedRows) {
  const Split split = split_rows(an_instance(100, 90), 0, 20);
  EXPECT_EQ(split.train.size(), 20u);
  EXPECT_EQ(split.unlabeled.size() + split.test.size(), 20u);
}

// The same song in both domains: a head must not be judged on songs it was trained on.
TEST(Split, KeepsATestRowOfAPairedInstanceOutOfTheSource) {
  Instance instance = an_instance(90, 90);
  instance.target = instance.source;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const Split split = split_rows(instance, seed, 1000);
    EXPECT_TRUE(split.paired);
    EXPECT_EQ(split.train.size(), 45u);
    EXPECT_TRUE(common(split.train, split.test).empty());
  }
}

TEST(JudgedRows, AreAllTestRowsWhereTheLabelsAgree) {
  const Instance instance = an_instance(90, 60);
  const Split split = split_rows(instance, 0, 1000);
  EXPECT_EQ(judged_rows(instance, split, false), split.test);
  EXPECT_EQ(judged_rows(instance, split, true), split.test);
}

TEST(JudgedRows, LeaveOutWhatTheSourceDoesNotKnowOnlyInAClosedSet) {
  Instance instance = an_instance(90, 60);
  for (std::size_t i = 0; i < 60; i += 5) instance.target.labels[i] = 77;
  const Split split = split_rows(instance, 0, 1000);
  expect_throws_naming<std::invalid_argument>({"toy", "class 77", "--closed-set"},
                                              [&] { judged_rows(instance, split, false); });
  const std::vector<Index> judged = judged_rows(instance, split, true);
  std::vector<Index> expected;
  std::copy_if(split.test.begin(), split.test.end(), std::back_inserter(expected),
               [&](Index row) { return instance.target.labels[static_cast<std::size_t>(row)] != 77; });
  EXPECT_EQ(judged, expected);
  EXPECT_LT(judged.size(), split.test.size());
}

TEST(JudgedRows, RefuseAClassWithoutTestSamples) {
  Instance instance = an_instance(90, 60);
  std::replace(instance.target.labels.begin(), instance.target.labels.end(), 2, 1);
  const Split split = split_rows(instance, 0, 1000);
  expect_throws_naming<std::invalid_argument>({"toy", "class 2 has no sample in the test half of 30", "0 in the whole"},
                                              [&] { judged_rows(instance, split, false); });
  EXPECT_EQ(judged_rows(instance, split, true), split.test);  // two classes are left, and that is what was asked for
  std::fill(instance.target.labels.begin(), instance.target.labels.end(), 1);
  expect_throws_naming<std::invalid_argument>({"toy", "has no sample in the test half"},
                                              [&] { judged_rows(instance, split, true); });
}

}  // namespace
}  // namespace itspace::experiments
