// SPDX-License-Identifier: Apache-2.0
//
// The measures and tables of covdrift, against hand-made cells.
#include <gtest/gtest.h>

#include <cmath>

#include "report/measures.hpp"
#include "report/tables.hpp"
#include "report_fixture.hpp"

namespace {

using namespace itspace::experiments;
using namespace itspace::experiments::report;
using namespace itspace::experiments::fixture;

TEST(Recovery, IsReportedOnlyWhereTheDropIsTwoPoints) {
  EXPECT_EQ(recovered(85, 80, 90).value(), 0.5);
  EXPECT_EQ(recovered(89, 88, 90).value(), 0.5) << "a drop of exactly two";
  EXPECT_FALSE(recovered(89, 88.01, 90));
  EXPECT_FALSE(recovered(89, 91, 90));
  EXPECT_FALSE(recovered(std::nan(""), 80, 90));
  EXPECT_LT(recovered(78, 80, 90).value(), 0) << "hurt is negative recovery";

  Results results = small_results({});
  results.covdrift = {drift_instance({drift_cell(0, 90, 80, 86, 84), drift_cell(1, 92, 82, 90, 93)})};
  const Table table = drift_summary_table(results);
  const TableRow& row = table.rows.at(0);
  ASSERT_EQ(row.label, "scale, s_max = 1.7; whitening–recoloring");
  EXPECT_NE(row.group.find("chance 40.5"), std::string::npos);
  EXPECT_EQ(text_of(row.cells[0]), "91.00 ± 1.41");
  EXPECT_EQ(text_of(row.cells[3]), "88.00 ± 2.83");
  EXPECT_EQ(text_of(row.cells[5]), "70 %") << "(88 - 81)/(91 - 81)";
  EXPECT_EQ(text_of(row.cells[6]), "Base");
  EXPECT_EQ(text_of(row.cells[7]), "88.50 ± 6.36");

  results.covdrift = {drift_instance({drift_cell(0, 81, 80, 80.5, 80)})};
  EXPECT_TRUE(drift_summary_table(results).rows.at(0).cells[5].empty());
}

TEST(Hurt, IsMarkedInTheCell) {
  EXPECT_TRUE(hurts(79.99, 80));
  EXPECT_FALSE(hurts(79.999, 80)) << "not to be seen in two decimals";
  EXPECT_FALSE(hurts(80, 80));
  EXPECT_FALSE(hurts(std::nan(""), 80));

  Results results = small_results({});
  results.covdrift = {drift_instance({drift_cell(0, 90, 80, 78, 84)})};
  const Table table = drift_table(results, results.covdrift[0], drift_groups(results.covdrift[0]).at(0));
  const TableRow paper = row_named(table, "Paper");
  // whitening K = 1, 5, Monge K = 1, 5
  EXPECT_EQ(paper.cells[0][0].mark, Mark::none);
  EXPECT_EQ(paper.cells[1][0].mark, Mark::hurts);
  EXPECT_TRUE(paper.cells[2].empty());
  EXPECT_EQ(paper.cells[3][0].mark, Mark::hurts);
  EXPECT_EQ(text_of(paper.cells[4]), "2");
  EXPECT_NE(to_markdown(table).find("↓ 78.00"), std::string::npos);
  EXPECT_NE(to_html(table).find("class=\"number hurts\""), std::string::npos);
  EXPECT_NE(to_csv(table).find("↓ 78.00"), std::string::npos);
  EXPECT_EQ(text_of(row_named(table, "No adaptation").cells[3]), "80.00") << "answers for every map and budget";
  EXPECT_EQ(text_of(row_named(table, "Endpoint").cells[0]), "89.50");
  EXPECT_EQ(table.rows.front().label, "No adaptation");
  EXPECT_EQ(table.rows.back().label, "Endpoint");
  EXPECT_NE(table.how_to_read.at(0).find("chance 40.5"), std::string::npos);
}

TEST(DriftGroups, KeepDriftsAndSeveritiesApart) {
  DriftCell other = drift_cell(0, 90, 80, 85, 84);
  other.severity = 3;
  DriftCell mix = drift_cell(0, 90, 80, 85, 84);
  mix.drift = "mix";
  const DriftInstance instance =
      drift_instance({drift_cell(0, 90, 80, 85, 84), other, mix, drift_cell(1, 90, 80, 85, 84)});
  const auto groups = drift_groups(instance);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].cells.size(), 2u);
  EXPECT_EQ(drift_name(groups[1]), "scale, s_max = 3");
}

}  // namespace
