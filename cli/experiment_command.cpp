// SPDX-License-Identifier: Apache-2.0
//
// itspace experiment alignment | covdrift: the paper's experiments, from arguments to a report.
#include "arguments.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "progress.hpp"
#include "text.hpp"

#include "experiments/stopwatch.hpp"
#include "experiments/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace itspace::cli {
namespace {

namespace ex = itspace::experiments;

constexpr auto about_all = R"(
Instances:
  camelyon17, visda2017, terra   DATA/NAME/{source,target}_{x,y}.npy, which you supply (docs/guides/features.md)
  FOLDER:FROM:TO                 DATA/FOLDER/{FROM,TO}_{x,y}.npy, two domains of a set of your own
  fashion-mnist                  from Debian's package dataset-fashion-mnist
  synthetic, synthetic-512       power-law spectra and rotated axes, d = 2048 or the given one
Without --instances: all whose data are at hand. Names have no commas.

The folder --out gets results.json (every number), tables.md, tables.csv, the figures (.svg, through gnuplot) and
report.html, one page to read. Ctrl-C leaves the finished instances; --resume goes on. One bad instance does not stop
the others: it is named in the report, and the exit code is 2 (its values) or 3 (its files).)";

struct Arguments {
  ex::SuiteOptions suite;
  ex::AlignmentOptions alignment;
  ex::CovDriftOptions covdrift;
  Index rank = 16;
  std::vector<std::string> seeds, budgets, severities, methods;
  bool quiet = false, data_given = false;
};

// Options given as a,b,c.
CLI::Option* add_list(CLI::App& app, const std::string& flag, std::vector<std::string>& values,
                      const std::string& help) {
  return app.add_option(flag, values, help)->delimiter(',')->type_name("LIST");
}

// Each once: what is counted twice is counted wrong.
void check_distinct(const std::string& flag, const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) misuse(fmt::format("{} has an empty entry", flag), "separate the entries by one comma");
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i))
      misuse(fmt::format("{} names {} twice", flag, values[i]), "name each once");
  }
}

template <class Value, class Parse>
void read_list(const std::string& flag, const std::vector<std::string>& texts, std::vector<Value>& values,
               const Parse& parse) {
  if (texts.empty()) return;
  check_distinct(flag, texts);
  values.clear();
  for (const std::string& text : texts) values.push_back(static_cast<Value>(parse(flag, text)));
}

void read_shared(Arguments& given, std::vector<std::uint64_t>& seeds, std::vector<std::string>& methods) {
  check_at_least("--rank", given.rank, 1);
  read_list("--seeds", given.seeds, seeds, parse_whole);
  check_distinct("--methods", given.methods);
  for (const std::string& id : given.methods) ex::method_named(id);  // refuses what is not one
  methods = given.methods;
  check_distinct("--instances", given.suite.instances);
  for (const std::string& name : given.suite.instances) ex::check_instance_name(name);
  if (given.data_given && !std::filesystem::is_directory(given.suite.folders.features))
    throw std::runtime_error(fmt::format("--data {} is no folder\nname the folder that has the feature sets in it",
                                         quoted(given.suite.folders.features)));
}

// Every row of a run is timed and judged; more of them than this is a slip of the keyboard.
void check_at_most(const std::string& flag, Index value) {
  constexpr Index most_steps = 10000;
  if (value > most_steps)
    misuse(fmt::format("{} is {}", flag, value), fmt::format("give at most {} steps", most_steps));
}

std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

class Reporter {
 public:
  explicit Reporter(bool quiet) : quiet_(quiet), progress_(!quiet) {}

  ex::SuiteEvents events() {
    ex::SuiteEvents events;
    events.stop_asked = interrupt_asked;
    events.progress = [this](Index index, Index count, const std::string& doing, double share) {
      show(index, count, doing, share);
    };
    events.instance_ended = [this](const ex::InstanceInfo& info, bool kept) { say(info, kept); };
    return events;
  }

 private:
  void show(Index index, Index count, const std::string& doing, double share) {
    if (index != index_) {
      index_ = index;
      in_it_ = {};
    }
    const double elapsed = in_it_.seconds();
    constexpr double enough_to_tell = 0.05;
    std::string text = fmt::format("[{} of {}] {}", index + 1, count, doing);
    if (share > enough_to_tell) text += fmt::format(", about {} left in it", duration(elapsed * (1 - share) / share));
    progress_.show(text);
  }

  void say(const ex::InstanceInfo& info, bool kept) {
    progress_.clear();
    if (info.outcome == ex::Outcome::failed) {
      print_error(info.reason);
    } else if (!quiet_ && info.outcome == ex::Outcome::skipped) {
      print_note(fmt::format("{}: not supplied, skipped", info.name));
    } else if (!quiet_ && kept) {
      print_note(fmt::format("{}: kept from an earlier run", info.name));
    } else if (!quiet_) {
      print_note(fmt::format("{}: done in {} (d = {}, {} and {} samples)", info.name, duration(info.seconds), info.dim,
                             info.source_samples, info.target_samples));
    }
  }

  bool quiet_;
  Progress progress_;
  Index index_ = -1;
  ex::Stopwatch in_it_;
};

int finish(const Arguments& given, const ex::SuiteOutcome& outcome) {
  const std::filesystem::path page = given.suite.out / "report.html";
  for (const std::string& figure : outcome.missing) print_note(figure);
  if (outcome.interrupted) {
    print_note(fmt::format("interrupted; what is finished is in {}; the same command with --resume goes on",
                           quoted(given.suite.out)));
    return interrupt_exit_code(exit_code::success);
  }
  if (!given.quiet) print_line(fmt::format("The report is {}", quoted(page)));
  if (outcome.bad_environment) return exit_code::environment;
  return outcome.bad_values ? exit_code::misuse : exit_code::success;
}

