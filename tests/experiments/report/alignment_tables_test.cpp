// SPDX-License-Identifier: Apache-2.0
//
// The measures and tables of the alignment experiment, against hand-made rows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/measures.hpp"
#include "report/statistics.hpp"
#include "report/tables.hpp"
#include "report_fixture.hpp"

namespace {

using namespace itspace::experiments;
using namespace itspace::experiments::report;
using namespace itspace::experiments::fixture;
namespace experiments = itspace::experiments;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Median, CountsWhatWasNotReachedAsInfinite) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({infinity, 1, 2}), 2);
  EXPECT_EQ(median({infinity, 1, infinity}), infinity);
  EXPECT_EQ(median({infinity, 1, 2, infinity}), infinity) << "one of the middle two";
  EXPECT_EQ(median({infinity, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({std::nan(""), 1, 2}), 2);
  EXPECT_EQ(median({7}), 7);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Spread, IsTheSampleDeviation) {
  const report::Spread three = spread({1, 2, 6});
  EXPECT_EQ(three.mean, 3);
  EXPECT_EQ(three.deviation, std::sqrt((4.0 + 1.0 + 9.0) / 2.0));
  EXPECT_EQ(spread({5}).mean, 5);
  EXPECT_TRUE(std::isnan(spread({5}).deviation));
  EXPECT_TRUE(std::isnan(spread({}).mean));
}

TEST(Passage, IsTheFirstRowAtOrBelowTheThreshold) {
  const experiments::Run run = run_with_gaps("m", 0, {1, 0.5, 0.1, 0.3, 0.05});
  const Passage passage = first_passage(run, 0.1);
  EXPECT_EQ(passage.algorithm_seconds, 2 + 1.0);
  EXPECT_EQ(passage.end_to_end_seconds, 10 + 3.0);
  EXPECT_EQ(passage.passes, 6);
  EXPECT_EQ(first_passage(run, 0.01).passes, infinity);
  EXPECT_EQ(first_passage(run, 0.01).algorithm_seconds, infinity);
  EXPECT_EQ(first_passage(run_with_gaps("m", 0, {1, std::nan("")}), 0.1).passes, infinity);
}

TEST(Passage, MedianOverSeedsWithOneThatDidNotGetThere) {
  const Results results =
      small_results({run_with_gaps("paper-1", 0, {1, 0.05, 0.01}), run_with_gaps("paper-1", 1, {1, 0.5, 0.08}),
                     run_with_gaps("paper-1", 2, {1, 0.6, 0.3})});
  const MethodMeasures measures = measure(results.alignment[0], "paper-1", results.thresholds);
  EXPECT_EQ(measures.runs, 3);
  EXPECT_EQ(measures.passages[0].passes, 6);                    // 3, 6, not reached
  EXPECT_EQ(measures.passages[0].algorithm_seconds, 3.0);       // 1.5, 3, not reached
  EXPECT_EQ(measures.passages[1].algorithm_seconds, infinity);  // 3, not reached, not reached
  EXPECT_EQ(measures.final_gap, 0.08);
  EXPECT_EQ(measures.update_per_step, 1);
  EXPECT_EQ(measures.projection_per_step, 0.5);
  EXPECT_EQ(measures.evaluation_per_step, 4);
  EXPECT_EQ(measures.seconds_per_step, 1.5);

  const Table table = instance_table(results, results.alignment[0]);
  const TableRow row = row_named(table, "Paper");
  EXPECT_EQ(text_of(row.cells[0]), "3");
  EXPECT_EQ(text_of(row.cells[1]), "NR (0.08)");
  EXPECT_EQ(text_of(row.cells[2]), "13");
  EXPECT_EQ(text_of(row.cells[4]), "6");
  EXPECT_EQ(text_of(row_named(time_to_gap_table(results, Clock::algorithm), "Paper").cells[0]), "3 NR (0.08)");
}

TEST(Speedup, IsTheRatioOfMedians) {
  const Results results =
      small_results({run_with_gaps("paper-1", 0, {1, 0.05, 0.01}), run_with_gaps("bw-gd", 0, {1, 0.5, 0.05, 0.01}, 100),
                     run_with_gaps("ritz", 0, {1, 0.5, 0.4})});
  const auto at = [&](const char* id) { return measure(results.alignment[0], id, results.thresholds); };
  const MethodMeasures base = at("bw-gd"), paper = at("paper-1");
  EXPECT_EQ(report::speedup(base, paper, 0, Clock::algorithm).ratio, 300.0 / 1.5);
  EXPECT_EQ(report::speedup(base, paper, 1, Clock::algorithm).ratio, 450.0 / 3.0);
  EXPECT_EQ(report::speedup(base, paper, 0, Clock::end_to_end).ratio, 310.0 / 11.5);
  EXPECT_TRUE(report::speedup(base, at("ritz"), 0, Clock::algorithm).not_reached);
  const report::Speedup bound = report::speedup(at("ritz"), paper, 0, Clock::algorithm);
  EXPECT_TRUE(bound.at_least);
  EXPECT_EQ(bound.ratio, 3.0 / 1.5) << "the whole run of the base";

  const Table table = speedup_table(results);
  EXPECT_EQ(text_of(row_named(table, "Paper").cells[0]), "200×");
  EXPECT_EQ(text_of(row_named(table, "Paper").cells[2]), "27×");
  EXPECT_EQ(text_of(row_named(table, "Ritz").cells[1]), "NR");
}

TEST(Rises, AreCountedBeyondRounding) {
  experiments::Run run = run_with_gaps("euclidean", 0, {1, 1, 1, 1, 1});
  const double objectives[] = {2.0, 2.0 * (1 + 0.5e-10), 1.0, 1.0 + 3e-10, 0.5};
  for (std::size_t i = 0; i < 5; ++i) run.rows[i].objective = objectives[i];
  const Rises rises = count_rises(run);
  EXPECT_EQ(rises.rises, 1);
  EXPECT_EQ(rises.steps, 4);
  run.rows[4].objective = std::nan("");
  EXPECT_EQ(count_rises(run).rises, 2) << "what is no number has not fallen";
  EXPECT_EQ(count_rises(experiments::Run{}).steps, 0);

  Results results = small_results({run, run_with_gaps("paper-1", 0, {1, 0.5})});
  results.methods.push_back({"euclidean", "Euclidean", "full matrix", "", "", ""});
  const Table table = behaviour_table(results);
  EXPECT_EQ(text_of(row_named(table, "Euclidean").cells[1]), "2 4");
  EXPECT_EQ(text_of(row_named(table, "Euclidean").cells[2]), "no");
  EXPECT_EQ(text_of(row_named(table, "Paper").cells[2]), "yes, in these runs");
  EXPECT_EQ(text_of(row_named(table, "Paper").cells[3]), "d² r + r³");
}

TEST(Passes, TheTableSaysWhereRitzIsNotTheFewest) {
  Results results =
      small_results({run_with_gaps("ritz", 0, {1, 0.09, 0.01}), run_with_gaps("paper-1", 0, {1, 0.5, 0.01})});
  EXPECT_NE(passes_table(results).findings.at(0).find("fewest passes, alone or tied"), std::string::npos);
  EXPECT_EQ(row_named(passes_table(results), "Ritz").cells[0][0].mark, Mark::best);
  EXPECT_EQ(row_named(passes_table(results), "Paper").cells[0][0].mark, Mark::none);
  EXPECT_EQ(row_named(passes_table(results), "Paper").cells[0][1].mark, Mark::best) << "tied";

  results.alignment[0].runs.push_back(run_with_gaps("bw-gd", 0, {1, 0.01}));
  const std::string sentence = passes_table(results).findings.at(0);
  for (const char* part : {"1 of 2", "small", "0.02", "Base with 3", "Ritz needs 6"}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence << " lacks " << part;
  }
  EXPECT_EQ(sentence.find("gap ≤ 0.1:"), std::string::npos) << "tied at 3 passes";
}

}  // namespace
