// SPDX-License-Identifier: Apache-2.0
#include "covdrift.hpp"

#include "covdrift_moments.hpp"
#include "covdrift_split.hpp"
#include "drift.hpp"
#include "linear_head.hpp"
#include "metrics.hpp"
#include "stopwatch.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/targets.hpp>
#include <itspace/transport_map.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

namespace itspace::experiments {
namespace {

void check_options(const Instance& instance, const CovDriftOptions& options) {
  const std::string& name = instance.info.name;
  const Index dim = instance.source.features.cols();
  if (options.rank < 1 || options.rank >= dim)
    throw std::invalid_argument(
        fmt::format("{}: rank {} of features with {} dimensions; a rank budget is at least 1 and below the dimension",
                    name, options.rank, dim));
  if (options.seeds.empty() || options.budgets.empty() || options.drifts.empty() || options.severities.empty())
    throw std::invalid_argument("no seed, budget, drift or severity; give at least one of each");
  for (const Index budget : options.budgets)
    if (budget < 1) throw std::invalid_argument(fmt::format("a budget of {} steps; it must be at least 1", budget));
  if (options.most_rows < 4)
    throw std::invalid_argument(fmt::format("at most {} rows of each domain; allow at least 4", options.most_rows));
  if (instance.source.labels.empty() || instance.target.labels.empty())
    throw std::invalid_argument(fmt::format("{} has no labels; a head needs them on both sides", name));
}

std::vector<const Method*> chosen_methods(const CovDriftOptions& options) {
  std::vector<const Method*> methods;
  for (const std::string& id : options.methods) methods.push_back(&method_named(id));
  if (methods.empty())
    for (const Method& method : all_methods()) methods.push_back(&method);
  std::erase_if(methods, [](const Method* method) { return !method->has_budget; });
  return methods;
}

struct Setting {
  std::string name;
  DriftKind kind;
  double severity;
};

std::vector<Setting> settings_of(const CovDriftOptions& options) {
  std::vector<Setting> settings;
  for (const std::string& name : options.drifts) {
    const DriftKind kind = drift_kind_named(name);
    if (kind == DriftKind::none) {
      settings.push_back({name, kind, 1});
      continue;
    }
    for (const double severity : options.severities) settings.push_back({name, kind, severity});
  }
  return settings;
}

std::vector<int> labels_at(const LabelledSet& set, const std::vector<Index>& rows) {
  std::vector<int> labels;
  for (const Index row : rows) labels.push_back(set.labels[static_cast<std::size_t>(row)]);
  return labels;
}

double largest_share(const std::vector<int>& labels) {
  std::map<int, Index> counts;
  Index largest = 0;
  for (const int label : labels) largest = std::max(largest, ++counts[label]);
  return 100 * static_cast<double>(largest) / static_cast<double>(labels.size());
}

struct SeedRows {
  Split split;
  std::vector<Index> judged;  // the test rows that are evaluated
};

// What one seed fixes before any drift.
struct SeedState {
  Block<double> train, unlabeled, test;  // standardised
  std::vector<int> test_labels;
  LinearHead head;
  Moments source;
  Block<double> leading_directions;  // d x r
};

Block<double> directions_of(const Block<double>& factor) {
  return factor * factor.colwise().norm().cwiseInverse().asDiagonal();
}

SeedState prepare(const Instance& instance, const SeedRows& rows, const CovDriftOptions& options, std::uint64_t seed) {
  Block<double> train = rows_of(instance.source.features, rows.split.train);
  Block<double> unlabeled = rows_of(instance.target.features, rows.split.unlabeled);
  Block<double> test = rows_of(instance.target.features, rows.judged);
  const Standardiser standardiser(train);
  for (Block<double>* samples : {&train, &unlabeled, &test}) standardiser.apply(*samples);

  Moments source = moments_of(train, {options.shrinkage, options.eigenvalue_floor});
  Block<double> directions = directions_of(truncate<double>(source.covariance, options.rank));
  LinearHead head = train_head(train, labels_at(instance.source, rows.split.train), seed).head;
  return {std::move(train), std::move(unlabeled), std::move(test),      labels_at(instance.target, rows.judged),
          std::move(head),  std::move(source),    std::move(directions)};
}

// AUROC of the larger label for two classes, accuracy otherwise; percent.
double value_of(const LinearHead& head, const Block<double>& samples, const std::vector<int>& labels) {
  const Block<double> scores = head.scores(samples);
  if (!scores.allFinite()) return std::numeric_limits<double>::quiet_NaN();
  if (head.classes().size() > 2) return accuracy(head.predict(scores), labels);
  std::vector<bool> is_positive;
  for (const int label : labels) is_positive.push_back(label == head.classes().back());
  return auroc(scores.col(0), is_positive);
}

// One drift at one severity with one seed.
class Cell {
 public:
  Cell(const SeedState& state, const Setting& setting, const CovDriftOptions& options, std::uint64_t seed,
       const std::shared_ptr<Tuning>& tuning, bool spectral)
      : state_(state),
        options_(options),
        test_(state.test),
        target_(drifted_moments(state, setting, options, seed, unlabeled_)),
        problem_(state.source.covariance, std::move(target_.covariance), some_of(state.train), some_of(unlabeled_),
                 options.rank, seed, tuning),
        operator_(problem_.target_covariance()) {
    drift_of(state, setting, seed).apply(test_);
    const DenseTarget<double> source(borrow(problem_.start_covariance()));
    to_ = model_of<double>(source, problem_.start(), state.source.mean);
    endpoint_ = spectral ? leading_of(problem_.spectral_target())
                         : truncate<double>(problem_.target_covariance(), options.rank);
    floor_ = std::max(0.0, operator_.trace() - endpoint_.squaredNorm());
    start_objective_ = target_distance_squared<double>(problem_.start(), operator_);
    out_.drift = setting.name;
    out_.severity = setting.severity;
    out_.seed = seed;
    out_.clean = value_of(state.head, state.test, state.test_labels);
  }

