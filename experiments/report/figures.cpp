// SPDX-License-Identifier: Apache-2.0
#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "table.hpp"
#include "tables.hpp"

namespace itspace::experiments::report {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double lowest_gap = 1e-6;  // a curve ends at the lower edge once it is below
constexpr double paper_severity = 1.70;

// A family has a colour (Okabe and Ito's, told apart without red and green), its members a dash and a marker.
std::string colour_of(const std::string& family) {
  if (family == "ours") return "#D55E00";
  if (family == "full matrix") return "#0072B2";
  if (family == "eigensolver") return "#009E73";
  if (family == "sample OT") return "#AA4499";
  return "#777777";
}

std::string style_of(const Results& results, const std::string& id) {
  static const int markers[] = {7, 5, 9, 13, 6, 4, 8, 10, 12};
  static const char* const dashes[] = {"solid",  "(16,6)", "(4,5)", "(14,5,3,5)",
                                       "(22,6)", "(8,4)",  "(2,4)", "(10,3,2,3)"};
  const MethodInfo* info = find_method(results, id);
  const std::string family = info ? info->family : "";
  std::size_t member = 0;
  for (const MethodInfo& method : results.methods) {
    if (method.id == id) break;
    if (method.family == family) ++member;
  }
  return fmt::format("lc rgb '{}' lw {} dt {} pt {} ps {}", colour_of(family), family == "ours" ? 2.4 : 1.4,
                     dashes[member % std::size(dashes)], markers[member % std::size(markers)],
                     family == "ours" ? 0.55 : 0.5);
}

const char* const axes =
    "set border 3 lc rgb 'black' lw 1\nset tics nomirror out scale 0.6,0.3\n"
    "set grid xtics ytics back lc rgb '#cc808080' lw 1 dt solid\n";

// A panel between screen fractions, counted from below.
std::string panel_place(double left, double right, double bottom, double top) {
  return fmt::format(
      "set lmargin at screen {}\nset rmargin at screen {}\nset bmargin at screen {}\nset tmargin at screen {}\n", left,
      right, bottom, top);
}

struct Curve {
  std::string block, title, style;
};

std::string plot(const std::vector<Curve>& curves) {
  std::string text = "plot ";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    text += fmt::format("{}${} using 1:2 with linespoints {} title {}", i > 0 ? ", \\\n  " : "", curves[i].block,
                        curves[i].style, quoted(curves[i].title));
  }
  return text + "\n";
}

struct Range {
  double low = not_reached, high = -not_reached;

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

struct GapCurve {
  Points against_seconds, against_passes;
};

GapCurve gap_curve(const AlignmentInstance& instance, const std::string& method) {
  std::vector<const Run*> runs;
  for (const Run& run : instance.runs) {
    if (run.method == method && !run.rows.empty()) runs.push_back(&run);
  }
  GapCurve curve;
  if (runs.empty()) return curve;
  std::size_t rows = runs.front()->rows.size();
  for (const Run* run : runs) rows = std::min(rows, run->rows.size());
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<double> seconds, passes, gaps;
    for (const Run* run : runs) {
      seconds.push_back(run->rows[i].algorithm_seconds());
      passes.push_back(static_cast<double>(run->rows[i].passes));
      gaps.push_back(run->rows[i].gap);
    }
    const double gap = median(gaps);
    if (!std::isfinite(gap)) continue;
    const double shown = std::max(gap, lowest_gap);
    // The start has used nothing and has no place on a log axis.
    if (median(seconds) > 0) curve.against_seconds.emplace_back(median(seconds), shown);
    if (median(passes) > 0) curve.against_passes.emplace_back(median(passes), shown);
    if (gap < lowest_gap) break;
  }
  return curve;
}

Points line_over(const std::vector<double>& xs, double y) {
  Points points;
  for (const double x : xs) points.emplace_back(x, y);
  return points;
}

// What one row of the drift figure needs.
struct DriftRowView {
  const DriftInstance* instance;
  std::string drift;
  DriftGroup at_budgets;          // the severity nearest the paper's
  std::vector<DriftGroup> sweep;  // by severity
};

