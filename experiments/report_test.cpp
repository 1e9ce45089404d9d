// SPDX-License-Identifier: Apache-2.0
//
// The report: numbers against hand-made rows, tables against those numbers, and the page as a document.
#include "report/report.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "report/explain_picture.hpp"
#include "report/figures.hpp"
#include "report/measures.hpp"
#include "report/page.hpp"
#include "report/statistics.hpp"
#include "report/tables.hpp"
#include "report_fixture.hpp"

namespace {

using namespace itspace::experiments;
using namespace itspace::experiments::report;
using itspace::Index;
namespace experiments = itspace::experiments;
namespace fs = std::filesystem;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Gaps after each step; step k takes k seconds of update and k/2 of projection, and 3 passes.
Run run_with_gaps(const std::string& method, std::uint64_t seed, const std::vector<double>& gaps, double slow = 1) {
  Run run;
  run.method = method;
  run.seed = seed;
  run.preprocessing_seconds = 10;
  for (std::size_t k = 0; k < gaps.size(); ++k) {
    const double time = slow * static_cast<double>(k);
    run.rows.push_back(
        {static_cast<Index>(k), static_cast<Index>(3 * k), 100 + gaps[k], gaps[k], time, time / 2, 4 * time});
  }
  return run;
}

Results small_results(std::vector<Run> runs) {
  Results results;
  results.thresholds = {0.1, 0.02};
  results.budgets = {1, 5};
  results.methods = {{"ritz", "Ritz", "ours", "", "", ""},
                     {"paper-1", "Paper", "ours", "W2^2", "d^2 r + r^3", ""},
                     {"bw-gd", "Base", "full matrix", "W2", "d3", ""}};
  AlignmentInstance instance;
  instance.info.name = "small";
  instance.info.dim = 8;
  instance.runs = std::move(runs);
  results.alignment = {instance};
  return results;
}

// By value: the table is often a temporary.
TableRow row_named(const Table& table, const std::string& label) {
  for (const TableRow& row : table.rows) {
    if (row.label == label) return row;
  }
  throw std::out_of_range("no row " + label + " in " + table.id);
}

std::string text_of(const Cell& cell) {
  std::string text;
  for (const Part& part : cell) text += (text.empty() ? "" : " ") + part.text;
  return text;
}

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

// ---- CovDrift ----

DriftCell drift_cell(std::uint64_t seed, double clean, double none, double paper, double base) {
  return {"scale",
          1.7,
          seed,
          clean,
          {{"none", "", 0, none, 0},
           {"mean", "", 0, none + 0.25, 0},
           {"paper-1", "whiten", 1, none, 0.5},
           {"paper-1", "whiten", 5, paper, 2},
           {"paper-1", "monge", 5, paper + 1, 2},
           {"bw-gd", "whiten", 5, base, 30},
           {"bw-gd", "monge", 5, base, 30},
           {"endpoint", "whiten", 0, clean - 0.5, 0}}};
}

DriftInstance drift_instance(std::vector<DriftCell> cells) {
  DriftInstance instance;
  instance.info.name = "small";
  instance.metric = "accuracy";
  instance.classes = 3;
  instance.chance = 40.5;
  instance.cells = std::move(cells);
  return instance;
}

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

// ---- Words and numbers ----

TEST(ShortNumber, HasThreeDigits) {
  EXPECT_EQ(short_number(0.02138), "0.0214");
  EXPECT_EQ(short_number(19.0), "19");
  EXPECT_EQ(short_number(1234.4), "1234");
  EXPECT_EQ(short_number(999.7), "1000");
  EXPECT_EQ(short_number(3.21e-5), "3.21e-5");
  EXPECT_EQ(short_number(2e10), "2e10");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(std::nan("")), "n/a");
}

std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      lines.back().back() += text[i++];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      lines.back().emplace_back();
    } else if (!quoted && c == '\n') {
      lines.emplace_back(1);
    } else {
      lines.back().back() += c;
    }
  }
  EXPECT_FALSE(quoted);
  lines.pop_back();  // after the last newline
  return lines;
}

TEST(Csv, GivesBackEveryNumberOfTheTables) {
  Results results = fixture::made_up_results();
  results.methods[0].title = "a \"quoted\", title";
  std::string csv = csv_header();
  std::vector<std::pair<double, std::string>> wanted;
  for (const Table& table : all_tables(results)) {
    csv += to_csv(table);
    for (const TableRow& row : table.rows) {
      ASSERT_EQ(row.cells.size(), table.columns.size()) << table.id;
      for (const Cell& cell : row.cells) {
        for (const Part& part : cell) wanted.emplace_back(part.value, row.label);
      }
    }
  }
  const auto lines = parse_csv(csv);
  ASSERT_EQ(lines.size(), wanted.size() + 1);
  ASSERT_GT(wanted.size(), 4000u);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& line = lines[i + 1];
    ASSERT_EQ(line.size(), 7u) << i;
    EXPECT_EQ(line[2], wanted[i].second);
    if (std::isnan(wanted[i].first)) {
      EXPECT_EQ(line[5], "");
    } else {
      EXPECT_EQ(std::strtod(line[5].c_str(), nullptr), wanted[i].first) << "to the last bit";
    }
  }
}

