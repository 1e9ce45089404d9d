// SPDX-License-Identifier: Apache-2.0
#include "report_fixture.hpp"

#include <algorithm>
#include <cmath>
#include <itspace/random.hpp>

namespace itspace::experiments::fixture {
namespace {

struct Invented {
  const char *id, *title, *family;
  double shrink;         // of the gap per step
  double floor;          // where the gap stays
  double step_seconds;   // at d = 2048
  double passes;         // per step; negative: times d
  double preprocessing;  // seconds at d = 2048
  bool rises;
};

constexpr Invented methods[] = {{"paper-0.9", "ITSPACE, α = 0.9", "ours", 0.3, 0, 0.004, 1, 0, false},
                                {"paper-1", "ITSPACE, α = 1", "ours", 0.25, 0, 0.004, 1, 0, false},
                                {"paper-line-search", "ITSPACE, line search", "ours", 0.2, 0, 0.0045, 1, 0, false},
                                {"ritz", "Ritz steps", "ours", 0.06, 0, 0.008, 1, 0, false},
                                {"bw-gd", "BW-GD, backtracking", "full matrix", 0.35, 0, 3.1, -3, 1.4, false},
                                {"bw-gd-unit", "BW-GD, unit step", "full matrix", 1e-4, 0, 2.1, -2, 1.4, false},
                                {"bw-geodesic", "BW geodesic", "full matrix", 0.82, 0.01, 0.3, 40, 4.0, false},
                                {"euclidean", "Euclidean", "full matrix", 0.7, 0, 0.2, 40, 0, true},
                                {"log-euclidean", "Log-Euclidean", "full matrix", 0.8, 0, 1.9, -1, 1.4, true},
                                {"airm", "AIRM", "full matrix", 0.81, 0, 2.2, -1, 2.8, true},
                                {"coral", "CORAL", "full matrix", 1e-6, 0, 3.3, -2, 1.4, false},
                                {"sinkhorn", "Sinkhorn", "sample OT", 0.4, 0.06, 0.4, 21, 0.1, true},
                                {"sinkhorn-gaussian", "Sinkhorn-Gaussian", "sample OT", 0.45, 0.13, 0.4, 21, 0.3, true},
                                {"randomized-svd", "Randomized SVD", "eigensolver", 0.2, 0, 0.006, 1, 0, false},
                                {"lobpcg", "LOBPCG", "eigensolver", 0.12, 0, 0.009, 1, 0, false},
                                {"block-krylov", "Block Krylov", "eigensolver", 0.055, 0, 0.01, 1, 0, false},
                                {"lanczos", "Lanczos (Spectra)", "eigensolver", 1e-9, 0, 0.3, 70, 0, false}};

double jitter(std::uint64_t a, std::uint64_t b) {
  return 1 + 0.06 * Random(7, a).normal(b);
}

AlignmentInstance aligned(const char* name, const char* title, Index dim, std::uint64_t which) {
  AlignmentInstance instance;
  instance.info = {name, title, "Invented for this test.", Outcome::done, "", dim, 2400, 1900, 87.5};
  instance.covariance_seconds = 0.31;
  const double scale = std::pow(static_cast<double>(dim) / 2048.0, 2);
  for (std::uint64_t m = 0; m < std::size(methods); ++m) {
    const Invented& method = methods[m];
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Run run;
      run.method = method.id;
      run.seed = seed;
      run.preprocessing_seconds = method.preprocessing * scale * jitter(m, seed);
      const bool one_shot = method.shrink < 1e-3;
      const double per_step = method.passes < 0 ? -method.passes * static_cast<double>(dim) : method.passes;
      double gap = 1;
      for (Index step = 0; step <= (one_shot ? 1 : 20); ++step) {
        Row row;
        row.step = step;
        row.passes = static_cast<Index>(per_step) * step;
        if (step > 0)
          gap *= std::min(0.97, method.shrink * jitter(m + 100 * which, seed * 50 + step) * (1 + 0.1 * which));
        const double wiggle = method.rises && step == 7 ? 1.3 : 1.0;
        row.gap = std::max(gap * wiggle, method.floor);
        row.objective = 40 + 60 * row.gap;
        const double seconds = method.step_seconds * scale * static_cast<double>(step) * jitter(m, seed);
        const bool projects = method.family[0] == 'f';
        row.update_seconds = seconds * (projects ? 0.8 : 1);
        row.projection_seconds = seconds - row.update_seconds;
        row.evaluation_seconds = 0.05 * scale * static_cast<double>(step);
        run.rows.push_back(row);
        if (row.gap < 1e-3 && projects) break;
      }
      instance.runs.push_back(run);
    }
  }
  return instance;
}

DriftInstance drifted(const char* name, const char* title, bool sweep, double natural, double clean) {
  DriftInstance instance;
  instance.info = {name, title, "Invented for this test.", Outcome::done, "", 1024, 900, 300, 31};
  instance.metric = clean > 90 ? "AUROC" : "accuracy";
  instance.classes = clean > 90 ? 2 : 10;
  instance.chance = clean > 90 ? 50 : 13.4;
  struct Condition {
    const char* drift;
    double severity;
  };
  std::vector<Condition> conditions{{"none", 1}, {"scale", 1.7}, {"mix", 1.7}};
  if (sweep) {
    for (const double severity : {3.0, 5.0, 8.0}) {
      conditions.push_back({"scale", severity});
      conditions.push_back({"mix", severity});
    }
  }
  for (const Condition& condition : conditions) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      DriftCell cell;
      cell.drift = condition.drift;
      cell.severity = condition.severity;
      cell.seed = seed;
      cell.clean = clean * jitter(900, seed * 0 + 1) / jitter(900, 1) + static_cast<double>(seed);
      const double drop = natural + 5 * (condition.severity - 1);
      const double none = cell.clean - drop;
      cell.rows = {{"none", "", 0, none, 0}, {"mean", "", 0, none + 0.2 * drop, 1e-4}};
      for (std::uint64_t m = 0; m < std::size(methods); ++m) {
        const Invented& method = methods[m];
        for (const char* map : {"whiten", "monge"}) {
          const bool whiten = map[0] == 'w';
          const double full = (whiten ? 0.7 - 2.0 * (natural > 3) : 0.95) - 4 * method.floor;
          for (const Index budget : {1, 2, 5, 20}) {
            const double done = 1 - std::pow(std::min(0.97, method.shrink), static_cast<double>(budget));
            cell.rows.push_back({method.id, map, budget, none + full * done * drop + 0.02 * static_cast<double>(m),
                                 0.2 * method.step_seconds * static_cast<double>(budget) * jitter(m, seed)});
          }
        }
      }
      cell.rows.push_back({"endpoint", "whiten", 0, none + 0.7 * drop, 0});
      cell.rows.push_back({"endpoint", "monge", 0, none + 0.96 * drop, 0});
      instance.cells.push_back(cell);
    }
  }
  return instance;
}

}  // namespace

