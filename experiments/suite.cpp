// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include "machine.hpp"
#include "report/report.hpp"
#include "stopwatch.hpp"

#include <itspace/io.hpp>
#include <itspace/version.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace itspace::experiments {
namespace {

namespace fs = std::filesystem;

// No two instances share one: a colon becomes a plus sign, which a part of a name would have to have beside it.
std::string file_name(std::string instance) {
  std::replace(instance.begin(), instance.end(), ':', '+');
  return instance;
}

std::optional<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw std::runtime_error(fmt::format("cannot make the folder '{}': {}\nchoose another --out", folder.string(),
                                         error ? error.message() : "a file of that name exists"));
}

// Whether an instance that nobody asked for by name is simply not there.
bool may_be_absent(const SuiteOptions& suite, const std::string& name) {
  return suite.instances.empty() && !is_supplied(name, suite.folders);
}

// A folder keeps the results of one experiment.
void check_folder(const fs::path& folder, const std::string& experiment) {
  const std::optional<std::string> text = text_of(folder / "results.json");
  if (!text) return;
  std::string other;
  try {
    other = results_from_json(*text).experiment;
  } catch (const std::exception&) {
    return;  // nothing that can be read, nothing to protect
  }
  if (other != experiment)
    throw std::invalid_argument(fmt::format("'{}' holds the results of experiment {}\nchoose another --out for {}",
                                            folder.string(), other, experiment));
}

// Names the instance where the message does not.
std::string reason_for(const std::string& name, const std::string& message) {
  return message.find(name) == std::string::npos ? name + ": " + message : message;
}

// What both experiments do alike. `run` makes an Ended (AlignmentInstance or DriftInstance) of a loaded Instance.
template <class Ended, class Run>
std::vector<Ended> run_instances(const SuiteOptions& suite, const SuiteEvents& events, const std::string& key,
                                 Labels labels, SuiteOutcome& outcome, const Run& run) {
  const std::vector<std::string> names =
      suite.instances.empty() ? default_instances(suite.folders, labels) : suite.instances;
  const fs::path kept = suite.out / "instances";
  make_folder(kept);
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < names.size() && !outcome.interrupted; ++i) {
    const std::string& name = names[i];
    const fs::path file = kept / (file_name(name) + ".json");
    const std::string full_key = key + "; " + fingerprint(name, suite.folders, labels);
    Ended instance;
    if (suite.resume) {
      const std::optional<std::string> text = text_of(file);
      if (text && from_json(*text, full_key, instance)) {
        if (events.instance_ended) events.instance_ended(instance.info, true);
        ended.push_back(std::move(instance));
        continue;
      }
    }
    instance = {};
    instance.info.name = instance.info.title = name;
    Watch watch;
    watch.stop_asked = events.stop_asked;
    watch.progress = [&](const std::string& doing, double share) {
      if (events.progress) events.progress(static_cast<Index>(i), static_cast<Index>(names.size()), doing, share);
    };
    try {
      watch.checkpoint(name + ": loading", 0);
      instance = run(load_instance(name, suite.folders, labels), watch);
      io::save_text(file, to_json(instance, full_key));
    } catch (const Interrupted&) {
      outcome.interrupted = true;
      break;
    } catch (const std::invalid_argument& error) {
      instance.info.outcome = Outcome::failed;
      instance.info.reason = reason_for(name, error.what());
      outcome.bad_values = true;
    } catch (const std::runtime_error& error) {
      const bool absent = may_be_absent(suite, name);
      instance.info.outcome = absent ? Outcome::skipped : Outcome::failed;
      instance.info.reason = reason_for(name, error.what());
      outcome.bad_environment |= !absent;
    } catch (const std::bad_alloc&) {  // what the instance held is free again: a smaller one may do
      instance.info.outcome = Outcome::failed;
      instance.info.reason = name + ": out of memory\nleave this instance out, or run it on a machine with more memory";
      outcome.bad_environment = true;
    }
    if (events.instance_ended) events.instance_ended(instance.info, false);
    ended.push_back(std::move(instance));
  }
  if (outcome.interrupted)
    outcome.results.notes.push_back(
        fmt::format("This run was interrupted after {} of {} instances; the same command with --resume goes on.",
                    ended.size(), names.size()));
  return ended;
}

Results begin_results(const std::string& experiment, const SuiteOptions& suite) {
  Results results;
  results.experiment = experiment;
  results.version = std::string(version());
  results.command = suite.command;
  results.started = utc_now();
  results.machine = this_machine();
  return results;
}

