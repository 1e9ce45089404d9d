// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tables.hpp"

namespace itspace::experiments::report {
namespace {

constexpr const char* style = R"css(
:root {
  color-scheme: light dark;
  --paper: #fcfcfa; --card: #ffffff; --ink: #1c2228; --soft: #59636d; --rule: #d8dcdf; --band: #f3f4f2;
  --ours: #fbeee4; --ours-ink: #9c4400; --hurt: #fbe3e1; --hurt-ink: #a1201a; --link: #00598c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #191d21; --ink: #e4e7ea; --soft: #9fa9b2; --rule: #343b42; --band: #1f2429;
    --ours: #2f2118; --ours-ink: #ff9d5c; --hurt: #3b1f1d; --hurt-ink: #ff9d94; --link: #6cb8ea;
  }
}
@media (prefers-color-scheme: dark) {
  /* The darker colours of the figures, as gnuplot writes them, lighter on a dark page. */
  .drawing [stroke="rgb(  0, 114, 178)"] { stroke: #56b4e9; }
  .drawing [color="rgb(  0, 114, 178)"] { color: #56b4e9; }
  .drawing [stroke="rgb(170,  68, 153)"] { stroke: #dd8fce; }
  .drawing [color="rgb(170,  68, 153)"] { color: #dd8fce; }
  .drawing [stroke="rgb(  0, 158, 115)"] { stroke: #2fc79b; }
  .drawing [color="rgb(  0, 158, 115)"] { color: #2fc79b; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 82rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.4rem; margin: 3.2rem 0 .8rem; padding-top: .8rem; border-top: 2px solid var(--rule); }
h3 { font-size: 1.12rem; margin: 2.4rem 0 .5rem; }
p, li, dl, nav, header { max-width: 46rem; }
p { margin: .6rem 0; }
a { color: var(--link); }
.lead, .soft, figcaption { color: var(--soft); }
.lead { font-size: 1.08rem; }
nav ul { list-style: none; padding: 0; columns: 2 16rem; }
nav li { margin: .15rem 0; break-inside: avoid; }
nav li.inner { padding-left: 1.2rem; font-size: .93rem; }
.short li { margin: .45rem 0; }
dl.facts { display: grid; grid-template-columns: minmax(6rem, 11rem) 1fr; gap: .3rem 1.2rem; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; min-width: 0; }
dl.terms dt { font-weight: 600; margin-top: .7rem; }
dl.terms dd { margin: 0; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", monospace; background: var(--band); padding: .1em .3em;
  border-radius: 3px; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .8rem 0 .6rem; border: 1px solid var(--rule); border-radius: 6px;
  background: var(--card); max-width: 100%; width: fit-content; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: .82rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: .34rem .55rem; text-align: right; vertical-align: baseline; white-space: nowrap; }
thead th { vertical-align: bottom; font-weight: 600; color: var(--soft); white-space: normal; min-width: 4.2rem; }
thead tr:last-child th { border-bottom: 1px solid var(--rule); }
thead th[rowspan] { border-bottom: 1px solid var(--rule); }
th.over { text-align: center; border-bottom: 1px solid var(--rule); }
tbody th { font-weight: 500; text-align: left; }
thead tr:first-child > th:first-child, tbody tr > th:first-child { position: sticky; left: 0; background: var(--card);
  text-align: left; z-index: 1; max-width: 15rem; white-space: normal; min-width: 9.5rem; }
thead tr + tr th { white-space: nowrap; min-width: 0; }
td.words, th.words { text-align: left; white-space: normal; min-width: 8rem; max-width: 26rem; }
tbody tr + tr > * { border-top: 1px solid color-mix(in srgb, var(--rule) 55%, transparent); }
tr.ours > * { background: var(--ours); }
tr.ours > th:first-child { background: var(--ours); color: var(--ours-ink); font-weight: 600; }
tr.group > th:first-child { background: var(--band); color: var(--ink); font-weight: 600; text-align: left; max-width: none;
  padding-top: .6rem; }
tr.group span { position: sticky; left: .7rem; display: inline-block; max-width: min(60rem, 82vw); }
td.hurts, tr.ours > td.hurts { background: var(--hurt); color: var(--hurt-ink); }
td.hurts .down { font-weight: 700; }
td.reference { color: var(--soft); }
td small { font-size: .82em; color: var(--soft); }
td.hurts small { color: inherit; }
strong { font-weight: 700; }
.finding { border-left: 3px solid var(--ours-ink); padding-left: .8rem; }
figure { margin: 1rem 0; }
.drawing { overflow-x: auto; border: 1px solid var(--rule); border-radius: 6px; background: var(--card); padding: .5rem; }
.drawing svg { display: block; width: 100%; min-width: 58rem; height: auto; color: var(--ink); }
.drawing.shrinks svg { min-width: 0; }
figcaption { font-size: .9rem; max-width: 46rem; margin-top: .4rem; }
.missing { border: 1px dashed var(--soft); border-radius: 6px; padding: .9rem 1rem; color: var(--soft); max-width: 46rem; }
details { margin: .7rem 0; }
summary { cursor: pointer; font-weight: 600; padding: .25rem 0; }
footer { margin-top: 4rem; border-top: 1px solid var(--rule); padding-top: 1rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 40rem) {
  body { padding: 1.4rem .9rem 3rem; }
  h1 { font-size: 1.5rem; }
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd { margin-bottom: .5rem; }
  thead tr:first-child > th:first-child, tbody tr > th:first-child { max-width: 8.5rem; min-width: 6.5rem; }
  th, td { padding: .3rem .5rem; }
}
@media print { .scroll, .drawing { overflow: visible; border: 0; } h2 { break-before: page; } }
)css";

std::string list_of(const auto& values) {
  std::string text;
  for (const auto& value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return text;
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 60) return short_number(seconds) + " s";
  const long whole = std::lround(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

// An anchor from a name: letters, digits and hyphens.
std::string anchor(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    result += plain ? c : '-';
  }
  return result;
}

// Sections in order, with the contents gathered on the way.
class Page {
 public:
  void section(const std::string& id, const std::string& title) {
    body_ += fmt::format("<h2 id=\"{}\">{}</h2>\n", id, escaped(title));
    contents_ += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id, escaped(title));
  }
  void subsection(const std::string& id, const std::string& title) {
    body_ += fmt::format("<h3 id=\"{}\">{}</h3>\n", id, escaped(title));
    contents_ += fmt::format("<li class=\"inner\"><a href=\"#{}\">{}</a></li>\n", id, escaped(title));
  }
  void add(const std::string& html) { body_ += html; }
  void paragraph(const std::string& text) { body_ += "<p>" + escaped(text) + "</p>\n"; }
  void titled(const Table& table, const std::string& title) {
    if (table.rows.empty()) return;
    subsection("table-" + anchor(table.id), title);
    body_ += to_html(table);
  }
  // A picture without small print shrinks with the page; the others scroll in their frame.
  void figure(const Figure& figure, const std::string& name, const std::string& label, const std::string& caption,
              bool shrinks = false) {
    body_ += "<figure>\n";
    if (figure.svg.empty()) {
      body_ +=
          "<div class=\"missing\"><strong>A figure is missing here.</strong> " + escaped(figure.missing) + "</div>\n";
    } else {
      body_ += std::string("<div class=\"drawing") + (shrinks ? " shrinks" : "") +
               "\" role=\"region\" tabindex=\"0\" aria-label=\"" + escaped(label) + "\">\n" +
               inline_svg(figure.svg, anchor(name), label) + "</div>\n";
    }
    body_ += "<figcaption>" + escaped(caption) + "</figcaption>\n</figure>\n";
  }

  const std::string& body() const { return body_; }
  const std::string& contents() const { return contents_; }

 private:
  std::string body_, contents_;
};

void add_list(Page& page, const char* css_class, const std::vector<std::string>& sentences) {
  page.add(fmt::format("<ul class=\"{}\">\n", css_class));
  for (const std::string& sentence : sentences) page.add("<li>" + escaped(sentence) + "</li>\n");
  page.add("</ul>\n");
}

void add_facts(Page& page, const Results& results) {
  page.add("<dl class=\"facts\">\n");
  const auto fact = [&](const char* name, const std::string& value, bool code = false) {
    if (value.empty()) return;
    const std::string text = escaped(value);
    page.add(fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, code ? "<code>" + text + "</code>" : text));
  };
  const Machine& machine = results.machine;
  fact("Command", results.command, true);
  fact("Started", results.started);
  fact("Took", duration(results.seconds));
  fact("itspace", results.version);
  fact("Processor", machine.processor.empty() ? "" : fmt::format("{}, {} cores", machine.processor, machine.cores));
  fact("Memory", machine.memory_in_gib > 0 ? fmt::format("{:.1f} GiB", machine.memory_in_gib) : "");
  fact("System", machine.system);
  fact("Compiler", machine.compiler);
  fact("BLAS", machine.blas.empty() ? ""
                                    : fmt::format("{}, {} {}", machine.blas, machine.blas_threads,
                                                  machine.blas_threads == 1 ? "thread" : "threads"));
  fact("Rank r", std::to_string(results.rank));
  if (!results.alignment.empty()) fact("Steps K", std::to_string(results.steps));
  if (!results.covdrift.empty()) fact("Budgets K", list_of(results.budgets));
  fact("Seeds", list_of(results.seeds));
  page.add("</dl>\n");
  if (!results.notes.empty()) add_list(page, "notes", results.notes);
}

void add_instances(Page& page, const Results& results) {
  page.add("<ul>\n");
  const auto add = [&](const InstanceInfo& info) {
    if (info.outcome != Outcome::done) return;
    page.add(
        fmt::format("<li><strong>{}</strong> (<code>{}</code>, d = {}, {} source and {} target samples, {}). {}</li>\n",
                    escaped(display_title(info)), escaped(info.name), info.dim, info.source_samples,
                    info.target_samples, duration(info.seconds), escaped(info.description)));
  };
  for (const AlignmentInstance& instance : results.alignment) add(instance.info);
  for (const DriftInstance& instance : results.covdrift) add(instance.info);
  page.add("</ul>\n");
}

void add_terms(Page& page, const Results& results) {
  page.add("<dl class=\"terms\">\n");
  const auto term = [&](const char* name, const char* meaning) {
    page.add(fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(meaning)));
  };
  if (!results.alignment.empty()) {
    term("Gap",
         "How far an iterate is above the best that its rank allows: 1 at the start, 0 at the best. It comes from the "
         "exact Bures–Wasserstein objective, evaluated outside every clock, the same for all methods.");
    term("t_alg", "The paper's clock: time in updates and in rank-r projections. Checks of a line search are updates.");
    term("End to end",
         "What each method prepares once (a square root, a decomposition, a starting factor), plus t_alg. Where the "
         "target changes at every use, this is the clock that counts.");
    term("Pass",
         "One sweep over a d × d matrix. It does not depend on the machine, but passes are not seconds: a wider block "
         "costs more in one pass.");
    term("NR", "Not reached within the steps allowed; the final gap stands in parentheses.");
  }
  if (!results.covdrift.empty()) {
    term("CovDrift",
         "A linear head is trained on the source and frozen. The target's features drift along r directions. Each "
         "method gets K steps and unlabeled samples to bring the covariance back; the head then judges the test half.");
    term("Natural shift, scale, mix",
         "No drift beyond what the data bring; stretching the leading source directions by factors from 1 to s_max; "
         "the same stretched part sent into other directions.");
    term("Whitening–recoloring and Monge map",
         "Two ways to move samples once the covariances are known: the paper's, and the optimal transport map, which "
         "moves samples least.");
    term("↓", "Worse than no adaptation. Adaptation can hurt, and where it does the table says so in the cell.");
    term(
        "Endpoint",
        "The map from the best rank-r part of the target's covariance: where a method arrives if it goes all the way.");
  }
  page.add("</dl>\n");
}

const Figure& figure_of(const std::map<std::string, Figure>& figures, const std::string& name) {
  static const Figure none{"", "It was not drawn."};
  const auto found = figures.find(name);
  return found == figures.end() ? none : found->second;
}

void add_alignment(Page& page, const Results& results, const PageFigures& figures) {
  page.section("alignment", "Covariance alignment");
  page.paragraph(fmt::format(
      "Every method takes the source's covariance toward the target's, and is judged by the rank-{} part of where it "
      "is after each step, up to {} steps. Numbers are medians over seeds; our methods are tinted.",
      results.rank, results.steps));
  page.titled(time_to_gap_table(results, Clock::algorithm), "Time to gap, the paper's clock");
  page.titled(time_to_gap_table(results, Clock::end_to_end), "Time to gap, end to end");
  page.titled(speedup_table(results), speedup_table(results).title);
  page.titled(passes_table(results), "Passes to gap");
  page.titled(behaviour_table(results), "Objective, descent and cost of a step");
  page.section("alignment-instances", "Alignment, instance by instance");
  page.paragraph(
      "In the figures a curve that is lower and further left is better. Colours are families, dashes and markers the "
      "methods in them; a curve ends at the lower edge once its gap is below 10⁻⁶, and the start, which has used no "
      "time, is left "
      "out. The tables hold both clocks side by side, and where the time of a step goes.");
  for (const AlignmentInstance& instance : results.alignment) {
    if (!was_run(instance)) continue;
    const InstanceInfo& info = instance.info;
    page.subsection("alignment-" + anchor(info.name), display_title(info));
    page.add(
        fmt::format("<p class=\"soft\">d = {}, {} source and {} target samples. Forming both covariances took {} "
                    "and is in no clock.</p>\n",
                    info.dim, info.source_samples, info.target_samples, duration(instance.covariance_seconds)));
    page.figure(figure_of(figures.alignment, info.name), "gap-" + info.name,
                "Gap against time and against passes, " + display_title(info),
                "Gap against the paper's clock (left) and against passes (right). Dashed: the thresholds.");
    page.add(to_html(instance_table(results, instance)));
  }
}

void add_covdrift(Page& page, const Results& results, const PageFigures& figures) {
  page.section("covdrift", "CovDrift: does alignment help a frozen head?");
  page.titled(drift_summary_table(results), "At a glance");
  for (const DriftInstance& instance : results.covdrift) {
    if (!was_run(instance)) continue;
    const InstanceInfo& info = instance.info;
    page.subsection("covdrift-" + anchor(info.name), display_title(info));
    page.add(
        fmt::format("<p class=\"soft\">{} classes{}, {} in percent; chance is {:.1f}. d = {}, {} source and {} "
                    "target samples.</p>\n",
                    instance.classes, instance.closed_set ? " (closed set)" : "", escaped(instance.metric),
                    instance.chance, info.dim, info.source_samples, info.target_samples));
    page.figure(figure_of(figures.covdrift, info.name), "drift-" + info.name,
                "Value against budget, " + display_title(info),
                "Left and middle: the value against the number of steps under each map. Right: against the severity of "
                "the drift. Higher is better.");
    bool first = true;
    for (const DriftGroup& group : drift_groups(instance)) {
      const Table table = drift_table(results, instance, group);
      page.add(fmt::format("<details{}><summary>{}</summary>\n", first ? " open" : "", escaped(drift_name(group))));
      page.add(to_html(table) + "</details>\n");
      first = false;
    }
  }
}

std::string page_title(const Results& results) {
  const bool alignment = !results.alignment.empty(), covdrift = !results.covdrift.empty();
  if (alignment && covdrift) return "Covariance alignment and CovDrift";
  if (covdrift) return "CovDrift: adapting a frozen head by its covariance";
  return "Covariance alignment under a rank budget";
}

}  // namespace

std::string to_page(const Results& results, const PageFigures& figures) {
  Page page;
  std::vector<std::string> findings = alignment_findings(results);
  for (const std::string& finding : covdrift_findings(results)) findings.push_back(finding);
  if (!findings.empty()) {
    page.section("short", "In short");
    add_list(page, "short", findings);
  }
  page.section("run", "What was run");
  add_facts(page, results);
  const auto any_run = [](const auto& instances) {
    return std::any_of(instances.begin(), instances.end(), [](const auto& instance) { return was_run(instance); });
  };
  const bool alignment = any_run(results.alignment), covdrift = any_run(results.covdrift);
  if (alignment || covdrift) {
    page.subsection("instances", "Instances");
    add_instances(page, results);
  }
  page.titled(not_run_table(results), "Instances without results");
  page.section("read", "How to read it");
  page.figure(
      figures.transport, "transport",
      "Left, two clouds of points with lines between them; right, two ellipses and three between them",
      "Two ways to transport. Left: entropic OT between samples couples every point with many others; the lines "
      "are the plan that Sinkhorn's iteration found for these points, darker with more mass. Right: between "
      "Gaussians the optimal transport is one linear map in closed form; every point moves on a straight line, "
      "and the covariances on the way are the Bures–Wasserstein geodesic. This report compares methods by that "
      "second distance.",
      true);
  add_terms(page, results);
  if (alignment) add_alignment(page, results, figures);
  if (covdrift) add_covdrift(page, results, figures);
  page.section("methods", "The methods");
  page.paragraph("What each method is called on the command line, and how its steps and constants were chosen.");
  page.add(to_html(methods_table(results)));

  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{0}</h1>\n<p class=\"lead\">ITSPACE and the methods one would use instead, measured on the exact "
      "Bures–Wasserstein objective.</p>\n</header>\n<nav "
      "aria-label=\"Contents\">\n<ul>\n{2}</ul>\n</nav>\n<main>\n{3}</main>\n"
      "<footer>Every number is in results.json, those of the tables also in tables.csv and tables.md beside this "
      "page.</footer>\n</body>\n</html>\n",
      escaped(page_title(results)), style, page.contents(), page.body());
}

}  // namespace itspace::experiments::report