Results made_up_results() {
  Results results;
  results.experiment = "alignment";
  results.version = "0.0.0";
  results.command = "itspace experiment alignment --out <made-up & invented>";
  results.started = "2030-01-02T03:04:05Z";
  results.seconds = 731.4;
  results.machine = {"Invented CPU @ 2.0 GHz", "Linux 6.1", "GCC 12.2.0", "OpenBLAS 0.3.21", 2, 2, 7.6};
  results.seeds = {0, 1, 2};
  results.thresholds = {0.1, 0.02};
  results.budgets = {1, 2, 5, 20};
  results.notes = {"These numbers are made up for a test of the report; nothing here was measured.",
                   "Every seed keeps 80 % of the rows of either side."};
  for (const Invented& method : methods) {
    results.methods.push_back({method.id, method.title, method.family,
                               method.family[0] == 's' ? "entropic OT of samples" : "W2^2, exact",
                               method.family[0] == 'f' ? "d^3 + projection" : "d^2 r + d r^2 + r^3",
                               "t_k = k/K; chosen from the grid {0.001, 0.003, 0.01, 0.03}, best final gap"});
  }
  results.alignment = {aligned("synthetic", "Synthetic, power-law spectra", 2048, 0),
                       aligned("office-googlenet-amazon-webcam", "Office-Caltech GoogLeNet, amazon to webcam", 1024, 1),
                       aligned("office-surf-amazon-caltech", "Office-Caltech SURF, amazon to caltech", 800, 2),
                       aligned("fashion-mnist", "Fashion-MNIST, classes 0-4 to 5-9", 784, 3),
                       aligned("music-0-4", "Music features, domain 0 to 4", 518, 4),
                       aligned("sensors-1-10", "Gas sensors, batch 1 to 10", 128, 5),
                       aligned("digits", "Digits, MNIST to USPS", 256, 6)};
  AlignmentInstance failed;
  failed.info.name = "visda2017";
  failed.info.title = "VisDA-2017, synthetic to real";
  failed.info.outcome = Outcome::failed;
  failed.info.reason =
      "visda2017/target_x.npy: 3 of 2048 columns hold NaN (first at row 17); remove those rows & run again";
  AlignmentInstance skipped;
  skipped.info.name = "camelyon17";
  skipped.info.title = "Camelyon17, hospital shift";
  skipped.info.outcome = Outcome::skipped;
  skipped.info.reason = "no <data>/camelyon17/{source,target}_{x,y}.npy; docs/guides/features.md says how to make them";
  results.alignment.push_back(failed);
  results.alignment.push_back(skipped);
  results.covdrift = {
      drifted("office-googlenet-amazon-webcam", "Office-Caltech GoogLeNet, amazon to webcam", true, 4.5, 84),
      drifted("music-0-4", "Music features, domain 0 to 4", true, 0.5, 55),
      drifted("sensors-1-10", "Gas sensors, batch 1 to 10", false, 0.2, 93)};
  DriftInstance drift_failed;
  drift_failed.info = failed.info;
  results.covdrift.push_back(drift_failed);
  return results;
}

Run run_with_gaps(const std::string& method, std::uint64_t seed, const std::vector<double>& gaps, double slow) {
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

report::TableRow row_named(const report::Table& table, const std::string& label) {
  for (const report::TableRow& row : table.rows) {
    if (row.label == label) return row;
  }
  throw std::out_of_range("no row " + label + " in " + table.id);
}

std::string text_of(const report::Cell& cell) {
  std::string text;
  for (const report::Part& part : cell) text += (text.empty() ? "" : " ") + part.text;
  return text;
}

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

}  // namespace itspace::experiments::fixture