std::vector<DriftRowView> drift_rows(const std::vector<const DriftInstance*>& instances) {
  std::vector<DriftRowView> rows;
  for (const DriftInstance* instance : instances) {
    const auto groups = drift_groups(*instance);
    std::vector<std::string> drifts;
    for (const DriftGroup& group : groups) {
      if (std::find(drifts.begin(), drifts.end(), group.drift) == drifts.end()) drifts.push_back(group.drift);
    }
    for (const std::string& drift : drifts) {
      DriftRowView row{instance, drift, {}, {}};
      double nearest = not_reached;
      for (const DriftGroup& group : groups) {
        const bool own = group.drift == drift;
        // Without drift is every drift at severity 1.
        if (own || (group.drift == "none" && drift != "none")) {
          row.sweep.push_back(group);
          if (!own) row.sweep.back().severity = 1;
        }
        if (own && std::abs(group.severity - paper_severity) < nearest) {
          nearest = std::abs(group.severity - paper_severity);
          row.at_budgets = group;
        }
      }
      std::stable_sort(row.sweep.begin(), row.sweep.end(),
                       [](const DriftGroup& a, const DriftGroup& b) { return a.severity < b.severity; });
      rows.push_back(row);
    }
  }
  return rows;
}

std::string values_range(const Range& range) {
  if (range.empty()) return "set yrange [0:100]\n";
  const double margin = std::max(0.5, 0.08 * (range.high - range.low));
  return fmt::format("set yrange [{}:{}]\n", range.low - margin, range.high + margin);
}

constexpr const char* clean_style = "lc rgb '#888888' lw 1.4 dt (3,3) pt 0 ps 0";
constexpr const char* none_style = "lc rgb 'black' lw 1.4 dt solid pt 0 ps 0";
constexpr const char* mean_style = "lc rgb 'black' lw 1.4 dt (6,4) pt 0 ps 0";

}  // namespace

Drawing gap_curves(const Results& results, const AlignmentInstance& instance) {
  const auto methods = measure_all(instance, results);
  std::string blocks;
  std::vector<Curve> by_seconds, by_passes;
  Range seconds, passes, gaps;
  gaps.add(1.0);
  for (const double threshold : results.thresholds) {
    if (threshold > 0) gaps.add(threshold);
  }
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const std::string& id = methods[i].method;
    const GapCurve curve = gap_curve(instance, id);
    const auto add = [&](const char* axis, const Points& points, std::vector<Curve>& curves, Range& range) {
      // A method without a point keeps its line in the legend.
      const std::string name = fmt::format("{}{}", axis, i);
      blocks += data_block(name, points.empty() ? Points{{no_number, no_number}} : points);
      curves.push_back({name, title_of(results, id), style_of(results, id)});
      for (const auto& [x, gap] : points) {
        range.add(x);
        gaps.add(gap);
      }
    };
    add("s", curve.against_seconds, by_seconds, seconds);
    add("p", curve.against_passes, by_passes, passes);
  }
  if (seconds.empty()) seconds = {1e-3, 1};
  if (passes.empty()) passes = {1, 10};
  // Ours last, on top of the others.
  const auto on_top = [&](std::vector<Curve>& curves) {
    std::stable_partition(curves.begin(), curves.end(),
                          [&](const Curve& curve) { return curve.style.find(colour_of("ours")) == std::string::npos; });
  };
  Drawing drawing;
  drawing.width = 1120;
  drawing.height = 430;
  drawing.commands = blocks + axes + "set multiplot\nset logscale xy\nset key off\n";
  const double bottom = gaps.low * 0.6, top = 1.6;
  const auto panel = [&](const char* label, const Range& range) {
    std::string text =
        fmt::format("set xrange [{}:{}]\nset yrange [{}:{}]\n", range.low / 1.5, range.high * 1.5, bottom, top);
    text += "set xtics nomirror " + decade_tics(range.low / 1.5, range.high * 1.5, 6) + "\nset ytics nomirror " +
            decade_tics(bottom, top, 8) + "\nset xlabel " + quoted(label) + "\nunset arrow\nunset label\n";
    for (const double threshold : results.thresholds) {
      if (!(threshold > 0)) continue;
      text += fmt::format(
          "set arrow from graph 0, first {0} to graph 1, first {0} nohead dt (6,4) lw 1 lc rgb '#707070'\n", threshold);
      text += fmt::format("set label {} at graph 0.36, first {} center offset 0,0.5 tc rgb 'black' front\n",
                          quoted("gap ≤ " + short_number(threshold)), threshold);
    }
    return text;
  };
  drawing.commands += panel_place(0.07, 0.395, 0.17, 0.97) + "set ylabel 'gap' offset 1.5,0\n" +
                      panel("t_alg in seconds (update + projection)", seconds);
  std::vector<Curve> ordered = by_seconds;
  on_top(ordered);
  drawing.commands += plot(ordered);
  drawing.commands +=
      panel_place(0.45, 0.775, 0.17, 0.97) + "unset ylabel\n" + panel("passes over a d × d matrix", passes);
  ordered = by_passes;
  on_top(ordered);
  drawing.commands += plot(ordered);
  // The legend in the order of the tables: a panel with nothing but keys.
  drawing.commands +=
      "unset arrow\nunset label\nunset border\nunset tics\nunset grid\nunset xlabel\nset xrange [1:2]\n" +
      panel_place(0.78, 0.99, 0.17, 0.97) +
      "set key at screen 0.79, 0.985 left top reverse Left samplen 3.2 spacing 1.12 font ',12'\n";
  std::vector<Curve> keys = by_seconds;
  for (Curve& key : keys) key.block = "nothing";
  drawing.commands += data_block("nothing", {{0.5, 1}, {0.5, 1}}) + plot(keys) + "unset multiplot\n";
  return drawing;
}

