// SPDX-License-Identifier: Apache-2.0
#include "alignment.hpp"

#include "sampling.hpp"
#include "stopwatch.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/targets.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace itspace::experiments {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The exact evaluator: gap_r of a factor, outside the methods' clocks.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem) : target_(problem.target_covariance()) {
    const Eigen::VectorXd leading = leading_eigenvalues<double>(problem.target_covariance(), problem.rank());
    floor_ = floor_r(target_.trace(), leading, problem.rank());
    start_objective_ = target_distance_squared<double>(problem.start(), target_);
  }

  double objective(const ConstBlockView<double>& factor) const {
    return target_distance_squared<double>(factor, target_);
  }
  double gap(double objective) const { return gap_r(objective, start_objective_, floor_); }

 private:
  DenseTarget<double> target_;
  double floor_, start_objective_;
};

Run run_method(const Method& method, const Problem& problem, const Evaluator& evaluator,
               const AlignmentOptions& options, const Watch& watch, const std::string& doing, double share) {
  Run run;
  run.method = method.info.id;
  run.seed = problem.seed();
  double evaluation_seconds = 0;
  const auto on_step = [&](const Step& step, const ConstBlockView<double>& factor) {
    const Stopwatch evaluating;
    Row row;
    row.step = step.index;
    row.passes = step.passes;
    row.objective = evaluator.objective(factor);
    row.gap = evaluator.gap(row.objective);
    row.evaluation_seconds = evaluation_seconds += evaluating.seconds();
    run.rows.push_back(row);
    watch.checkpoint(doing, share);
    return method.cubic && row.gap <= options.enough ? StepAction::stop : StepAction::proceed;
  };
  const MethodRun made = method.run(problem, {.steps = options.steps}, on_step);
  const baselines::Timing& timing = made.timed.timing;
  for (std::size_t i = 0; i < run.rows.size(); ++i) {
    run.rows[i].update_seconds = timing.update_seconds.at(i);
    run.rows[i].projection_seconds = timing.projection_seconds.at(i);
  }
  run.preprocessing_seconds = timing.preprocessing_seconds;
  run.checks = timing.checks;
  run.settings = made.settings;
  return run;
}

}  // namespace

AlignmentInstance run_alignment(const Instance& instance, const AlignmentOptions& options, const Watch& watch) {
  std::vector<const Method*> methods;
  for (const std::string& id : options.methods) methods.push_back(&method_named(id));
  if (methods.empty())
    for (const Method& method : all_methods()) methods.push_back(&method);

  AlignmentInstance out;
  out.info = instance.info;
  const Index dim = instance.target.features.cols();
  if (options.rank >= dim)
    throw std::invalid_argument(
        fmt::format("{}: --rank is {}, the features have {} dimensions\na rank budget must be below the dimension",
                    out.info.name, options.rank, dim));

  const Stopwatch whole;
  std::vector<double> covariance_seconds;
  const auto tuning = std::make_shared<Tuning>();
  const double parts = static_cast<double>(options.seeds.size() * methods.size());
  double done = 0;
  for (const std::uint64_t seed : options.seeds) {
    const std::string at_seed = fmt::format("{}, seed {}", out.info.name, seed);
    watch.checkpoint(at_seed + ": covariances", done / parts);
    const Block<double> source = some_rows(instance.source.features, options.kept_rows, seed, 0).cast<double>();
    const Block<double> target = some_rows(instance.target.features, options.kept_rows, seed, 1).cast<double>();
    const Stopwatch forming;
    Block<double> start_covariance = covariance<double>(source);
    Block<double> target_covariance = covariance<double>(target);
    covariance_seconds.push_back(forming.seconds());
    if (!(start_covariance.trace() > 0 && target_covariance.trace() > 0))
      throw std::invalid_argument(
          fmt::format("{}: the {} samples of the {} do not vary; there is no covariance to align. Supply others",
                      out.info.name, start_covariance.trace() > 0 ? target.rows() : source.rows(),
                      start_covariance.trace() > 0 ? "target" : "source"));
    const Index most = options.sample_ot_rows;
    const Problem problem(std::move(start_covariance), std::move(target_covariance),
                          source.topRows(std::min(most, source.rows())), target.topRows(std::min(most, target.rows())),
                          options.rank, seed, tuning);
    const Evaluator evaluator(problem);
    for (const Method* method : methods) {
      const std::string doing = fmt::format("{}: {}", at_seed, method->info.id);
      watch.checkpoint(doing, done / parts);
      out.runs.push_back(run_method(*method, problem, evaluator, options, watch, doing, done / parts));
      done += 1;
    }
  }
  out.covariance_seconds = median(covariance_seconds);
  out.info.seconds = whole.seconds();
  return out;
}

}  // namespace itspace::experiments