TEST(Markdown, EveryRowHasTheColumnsOfItsHeader) {
  std::size_t columns = 0, rows = 0;
  for (const Table& table : all_tables(fixture::made_up_results())) {
    std::istringstream lines(to_markdown(table));
    columns = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] != '|') continue;
      std::size_t bars = 0;
      for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
      if (columns == 0) columns = bars;
      EXPECT_EQ(bars, columns) << line;
      ++rows;
    }
  }
  EXPECT_GT(rows, 200u);
}

// ---- The page ----

// Tags that open must close, in order; returns what is wrong, or nothing.
std::string unbalanced(const std::string& html) {
  static const std::set<std::string> empty_tags{"meta", "br", "hr", "img", "link", "input"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    if (html.compare(at, 2, "<!") == 0) continue;
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const bool closes = html[at + 1] == '/';
    const std::size_t begin = at + (closes ? 2 : 1);
    const std::string name = html.substr(begin, html.find_first_of(" >/\n\t", begin) - begin);
    if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0])))
      return "a bare < near " + html.substr(at, 40);
    if (closes) {
      if (open.empty() || open.back() != name) {
        return "</" + name + "> closes " + (open.empty() ? "nothing" : "<" + open.back() + ">");
      }
      open.pop_back();
    } else if (html[end - 1] != '/' && !empty_tags.count(name)) {
      open.push_back(name);
    }
    if (!closes && name == "style") at = html.find("</style>", at) - 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

void expect_one_page(const std::string& html) {
  EXPECT_EQ(unbalanced(html), "");
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
  // Every id once, every link to one that is there.
  std::set<std::string> ids;
  for (const std::string quote : {"\"", "'"}) {
    const std::string opening = " id=" + quote;
    for (std::size_t at = html.find(opening); at != std::string::npos; at = html.find(opening, at + 1)) {
      const std::size_t begin = at + opening.size();
      const std::string id = html.substr(begin, html.find(quote, begin) - begin);
      EXPECT_TRUE(ids.insert(id).second) << id << " twice";
    }
  }
  for (const std::string quote : {"\"", "'"}) {
    const std::string opening = "href=" + quote + "#";
    for (std::size_t at = html.find(opening); at != std::string::npos; at = html.find(opening, at + 1)) {
      const std::size_t begin = at + opening.size();
      const std::string id = html.substr(begin, html.find(quote, begin) - begin);
      EXPECT_TRUE(ids.count(id)) << "no " << id;
    }
  }
}

TEST(Checker, SeesWhatIsWrong) {
  EXPECT_EQ(unbalanced("<p>a<br>b <i>c</i></p>"), "");
  EXPECT_NE(unbalanced("<p>a"), "");
  EXPECT_NE(unbalanced("<p><i>a</p></i>"), "");
  EXPECT_NE(unbalanced("a < b"), "");
}

class Report : public ::testing::Test {
 protected:
  // Kept where ITSPACE_REPORT_FOLDER names a folder, to be looked at.
  Report() {
    const char* kept = std::getenv("ITSPACE_REPORT_FOLDER");
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = kept ? fs::path(kept) / test
                   : fs::path(::testing::TempDir()) / ("itspace_report_" + std::to_string(getpid()) + test);
    keep_ = kept != nullptr;
    fs::create_directories(folder_);
  }
  ~Report() override {
    std::error_code ignored;
    if (!keep_) fs::remove_all(folder_, ignored);
  }

  std::string content(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    EXPECT_TRUE(file) << name << " is missing";
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
  bool keep_ = false;
};

bool has_gnuplot() {
  return report::draw({100, 100, "plot x\n"}, "gnuplot").missing.empty();
}

TEST_F(Report, HoldsEverythingOfBothExperiments) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const Results results = fixture::made_up_results();
  EXPECT_TRUE(write_report(results, folder_).empty());
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder_)) files.insert(entry.path().filename().string());
  const std::set<std::string> wanted{"covdrift.svg",
                                     "gap_curves_digits.svg",
                                     "gap_curves_fashion-mnist.svg",
                                     "gap_curves_music-0-4.svg",
                                     "gap_curves_office-googlenet-amazon-webcam.svg",
                                     "gap_curves_office-surf-amazon-caltech.svg",
                                     "gap_curves_sensors-1-10.svg",
                                     "gap_curves_synthetic.svg",
                                     "report.html",
                                     "results.json",
                                     "tables.csv",
                                     "tables.md",
                                     "transport.svg"};
  EXPECT_EQ(files, wanted);
  EXPECT_EQ(content("results.json"), to_json(results));
  const std::string html = content("report.html");
  expect_one_page(html);
  EXPECT_EQ(html.find("figure is missing"), std::string::npos);
  // What is black on paper takes the colour of the text on a dark page.
  for (const char* black : {"'black'", "\"black\"", "rgb(  0,   0,   0)", "rgb(0,0,0)"}) {
    EXPECT_EQ(html.find(black), std::string::npos) << black;
  }
  for (const char* part : {"3 of 2048 columns hold NaN", "skipped", "Invented CPU", "prefers-color-scheme",
                           "BW-GD, backtracking", "NR (", "chance 13.4", "class=\"number hurts\"", "<svg viewBox"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const MethodInfo& method : results.methods) {
    EXPECT_NE(content("gap_curves_synthetic.svg").find(method.title), std::string::npos) << method.title;
  }
}