int run_alignment(Arguments& given) {
  read_shared(given, given.alignment.seeds, given.alignment.methods);
  check_at_least("--steps", given.alignment.steps, 1);
  check_at_least("--sample-rows", given.alignment.sample_ot_rows, 2);
  check_not_negative("--enough", given.alignment.enough);
  check_at_most("--steps", given.alignment.steps);
  given.alignment.rank = given.rank;
  watch_for_interrupt();
  Reporter reporter(given.quiet);
  return finish(given, ex::run_alignment_suite(given.alignment, given.suite, reporter.events()));
}

int run_covdrift(Arguments& given) {
  read_shared(given, given.covdrift.seeds, given.covdrift.methods);
  given.covdrift.rank = given.rank;
  read_list("--budgets", given.budgets, given.covdrift.budgets, parse_whole);
  for (const Index budget : given.covdrift.budgets) {
    check_at_least("--budgets", budget, 1);
    check_at_most("--budgets", budget);
  }
  read_list("--severity", given.severities, given.covdrift.severities, parse_real);
  for (const double severity : given.covdrift.severities)
    if (severity < 1)
      misuse(fmt::format("--severity is {}", severity),
             "it scales the last drifted direction; give a number of at least 1");
  check_distinct("--drift", given.covdrift.drifts);
  for (const std::string& drift : given.covdrift.drifts)
    if (drift != "none" && drift != "scale" && drift != "mix")
      misuse(fmt::format("--drift is '{}'", drift), "the drifts are none, scale and mix");
  check_at_least("--sample-rows", given.covdrift.sample_ot_rows, 2);
  watch_for_interrupt();
  Reporter reporter(given.quiet);
  return finish(given, ex::run_covdrift_suite(given.covdrift, given.suite, reporter.events()));
}

std::string ids_of_methods() {
  std::vector<std::string> ids;
  for (const ex::Method& method : ex::all_methods()) ids.push_back(method.info.id);
  return joined(ids);
}

std::filesystem::path folder_in(const char* variable, const char* otherwise) {
  const char* set = std::getenv(variable);
  return set && *set ? set : otherwise;
}

void add_shared(CLI::App& app, Arguments& given) {
  add_path(app, "--out", given.suite.out, "folder for the results; made if need be", "DIR")->required();
  add_list(app, "--instances", given.suite.instances, "what to run it on (default: all whose data are at hand)");
  add_path(app, "--data", given.suite.folders.features, "folder of the feature sets", "DIR")
      ->default_str("$ITSPACE_DATA, or ../shared/data")
      ->each([&given](const std::string&) { given.data_given = true; });
  add_path(app, "--fashion-mnist", given.suite.folders.fashion_mnist, "folder of Fashion-MNIST", "DIR");
  add_list(app, "--methods", given.methods, "which methods (default: all): " + ids_of_methods());
  add_list(app, "--seeds", given.seeds, "seeds")->default_str("0,1,2");
  add_whole(app, "--rank", given.rank, "the rank budget r")->default_str("16");
  app.add_flag("--resume", given.suite.resume,
               "keep the instances that an earlier run with the same settings finished");
  app.add_flag("--quiet", given.quiet, "print nothing but errors");
  add_threads(app);
  app.footer(about_all);
}

}  // namespace

Command add_experiment(CLI::App& program, const std::string& command_line) {
  CLI::App* app = program.add_subcommand("experiment", "run the paper's experiments and write a report");
  app->require_subcommand(1);
  auto given = std::make_shared<Arguments>();
  given->suite.command = command_line;
  given->suite.folders.features = folder_in("ITSPACE_DATA", "../shared/data");
  given->suite.folders.fashion_mnist = folder_in("ITSPACE_FASHION_MNIST", ITSPACE_FASHION_MNIST_FOLDER);

  CLI::App* alignment = app->add_subcommand("alignment", "time to gap under a rank budget, against every baseline");
  add_shared(*alignment, *given);
  add_whole(*alignment, "--steps", given->alignment.steps, "steps K of every method")->default_str("20");
  const std::string sample_rows = "rows of each side that sample OT sees";
  add_whole(*alignment, "--sample-rows", given->alignment.sample_ot_rows, sample_rows)->default_str("1000");
  add_real(*alignment, "--enough", given->alignment.enough, "d^3 methods stop at this gap; 0: make all steps")
      ->default_str("0.001");

  CLI::App* covdrift = app->add_subcommand("covdrift", "a frozen head under covariance drift, recovered in K updates");
  add_shared(*covdrift, *given);
  add_list(*covdrift, "--budgets", given->budgets, "numbers of updates K")->default_str("1,2,5,20");
  add_whole(*covdrift, "--sample-rows", given->covdrift.sample_ot_rows, sample_rows)->default_str("500");
  add_list(*covdrift, "--drift", given->covdrift.drifts, "none, scale, mix")->default_str("none,scale,mix");
  add_list(*covdrift, "--severity", given->severities, "s_max of the drift")->default_str("1.7");
  covdrift->add_flag("--closed-set", given->covdrift.closed_set, "evaluate only samples whose label the source has");

  return {app, [given, alignment] { return alignment->parsed() ? run_alignment(*given) : run_covdrift(*given); }};
}

}  // namespace itspace::cli