  void judge_unadapted() {
    out_.rows.push_back({"none", "", 0, value_of(state_.head, test_, state_.test_labels), 0});
    const LinearHead shifted = state_.head.after_shift(state_.source.mean - target_.mean);
    out_.rows.push_back({"mean", "", 0, value_of(shifted, test_, state_.test_labels), 0});
  }

  void judge_method(const Method& method, const std::function<void()>& checkpoint) {
    const auto on_step = [&](const Step&, const ConstBlockView<double>& factor) {
      checkpoint();
      return method.cubic && gap_of(factor) <= options_.enough ? StepAction::stop : StepAction::proceed;
    };
    const Index most = *std::max_element(options_.budgets.begin(), options_.budgets.end());
    const MethodRun run = method.run(problem_, {.steps = most, .rows = options_.budgets}, on_step);
    const Result<double>& result = run.timed.result;
    const baselines::Timing& timing = run.timed.timing;
    for (const Index budget : options_.budgets) {
      std::size_t row = 0;
      while (row + 1 < result.iterates.size() && result.trace.steps.at(row + 1).index <= budget) ++row;
      judge_factor(method.info.id, budget, result.iterates.at(row),
                   timing.update_seconds.at(row) + timing.projection_seconds.at(row));
    }
  }

  void judge_endpoint() { judge_factor("endpoint", 0, endpoint_, 0); }

  DriftCell take() { return std::move(out_); }

 private:
  static Drift drift_of(const SeedState& state, const Setting& setting, std::uint64_t seed) {
    return {setting.kind, state.leading_directions, setting.severity, seed};
  }

  static Moments drifted_moments(const SeedState& state, const Setting& setting, const CovDriftOptions& options,
                                 std::uint64_t seed, Block<double>& unlabeled) {
    unlabeled = state.unlabeled;
    drift_of(state, setting, seed).apply(unlabeled);
    return moments_of(unlabeled, {options.shrinkage, options.eigenvalue_floor});
  }

  // The rows are in seeded order already.
  Block<double> some_of(const Block<double>& samples) const {
    return samples.topRows(std::min(options_.sample_ot_rows, samples.rows()));
  }

