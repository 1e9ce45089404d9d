// SPDX-License-Identifier: Apache-2.0
//
// The report as documents: words and numbers, the tables as files, and the page.
#include "report/report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "report/explain_picture.hpp"
#include "report/figures.hpp"
#include "report/gnuplot.hpp"
#include "report/page.hpp"
#include "report/statistics.hpp"
#include "report/tables.hpp"
#include "report_fixture.hpp"

namespace {

using namespace itspace::experiments;
using namespace itspace::experiments::report;
using namespace itspace::experiments::fixture;
namespace experiments = itspace::experiments;
namespace fs = std::filesystem;

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
  Results results = made_up_results();
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
  for (const Table& table : all_tables(made_up_results())) {
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
  const Results results = made_up_results();
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
  const auto missing = write_report(made_up_results(), folder_, "no-such-gnuplot");
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