Drawing drift_curves(const Results& results, const std::vector<const DriftInstance*>& instances) {
  const auto rows = drift_rows(instances);
  constexpr int row_height = 430;
  Drawing drawing;
  drawing.width = 1280;
  drawing.height = row_height * std::max<int>(1, static_cast<int>(rows.size()));
  std::string& out = drawing.commands;
  out = std::string("set multiplot\n") + data_block("nothing", {{-5, -5}, {-5, -5}});
  std::vector<double> budgets;
  for (const Index budget : results.budgets) {
    if (budget > 0) budgets.push_back(static_cast<double>(budget));
  }
  if (budgets.empty()) budgets.push_back(1);
  const std::string ours = representative(results);
  const Index focus = focus_budget(results);
  int block = 0;
  const auto add_block = [&](const Points& points) {
    const std::string name = fmt::format("d{}", block++);
    out += data_block(name, points.empty() ? Points{{no_number, no_number}} : points);
    return name;
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const DriftRowView& row = rows[r];
    const DriftGroup& group = row.at_budgets;
    const double share = 1.0 / static_cast<double>(rows.size());
    const double floor = 1.0 - share * static_cast<double>(r + 1);
    const double bottom = floor + 0.29 * share, top = floor + 0.83 * share;
    const auto maps = maps_of(group);
    const double none = value_at(group, "none", "", 0).value_or(Spread{}).mean;
    const double mean = value_at(group, "mean", "", 0).value_or(Spread{}).mean;
    const double clean = clean_value(group).mean;

    // One scale for the panels of a row, so that the maps can be compared.
    Range range;
    for (const double reference : {none, mean, clean}) range.add(reference);
    for (const std::string& map : maps) {
      for (const std::string& id : adapting_methods(group, results)) {
        for (const Index budget : results.budgets) {
          range.add(value_at(group, id, map, budget).value_or(Spread{}).mean);
        }
      }
    }
    std::vector<Curve> keys;
    for (std::size_t m = 0; m < maps.size() && m < 2; ++m) {
      std::vector<Curve> curves{{add_block(line_over(budgets, clean)), "clean", clean_style},
                                {add_block(line_over(budgets, none)), "no adaptation", none_style},
                                {add_block(line_over(budgets, mean)), "mean only", mean_style}};
      std::vector<Curve> own;
      for (const std::string& id : adapting_methods(group, results)) {
        Points points;
        for (const double budget : budgets) {
          if (const auto value = value_at(group, id, maps[m], static_cast<Index>(budget))) {
            points.emplace_back(budget, value->mean);
          }
        }
        (is_ours(results, id) ? own : curves)
            .push_back({add_block(points), title_of(results, id), style_of(results, id)});
      }
      keys.assign(curves.begin(), curves.begin() + 3);
      keys.insert(keys.end(), own.begin(), own.end());
      keys.insert(keys.end(), curves.begin() + 3, curves.end());
      curves.insert(curves.end(), own.begin(), own.end());
      const double left = 0.045 + 0.275 * static_cast<double>(m);
      out += axes + panel_place(left, left + 0.225, bottom, top) + "unset logscale\nset logscale x\nset key off\n";
      std::string tics;
      for (const double budget : budgets)
        tics += fmt::format("{}'{:g}' {:g}", tics.empty() ? "" : ", ", budget, budget);
      out += fmt::format("set xtics nomirror ({})\nset ytics nomirror autofreq\nset xrange [{}:{}]\n", tics,
                         budgets.front() / 1.2, budgets.back() * 1.2);
      out += values_range(range) + "set xlabel 'K, steps' offset 0,0.6\n";
      out += "set title " +
             quoted(maps[m] == "whiten"  ? "whitening–recoloring"
                    : maps[m] == "monge" ? "Monge map"
                                         : maps[m]) +
             " font ',13'\n";
      if (m == 0) {
        out += fmt::format("set label 900 {} at screen 0.012, {} left font ',14' tc rgb 'black'\n",
                           quoted(fmt::format("{}: {}; {} in percent, chance {:.1f}", display_title(row.instance->info),
                                              drift_name(group), row.instance->metric, row.instance->chance)),
                           floor + 0.95 * share);
      }
      out += plot(curves) + "unset label 900\n";
    }

    // The sweep, where there is one.
    if (row.sweep.size() > 1) {
      Points clean_points, none_points, mean_points;
      Range sweep_range, severities;
      std::map<std::string, Points> adapted;
      for (const DriftGroup& at : row.sweep) {
        severities.add(at.severity);
        const auto add = [&](Points& points, double value) {
          points.emplace_back(at.severity, value);
          sweep_range.add(value);
        };
        add(clean_points, clean_value(at).mean);
        if (const auto value = value_at(at, "none", "", 0)) add(none_points, value->mean);
        if (const auto value = value_at(at, "mean", "", 0)) add(mean_points, value->mean);
        for (const std::string& map : maps) {
          if (const auto value = value_at(at, ours, map, focus)) add(adapted[map], value->mean);
        }
      }
      std::vector<Curve> curves{{add_block(clean_points), "clean", clean_style},
                                {add_block(none_points), "no adaptation", none_style},
                                {add_block(mean_points), "mean only", mean_style}};
      for (const std::string& map : maps) {
        const bool whiten = map == "whiten";
        curves.push_back({add_block(adapted[map]),
                          fmt::format("ITSPACE, K = {}, {}", focus,
                                      whiten           ? "whitening"
                                      : map == "monge" ? "Monge"
                                                       : map),
                          fmt::format("lc rgb '{}' lw 2.6 dt {} pt {} ps 0.6", colour_of("ours"),
                                      whiten ? "(8,4)" : "solid", whiten ? 6 : 7)});
      }
      out += axes + panel_place(0.595, 0.82, bottom, top) + "unset logscale\n" + values_range(sweep_range);
      out += fmt::format(
          "set xtics nomirror autofreq\nset ytics nomirror autofreq\nset xrange [{}:{}]\nset xlabel 's_max, severity' "
          "offset 0,0.6\n",
          severities.low - 0.05 * (severities.high - severities.low),
          severities.high + 0.05 * (severities.high - severities.low));
      out += fmt::format(
          "set title 'value against severity' font ',13'\nset key at screen 0.595, {} left top reverse "
          "Left maxrows 3 samplen 2.4 spacing 1.05 font ',11'\n",
          floor + 0.125 * share);
      out += plot(curves);
    }
    // The legend of the first two panels.
    if (!keys.empty()) {
      for (Curve& key : keys) key.block = "nothing";
      out +=
          "unset border\nunset tics\nunset grid\nunset xlabel\nunset title\nunset logscale\nset xrange [0:1]\nset "
          "yrange [0:1]\n" +
          panel_place(0.83, 0.99, floor + 0.02 * share, floor + 0.98 * share);
      out += fmt::format(
                 "set key at screen 0.835, {} left top reverse Left maxrows 40 samplen 3 spacing 1.05 width 0 font "
                 "',11'\n",
                 floor + 0.975 * share) +
             plot(keys);
    }
  }
  out += "unset multiplot\n";
  return drawing;
}

}  // namespace itspace::experiments::report