  // Pi_r from the eigendecomposition that the full-matrix methods have made anyway.
  Block<double> leading_of(const baselines::SpectralTarget& target) const {
    return target.vectors().rightCols(options_.rank) * target.values().tail(options_.rank).cwiseSqrt().asDiagonal();
  }

  double gap_of(const ConstBlockView<double>& factor) const {
    return gap_r(target_distance_squared<double>(factor, operator_), start_objective_, floor_);
  }

  void judge_factor(const std::string& method, Index budget, const Block<double>& factor, double seconds) {
    const bool finite = factor.allFinite();
    const LowRankGaussian from = finite ? model_of<double>(operator_, factor, target_.mean) : LowRankGaussian{};
    for (const MapKind kind : {MapKind::whiten, MapKind::monge}) {
      const double value = finite
                               ? value_of(state_.head.after(TransportMap(from, to_, kind)), test_, state_.test_labels)
                               : std::numeric_limits<double>::quiet_NaN();
      out_.rows.push_back({method, std::string(name(kind)), budget, value, seconds});
    }
  }

  const SeedState& state_;
  const CovDriftOptions& options_;
  Block<double> unlabeled_, test_;  // drifted
  Moments target_;                  // its covariance lives in the problem
  Problem problem_;
  DenseTarget<double> operator_;
  LowRankGaussian to_;
  Block<double> endpoint_;
  double floor_ = 0, start_objective_ = 0;
  DriftCell out_;
};

}  // namespace

DriftInstance run_covdrift(const Instance& instance, const CovDriftOptions& options, const Watch& watch) {
  check_options(instance, options);
  const std::vector<const Method*> methods = chosen_methods(options);
  const std::vector<Setting> settings = settings_of(options);
  const bool spectral = std::any_of(methods.begin(), methods.end(), [](const Method* method) { return method->cubic; });
  const Stopwatch stopwatch;

  DriftInstance out;
  out.info = instance.info;
  out.closed_set = options.closed_set;
  // All rows are chosen before any work, so that a class without test samples is found at once.
  std::vector<SeedRows> rows;
  for (const std::uint64_t seed : options.seeds) {
    Split split = split_rows(instance, seed, options.most_rows);
    std::vector<Index> judged = judged_rows(instance, split, options.closed_set);
    out.chance += largest_share(labels_at(instance.target, judged)) / static_cast<double>(options.seeds.size());
    rows.push_back({std::move(split), std::move(judged)});
  }

  const auto tuning = std::make_shared<Tuning>();
  const double parts = static_cast<double>(options.seeds.size() * settings.size() * methods.size());
  double done = 0;
  for (std::size_t s = 0; s < options.seeds.size(); ++s) {
    const std::uint64_t seed = options.seeds[s];
    const auto checkpoint = [&](const std::string& doing) {
      watch.checkpoint(fmt::format("{}, seed {}: {}", instance.info.name, seed, doing), parts > 0 ? done / parts : 0);
    };
    checkpoint("linear head");
    const SeedState state = prepare(instance, rows[s], options, seed);
    out.classes = static_cast<Index>(state.head.classes().size());
    for (const Setting& setting : settings) {
      const std::string drift =
          setting.kind == DriftKind::none ? "no drift" : fmt::format("{} {}", setting.name, setting.severity);
      checkpoint(drift);
      Cell cell(state, setting, options, seed, tuning, spectral);
      cell.judge_unadapted();
      for (const Method* method : methods) {
        const std::string doing = fmt::format("{}, {}", drift, method->info.id);
        checkpoint(doing);
        cell.judge_method(*method, [&] { checkpoint(doing); });
        done += 1;
      }
      cell.judge_endpoint();
      out.cells.push_back(cell.take());
    }
  }
  out.metric = out.classes == 2 ? "AUROC" : "accuracy";
  if (out.classes == 2) out.chance = 50;
  out.info.seconds = stopwatch.seconds();
  return out;
}

}  // namespace itspace::experiments
