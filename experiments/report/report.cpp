// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <itspace/io.hpp>
#include <set>

#include "explain_picture.hpp"
#include "figures.hpp"
#include "page.hpp"
#include "tables.hpp"

namespace itspace::experiments {
namespace {

// A name that any file system takes.
std::string file_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    result += plain ? c : '-';
  }
  return result;
}

// Draws, saves, and remembers what is missing.
class Studio {
 public:
  Studio(const std::filesystem::path& folder, const std::string& gnuplot) : folder_(folder), gnuplot_(gnuplot) {}

  report::Figure figure(const report::Drawing& drawing, const std::string& name = "") {
    report::Figure figure = report::draw(drawing, gnuplot_);
    if (figure.svg.empty()) {
      missing_.insert(figure.missing);
    } else if (!name.empty()) {
      std::string unused = name;
      for (int i = 2; !written_.insert(unused).second; ++i) unused = name + "-" + std::to_string(i);
      io::save_text(folder_ / (unused + ".svg"), figure.svg);
    }
    return figure;
  }

  std::vector<std::string> missing() const { return {missing_.begin(), missing_.end()}; }

 private:
  const std::filesystem::path& folder_;
  const std::string& gnuplot_;
  std::set<std::string> written_, missing_;
};

}  // namespace

std::vector<std::string> write_report(const Results& results, const std::filesystem::path& folder,
                                      const std::string& gnuplot) {
  using namespace report;
  // The numbers first: they are safe before anything is drawn.
  io::save_text(folder / "results.json", to_json(results));
  std::string markdown, csv = csv_header();
  for (const Table& table : all_tables(results)) {
    markdown += to_markdown(table);
    csv += to_csv(table);
  }
  io::save_text(folder / "tables.md", markdown);
  io::save_text(folder / "tables.csv", csv);

  Studio studio(folder, gnuplot);
  PageFigures figures;
  figures.transport = studio.figure(transport_picture(transport_example()), "transport");
  for (const AlignmentInstance& instance : results.alignment) {
    if (!was_run(instance)) continue;
    figures.alignment[instance.info.name] =
        studio.figure(gap_curves(results, instance), "gap_curves_" + file_name(instance.info.name));
  }
  std::vector<const DriftInstance*> drifted;
  for (const DriftInstance& instance : results.covdrift) {
    if (!was_run(instance)) continue;
    drifted.push_back(&instance);
    figures.covdrift[instance.info.name] = studio.figure(drift_curves(results, {&instance}));
  }
  if (!drifted.empty()) studio.figure(drift_curves(results, drifted), "covdrift");
  io::save_text(folder / "report.html", to_page(results, figures));
  return studio.missing();
}

}  // namespace itspace::experiments