TEST_F(Report, IsWrittenWithoutGnuplotAndSaysSo) {
  const auto missing = write_report(fixture::made_up_results(), folder_, "no-such-gnuplot");
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_NE(missing[0].find("no-such-gnuplot"), std::string::npos);
  EXPECT_NE(missing[0].find("nstall gnuplot"), std::string::npos);
  const std::string html = content("report.html");
  expect_one_page(html);
  EXPECT_NE(html.find("A figure is missing here"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "covdrift.svg"));
  EXPECT_TRUE(fs::exists(folder_ / "tables.csv"));
}

// Text of the user's own in every place that takes text.
TEST_F(Report, EscapesAllText) {
  const std::string hostile = "<script>alert('\"&\n`x` $(touch it) |**_";
  Results results = small_results({run_with_gaps("paper-1", 0, {1, 0.05})});
  results.command = results.version = results.started = hostile;
  results.machine = {hostile, hostile, hostile, hostile, 1, 1, 1};
  results.notes = {hostile};
  for (MethodInfo& method : results.methods) {
    method.title = method.objective = method.cost = method.settings = hostile + method.id;
  }
  results.alignment[0].info.title = results.alignment[0].info.description = hostile;
  AlignmentInstance failed;
  failed.info.outcome = Outcome::failed;
  failed.info.name = "../up/" + hostile;
  failed.info.reason = hostile;
  results.alignment.push_back(failed);
  results.covdrift = {drift_instance({drift_cell(0, 90, 80, 85, 84)})};
  results.covdrift[0].info.name = "../../" + hostile;
  results.covdrift[0].info.title = results.covdrift[0].metric = hostile;
  results.covdrift[0].cells[0].drift = hostile;
  write_report(results, folder_);
  const std::string html = content("report.html");
  expect_one_page(html);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
  if (has_gnuplot()) {
    EXPECT_EQ(html.find("figure is missing"), std::string::npos) << "gnuplot stumbled over the text";
  }
}

TEST_F(Report, ToleratesResultsWithHolesInThem) {
  Results results;
  EXPECT_NO_THROW(write_report(results, folder_));
  expect_one_page(content("report.html"));
  results =
      small_results({experiments::Run{}, run_with_gaps("unlisted", 0, {std::nan("")}), run_with_gaps("bw-gd", 0, {1})});
  results.covdrift = {drift_instance({DriftCell{}})};
  results.budgets = {};
  EXPECT_NO_THROW(write_report(results, folder_));
  expect_one_page(content("report.html"));
  results.thresholds = {};
  results.methods = {};
  EXPECT_NO_THROW(write_report(results, folder_));
  expect_one_page(content("report.html"));
}

TEST_F(Report, ASkippedInstanceStandsThereWithItsReason) {
  Results results;
  results.experiment = "alignment";
  AlignmentInstance skipped;
  skipped.info.name = "camelyon17";
  skipped.info.outcome = Outcome::skipped;
  skipped.info.reason = "no data folder";
  results.alignment = {skipped};
  write_report(results, folder_, "no-such-gnuplot");
  for (const char* name : {"report.html", "tables.md", "tables.csv"}) {
    EXPECT_NE(content(name).find("no data folder"), std::string::npos) << name;
  }
}

// ---- The explanatory picture is computed, not drawn by hand ----

TEST(TransportExample, IsOptimalTransport) {
  const TransportExample example = transport_example();
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const Eigen::Matrix2d pushed = example.map * example.source_covariance * example.map.transpose();
  EXPECT_LT((pushed - example.target_covariance).norm() / (example.target_covariance.norm() * 2 * eps), 100);
  EXPECT_LT((example.map - example.map.transpose()).norm() / (example.map.norm() * eps), 100);
  EXPECT_GT(Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d>(example.map).eigenvalues()(0), 0);
  EXPECT_EQ(interpolated_covariance(example, 0), example.source_covariance);
  EXPECT_LT((interpolated_covariance(example, 1) - example.target_covariance).norm(), 1e-13);
  // The plan couples the whole mass of both sides.
  const double n = static_cast<double>(example.plan.rows());
  EXPECT_GE(example.plan.minCoeff(), 0);
  EXPECT_LT((example.plan.rowwise().sum().array() - 1 / n).abs().sum(), 1e-3);
  EXPECT_LT((example.plan.colwise().sum().array() - 1 / n).abs().sum(), 1e-3);
}

}  // namespace
