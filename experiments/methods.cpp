// SPDX-License-Identifier: Apache-2.0
#include "methods.hpp"

#include "stopwatch.hpp"

#include "baselines/baselines.hpp"

#include <itspace/distance.hpp>
#include <itspace/targets.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace itspace::experiments {
namespace {

using baselines::DenseOptions;
using baselines::TimedResult;

// Short work is timed again, since its first run meets cold caches: the median of at most five runs within a
// twentieth of a second.
template <class Work>
double median_seconds(const Work& work) {
  constexpr double patience = 0.05;
  constexpr std::size_t most_runs = 5;
  std::vector<double> seconds;
  for (double spent = 0; seconds.size() < most_runs && (seconds.empty() || spent < patience);) {
    const Stopwatch stopwatch;
    work();
    seconds.push_back(stopwatch.seconds());
    spent += seconds.back();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// A run whose row k is a run of its own, of k passes or steps, so that its time holds what k steps need and no more.
// `solve` makes the k-th; where it has no iterate yet (a range finder's first pass) the row is left out.
template <class Solve>
TimedResult row_by_row(const Problem& problem, const Budget& budget, const OnStep<double>& on_step,
                       const Solve& solve) {
  TimedResult timed;
  timed.timing.preprocessing_seconds = problem.start_seconds();
  Trace& trace = timed.result.trace;
  trace.dim = problem.target_covariance().rows();
  trace.rank = problem.rank();
  trace.precision = "float64";
  const auto report = [&](Index index, Index passes, double seconds, const Block<double>& factor) {
    Step row;
    row.index = index;
    row.passes = passes;
    row.seconds = std::max(seconds, trace.steps.empty() ? 0.0 : trace.steps.back().seconds);
    trace.steps.push_back(row);
    trace.passes_total = passes;
    trace.best = static_cast<Index>(trace.steps.size()) - 1;
    timed.timing.update_seconds.push_back(row.seconds);
    timed.timing.projection_seconds.push_back(0);
    timed.result.iterates.push_back(factor);
    return !on_step || on_step(row, factor) == StepAction::proceed;
  };
  bool proceed = report(0, 0, 0, problem.start());
  for (Index k = 1; proceed && k <= budget.steps; ++k) {
    if (!budget.rows.empty() && std::find(budget.rows.begin(), budget.rows.end(), k) == budget.rows.end()) continue;
    Result<double> result;
    const double seconds = median_seconds([&] { result = solve(k); });
    if (result.factor.size() == 0) continue;
    trace.solver = result.trace.solver;
    proceed = report(k, result.trace.passes_total, seconds, result.factor);
  }
  timed.result.factor = timed.result.iterates.back();
  return timed;
}

Method by_align(MethodInfo info, const AlignOptions& options) {
  return {std::move(info), [options](const Problem& problem, const Budget& budget, const OnStep<double>& on_step) {
            const DenseTarget<double> target(borrow(problem.target_covariance()));
            return MethodRun{row_by_row(problem, budget, on_step,
                                        [&](Index k) {
                                          AlignOptions of_k = options;
                                          of_k.steps = k;
                                          of_k.evaluate_last = false;
                                          return align<double>(target, problem.start(), of_k);
                                        }),
                             ""};
          }};
}

using Eigensolver = Result<double> (*)(TargetRef<double>, Index, const Block<double>*, const baselines::Options&);

Method by_eigensolver(MethodInfo info, Eigensolver solve, bool nystrom) {
  return {std::move(info),
          [solve, nystrom](const Problem& problem, const Budget& budget, const OnStep<double>& on_step) {
            const DenseTarget<double> target(borrow(problem.target_covariance()));
            return MethodRun{row_by_row(problem, budget, on_step,
                                        [&](Index k) {
                                          return solve(target, problem.rank(), &problem.start(),
                                                       {.passes = k, .report_from = k, .nystrom = nystrom});
                                        }),
                             ""};
          }};
}

#ifdef ITSPACE_HAS_SPECTRA
constexpr double lanczos_tolerances[] = {0.5, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6};
constexpr Index lanczos_restarts = 1000;

Method by_lanczos(MethodInfo info) {
  Method method{std::move(info), [](const Problem& problem, const Budget&, const OnStep<double>& on_step) {
                  const DenseTarget<double> target(borrow(problem.target_covariance()));
                  return MethodRun{row_by_row(problem, Budget{.steps = std::size(lanczos_tolerances)}, on_step,
                                              [&](Index k) {
                                                return baselines::lanczos(target, problem.rank(), &problem.start(),
                                                                          lanczos_tolerances[k - 1], lanczos_restarts,
                                                                          {});
                                              }),
                                   ""};
                }};
  method.has_budget = false;
  return method;
}
#endif

template <class Run>
Method by_dense(MethodInfo info, const Run& run) {
  Method method{std::move(info), [run](const Problem& problem, const Budget& budget, const OnStep<double>& on_step) {
                  const DenseOptions options{.rank = problem.rank(), .steps = budget.steps, .on_step = on_step};
                  return MethodRun{run(problem.spectral_target(), problem.start_covariance(), options), ""};
                }};
  method.cubic = true;
  return method;
}

constexpr double epsilon_grid[] = {0.002, 0.005, 0.01, 0.02, 0.05};
constexpr Index iterations_per_step = 10;

// The regularisation that ends nearest to the target, in the very distance that the method is judged by.
template <class Run>
double best_epsilon(const Problem& problem, const std::string& name, const Run& run) {
  if (const auto known = problem.tuning().find(name); known != problem.tuning().end()) return known->second;
  const DenseTarget<double> target(borrow(problem.target_covariance()));
  double best = epsilon_grid[0], lowest = std::numeric_limits<double>::infinity();
  for (const double epsilon : epsilon_grid) {
    const Block<double> factor = run(epsilon, OnStep<double>{}).result.factor;
    const double objective = target_distance_squared<double>(factor, target);
    if (objective < lowest) {
      lowest = objective;
      best = epsilon;
    }
  }
  problem.tuning()[name] = best;
  return best;
}

template <class Run>
Method by_sinkhorn(MethodInfo info, const Run& run) {
  const std::string id = info.id;
  return {std::move(info), [run, id](const Problem& problem, const Budget& budget, const OnStep<double>& on_step) {
            const auto with = [&](double epsilon, const OnStep<double>& report) {
              return run(problem, baselines::SinkhornOptions{.rank = problem.rank(),
                                                             .steps = budget.steps,
                                                             .iterations_per_step = iterations_per_step,
                                                             .epsilon = epsilon,
                                                             .on_step = report});
            };
            const double epsilon = best_epsilon(problem, id, with);
            return MethodRun{with(epsilon, on_step), fmt::format("epsilon = {} of the mean cost", epsilon)};
          }};
}

std::vector<Method> make_methods() {
  const std::string exact = "W₂², exact";
  const std::string step_cost = "d²r + dr² + r³";
  std::vector<Method> list;
  const auto paper = [&](const std::string& id, const std::string& title, StepSize step_size,
                         const std::string& settings) {
    list.push_back(by_align({id, title, "ours", exact, step_cost, settings}, {.step_size = step_size}));
  };
  paper("paper-0.9", "ITSPACE, α = 0.9", StepSize::alpha(0.9),
        "the paper's step; 0.9 is a fair reading of its damping");
  paper("paper-1", "ITSPACE, α = 1", StepSize::alpha(1), "the paper's step, undamped");
  paper("paper-line-search", "ITSPACE, line search", StepSize::line_search(), "α by exact line search, no extra pass");
  list.push_back(by_align({"ritz", "Ritz steps", "ours", exact, "d²(r + g) + d(r + g)²",
                           "8 guard columns, no wide polish, so that its rows are one trajectory"},
                          {.solver = Solver::ritz, .guard = 8, .wide_polish = false}));

  const std::string full = "d³ + projection";
  list.push_back(by_dense({"bw-gd", "BW-GD, backtracking", "full matrix", exact, full,
                           "first step 0.9 (best of 0.25, 0.5, 0.75, 0.9: the distance contracts by 1 - step), halved "
                           "until Armijo holds; checks counted"},
                          [](const auto& target, const auto& start, const DenseOptions& options) {
                            return baselines::bw_gradient_descent(target, start, options, {.step = 0.9});
                          }));
  list.push_back(by_dense({"bw-gd-unit", "BW-GD, unit step", "full matrix", exact, full,
                           "step 1, no checks: from a full-rank start it arrives in one"},
                          [](const auto& target, const auto& start, const DenseOptions& options) {
                            return baselines::bw_gradient_descent(target, start, options,
                                                                  {.step = 1, .backtracking = false});
                          }));
  const std::string path = "path sampled at t = k/K";
  list.push_back(by_dense({"bw-geodesic", "BW geodesic", "full matrix", exact, "d³ once, d² + projection", path},
                          baselines::bw_geodesic));
  list.push_back(by_dense({"euclidean", "Euclidean", "full matrix", "Frobenius", "d² + projection", path},
                          baselines::euclidean_path));
  list.push_back(by_dense(
      {"log-euclidean", "Log-Euclidean", "full matrix", "log-Euclidean distance", "d³ once, d² + projection", path},
      baselines::log_euclidean_path));
  list.push_back(by_dense({"airm", "AIRM", "full matrix", "affine-invariant distance", "d³ once, projection", path},
                          baselines::airm_path));
  list.push_back(
      by_dense({"coral", "CORAL", "full matrix", "second moments matched", full, "one shot"}, baselines::coral));

  const std::string sample_cost = "nm per iteration; nmd + projection";
  const std::string sinkhorn_rule =
      "10 iterations a step, log domain, barycentric projection; epsilon from 0.002, 0.005, 0.01, 0.02, 0.05 of the "
      "mean "
      "cost, the one that ends nearest to the target on the first seed";
  list.push_back(
      by_sinkhorn({"sinkhorn", "Sinkhorn", "sample OT", "entropic OT of samples", sample_cost, sinkhorn_rule},
                  [](const Problem& problem, const baselines::SinkhornOptions& options) {
                    return baselines::sinkhorn(problem.source_samples(), problem.target_samples(), options);
                  }));
  list.push_back(
      by_sinkhorn({"sinkhorn-gaussian", "Sinkhorn-Gaussian", "sample OT", "entropic OT of Gaussian samples",
                   sample_cost, sinkhorn_rule + "; as many samples of each Gaussian as Sinkhorn has rows"},
                  [](const Problem& problem, const baselines::SinkhornOptions& options) {
                    const Index samples = std::max(problem.source_samples().rows(), problem.target_samples().rows());
                    return baselines::sinkhorn_gaussian(problem.start_covariance(), problem.target_covariance(),
                                                        samples, problem.seed(), options);
                  }));

  const std::string eigen = "W₂², its floor";
  const std::string eigen_settings = "warm start, 8 columns more than the rank; a step is a pass";
  list.push_back(by_eigensolver({"randomized-svd", "Randomized SVD", "eigensolver", eigen, "d²(r + 8)", eigen_settings},
                                baselines::randomized_svd, false));
  list.push_back(by_eigensolver({"lobpcg", "LOBPCG", "eigensolver", eigen, "d²(r + 8)", eigen_settings},
                                baselines::lobpcg, false));
  list.push_back(by_eigensolver({"block-krylov", "Block Krylov", "eigensolver", eigen, "d²(r + 8)",
                                 eigen_settings + ", truncated Nyström factor"},
                                baselines::block_krylov, true));
#ifdef ITSPACE_HAS_SPECTRA
  list.push_back(by_lanczos({"lanczos", "Lanczos (Spectra)", "eigensolver", eigen, "d² per vector",
                             "run anew to tolerances from 0.5 to 1e-6; a pass multiplies one vector"}));
#endif
  return list;
}

}  // namespace

Problem::Problem(Block<double> start_covariance, Block<double> target_covariance, Block<double> source_samples,
                 Block<double> target_samples, Index rank, std::uint64_t seed, std::shared_ptr<Tuning> tuning)
    : start_covariance_(std::move(start_covariance)),
      target_covariance_(std::move(target_covariance)),
      source_samples_(std::move(source_samples)),
      target_samples_(std::move(target_samples)),
      rank_(rank),
      seed_(seed),
      tuning_(std::move(tuning)) {
  const Small dense = start_covariance_;
  const Stopwatch stopwatch;
  Index sweeps = 0;
  start_ = baselines::leading_factor(dense, rank_, sweeps);
  start_seconds_ = stopwatch.seconds();
}

const baselines::SpectralTarget& Problem::spectral_target() const {
  if (!spectral_target_) spectral_target_.emplace(target_covariance_);
  return *spectral_target_;
}

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = make_methods();
  return methods;
}

const Method& method_named(const std::string& id) {
  std::string ids;
  for (const Method& method : all_methods()) {
    if (method.info.id == id) return method;
    ids += (ids.empty() ? "" : ", ") + method.info.id;
  }
  throw std::invalid_argument(fmt::format("there is no method '{}'\nthe methods are {}", id, ids));
}

}  // namespace itspace::experiments