std::vector<MethodInfo> infos_of(const std::vector<std::string>& ids) {
  std::vector<MethodInfo> infos;
  for (const std::string& id : ids) infos.push_back(method_named(id).info);
  if (ids.empty())
    for (const Method& method : all_methods()) infos.push_back(method.info);
  return infos;
}

}  // namespace

SuiteOutcome run_alignment_suite(const AlignmentOptions& options, const SuiteOptions& suite,
                                 const SuiteEvents& events) {
  check_folder(suite.out, "alignment");
  const Stopwatch watch;
  SuiteOutcome outcome;
  Results& results = outcome.results = begin_results("alignment", suite);
  results.rank = options.rank;
  results.steps = options.steps;
  results.seeds = options.seeds;
  results.thresholds = {0.1, 0.02};
  results.methods = infos_of(options.methods);
  results.notes = {
      fmt::format("Each seed keeps {:.0f} % of the rows of both sides; covariances are dense and in float64 for every "
                  "method.",
                  100 * options.kept_rows),
      fmt::format("Sample OT sees at most {} rows of each side.", options.sample_ot_rows),
      fmt::format("A method whose steps cost d³ stops once its gap is at most {}; paths sample t = k/{}.",
                  options.enough, options.steps),
      "In results.json the seconds of a row are cumulative: what it took to get there from the start.",
      "A pass is a sweep over a d × d matrix; an eigendecomposition of one counts as d passes.",
  };
  const std::string key = fmt::format(
      "alignment {} rank {} steps {} seeds {} kept {} sample rows {} enough {} methods {} threads {}", version(),
      options.rank, options.steps, fmt::join(options.seeds, ","), options.kept_rows, options.sample_ot_rows,
      options.enough, fmt::join(options.methods, ","), results.machine.blas_threads);
  results.alignment = run_instances<AlignmentInstance>(
      suite, events, key, Labels::ignored, outcome,
      [&](const Instance& instance, const Watch& of_run) { return run_alignment(instance, options, of_run); });
  results.seconds = watch.seconds();
  outcome.missing = write_report(results, suite.out);
  return outcome;
}

SuiteOutcome run_covdrift_suite(const CovDriftOptions& options, const SuiteOptions& suite, const SuiteEvents& events) {
  check_folder(suite.out, "covdrift");
  const Stopwatch watch;
  SuiteOutcome outcome;
  Results& results = outcome.results = begin_results("covdrift", suite);
  results.rank = options.rank;
  results.steps = *std::max_element(options.budgets.begin(), options.budgets.end());
  results.seeds = options.seeds;
  results.budgets = options.budgets;
  for (const MethodInfo& info : infos_of(options.methods))
    if (method_named(info.id).has_budget) results.methods.push_back(info);
  results.notes = {
      fmt::format("Both covariances are shrunk: (1 - {0}) S + {0} (tr S/d) I, eigenvalues at least {1} tr S/d.",
                  options.shrinkage, options.eigenvalue_floor),
      fmt::format("Methods that follow a path are at t = K/{} after K steps, whatever the budget.", results.steps),
      "Drift, on features standardised by the source: x + U diag(s_i - 1) V'x, V the leading source directions, s_i "
      "linear from 1 to the severity; scale: U = V; mix: U seeded orthonormal; none: the natural shift alone.",
      fmt::format("Sample OT sees at most {} rows of each side, not shrunk; its regularisation is chosen on the first "
                  "cell of an instance.",
                  options.sample_ot_rows),
      "The head is trained once per seed on the source and frozen; adaptation sees the unlabeled half of the target, "
      "the value is measured on the other half.",
  };
  const std::string key = fmt::format(
      "covdrift {} rank {} seeds {} budgets {} drifts {} severities {} shrinkage {} floor {} closed {} most rows {} "
      "sample rows {} enough {} methods {} threads {}",
      version(), options.rank, fmt::join(options.seeds, ","), fmt::join(options.budgets, ","),
      fmt::join(options.drifts, ","), fmt::join(options.severities, ","), options.shrinkage, options.eigenvalue_floor,
      options.closed_set, options.most_rows, options.sample_ot_rows, options.enough, fmt::join(options.methods, ","),
      results.machine.blas_threads);
  results.covdrift = run_instances<DriftInstance>(
      suite, events, key, Labels::wanted, outcome,
      [&](const Instance& instance, const Watch& of_run) { return run_covdrift(instance, options, of_run); });
  results.seconds = watch.seconds();
  outcome.missing = write_report(results, suite.out);
  return outcome;
}

}  // namespace itspace::experiments
