// SPDX-License-Identifier: Apache-2.0
//
// itspace follow: a stream of batches, a few steps for each, one line for each as it goes.
#include "arguments.hpp"
#include "commands.hpp"
#include "files.hpp"
#include "interrupt.hpp"
#include "predicted.hpp"
#include "step_arguments.hpp"
#include "text.hpp"

#include <itspace/online_file.hpp>
#include <itspace/row_stream.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace follow --rank 16 --half-life 20 monday.npy tuesday.npy wednesday.npy
      each file a batch; a sample weighs half after 20 more batches
  itspace follow --rank 16 --steps 2 --batch 256 --window 50 --state S.npz stream.npy
      batches of 256 rows, the last 50 of them count; the state goes to S.npz, from where the same command goes on
  producer | itspace follow --rank 16 --batch 64 --run-length 200 --state S.npz -
      rows from standard input (an .npy in C order) as they come, with an alarm when the stream drifts that is false
      once in 200 batches
  itspace follow --rank 16 --half-life 20 --source-labels ys.npy --predicted p1.npy --predicted p2.npy day1.npy day2.npy
      balanced: each class counts as much as among the source's labels, by the class predicted for each row (whole
      numbers), or by a row of class probabilities; for streams that come class by class

For each batch one JSON object on one line: its number, samples, effective samples (sum w)^2/sum w^2, the objective
W2^2 of the factor against the covariance so far (before the steps and after), whether the steps are certified, and
with --run-length the levels of the drift alarm (an alarm from 1 on). Recent batches are kept as they came, older ones
as --keep leading directions and a diagonal. A batch with a value that is not finite, or of another dimension, ends the
run with exit code 2; the state is then that of the batches before it. An empty one is skipped with a warning. Ctrl-C
and SIGTERM end the run after the batch at hand, with the state saved. Options that a --state file has already must be
left out, or be the same.)";

constexpr Index rows_from_input = 256;  // a batch of standard input

struct Arguments {
  std::vector<std::string> files;
  std::optional<Index> rank, steps, window, keep, batch, reference;
  double half_life = std::numeric_limits<double>::quiet_NaN();
  double run_length = std::numeric_limits<double>::quiet_NaN();
  std::string unit;
  StepArguments step;
  std::uint64_t seed = 0;
  std::filesystem::path state, out, source_labels;
  std::vector<std::string> predicted;
  Precision precision = Precision::automatic;
  bool quiet = false;
};

bool is_stream(const std::string& path) {
  return path == "-";
}

void check_arguments(const Arguments& given) {
  NamedFiles inputs;
  for (const std::string& file : given.files) inputs.push_back({"the batches", file});
  for (const std::string& file : given.predicted) inputs.push_back({"--predicted", file});
  inputs.push_back({"--source-labels", given.source_labels});
  check_files(inputs, {{"--state", given.state}, {"--out", given.out}});
  if (!given.predicted.empty() && given.predicted.size() != given.files.size())
    misuse(fmt::format("--predicted is given {} times for {} files of batches", given.predicted.size(),
                       given.files.size()),
           "give one for each, in their order");
  if (!given.predicted.empty() && std::count(given.files.begin(), given.files.end(), "-") > 0)
    misuse("--predicted is given with standard input (-)", "give the batches as files");
  if (!given.source_labels.empty() && given.predicted.empty())
    misuse("--source-labels is given without --predicted", "give the predicted classes of each file too");
  if (is_stream(given.state.string())) misuse("--state is -", "give it a file: the state is read and written");
  if (std::count(given.files.begin(), given.files.end(), "-") > 1)
    misuse("standard input (-) is named twice", "name it once");
  if (given.rank) check_at_least("--rank", *given.rank, 1);
  if (given.steps) check_at_least("--steps", *given.steps, 0);
  if (given.window) check_at_least("--window", *given.window, 1);
  if (given.keep) check_at_least("--keep", *given.keep, 1);
  if (given.batch) check_at_least("--batch", *given.batch, 1);
  if (given.reference) check_at_least("--reference", *given.reference, 4);
  const bool has_half_life = !std::isnan(given.half_life);
  if (has_half_life && !(given.half_life > 0))
    misuse(fmt::format("--half-life is {}, not above 0", given.half_life),
           "give the number of batches after which a sample weighs half; leave it out to forget nothing");
  if (has_half_life && given.window) misuse("--half-life and --window are both given", "give one of the two");
  if (!given.unit.empty() && given.unit != "batches" && given.unit != "samples")
    misuse(fmt::format("--half-life-in is '{}'", given.unit), "give batches or samples");
  if (!given.unit.empty() && !has_half_life)
    misuse("--half-life-in is given without --half-life", "give --half-life too");
  if (!std::isnan(given.run_length) && !(given.run_length >= 2))
    misuse(fmt::format("--run-length is {}, below the limit 2", given.run_length),
           "give the number of batches between two false alarms, for instance 200");
  if (given.reference && std::isnan(given.run_length))
    misuse("--reference is given without --run-length", "give --run-length too: there is no alarm without it");
  if (given.precision == Precision::mixed)
    misuse("--precision is mixed, which a stream does not have", "give float32 or float64");
}

OnlineAlignerOptions options_of(const Arguments& given) {
  OnlineAlignerOptions options;
  if (!given.rank)
    misuse("--rank is missing, and there is no state to take it from", "give --rank, for instance --rank 16");
  options.rank = *given.rank;
  if (given.steps) options.steps = *given.steps;
  options.step_size = given.step.size();
  options.seed = options.stream.seed = given.seed;
  if (!std::isnan(given.half_life)) options.stream.half_life = given.half_life;
  if (given.unit == "samples") options.stream.unit = HalfLifeUnit::samples;
  if (given.window) options.stream.window = *given.window;
  options.stream.kept_rank = given.keep;
  if (!given.source_labels.empty()) options.stream.balance = balance_of_labels(given.source_labels);
  if (given.source_labels.empty() && !given.predicted.empty())
    misuse("--predicted is given without --source-labels", "give the labels of the source, whose shares count");
  if (!std::isnan(given.run_length)) {
    options.drift.emplace();
    options.drift->run_length = given.run_length;
    options.drift->seed = given.seed;
    options.drift->rank = std::min(options.drift->rank, options.rank);
    if (given.reference) options.drift->reference_batches = *given.reference;
  }
  return options;
}

// What was given must be what the state has; what was not given is taken from there.
void check_same(const Arguments& given, const OnlineAlignerOptions& found) {
  const auto same = [&](std::string_view flag, bool asked, double value, double held) {
    if (asked && value != held)
      misuse(fmt::format("{} is {}, and the stream in {} has {}", flag, value, quoted(given.state), held),
             fmt::format("leave {} out to go on, or give --state another file to begin anew", flag));
  };
  const auto whole = [&](std::string_view flag, const std::optional<Index>& value, Index held) {
    same(flag, value.has_value(), static_cast<double>(value.value_or(0)), static_cast<double>(held));
  };
  whole("--rank", given.rank, found.rank);
  whole("--steps", given.steps, found.steps);
  whole("--window", given.window, found.stream.window);
  whole("--keep", given.keep, found.stream.kept_rank.value_or(0));
  whole("--reference", given.reference, found.drift ? found.drift->reference_batches : 0);
  same("--seed", given.seed != 0, static_cast<double>(given.seed), static_cast<double>(found.seed));
  if (!given.step.alpha.empty() || !std::isnan(given.step.lambda))
    misuse(fmt::format("a step size is given, and the stream in {} has its own", quoted(given.state)),
           "leave --alpha and --lambda out to go on, or give --state another file to begin anew");
  if (!given.unit.empty() && given.unit != name(found.stream.unit))
    misuse(fmt::format("--half-life-in is {}, and the stream in {} has {}", given.unit, quoted(given.state),
                       name(found.stream.unit)),
           "leave it out to go on, or give --state another file to begin anew");
  if (!given.source_labels.empty()) {
    const ClassBalance asked = balance_of_labels(given.source_labels);
    const auto& held = found.stream.balance;
    if (!held || held->classes != asked.classes || held->shares != asked.shares)
      misuse(fmt::format("--source-labels has other classes or shares than the stream in {}", quoted(given.state)),
             "leave it out to go on, or give --state another file to begin anew");
  }
  if (given.predicted.empty() == found.stream.balance.has_value())
    misuse(
        fmt::format("the stream in {} is {}balanced by class", quoted(given.state), found.stream.balance ? "" : "not "),
        found.stream.balance ? "give --predicted for each file" : "leave --predicted out");
  same("--half-life", !std::isnan(given.half_life), given.half_life, found.stream.half_life);
  same("--run-length", !std::isnan(given.run_length), given.run_length, found.drift ? found.drift->run_length : 0);
}

Json line_of(const Observation& seen, const std::optional<ClassBalance>& balance) {
  Json line{{"batch", seen.batch},
            {"samples", seen.samples},
            {"skipped", seen.skipped},
            {"effective_samples", seen.effective_samples},
            {"target_trace", seen.target_trace}};
  for (Index i = 0; balance && i < seen.class_shares.size(); ++i) {
    const auto& names = balance->classes;
    line["class_shares"][names.empty() ? std::to_string(i) : names[static_cast<std::size_t>(i)]] = seen.class_shares(i);
  }
  if (seen.trace && !seen.trace->steps.empty()) {
    const Trace& trace = *seen.trace;
    line["objective_before"] = trace.steps.front().objective;
    line["objective"] = trace.steps[static_cast<std::size_t>(trace.best)].objective;
    line["status"] = name(trace.status);
    line["certified"] = trace.certified();
    line["passes"] = trace.passes_total;
    line["seconds"] = trace.steps.back().seconds;
  }
  if (seen.drift) {
    line["drift"] = {{"watching", seen.drift->watching},     {"alarm", seen.drift->alarm},
                     {"mean_z", seen.drift->mean_z},         {"covariance_z", seen.drift->covariance_z},
                     {"mean_level", seen.drift->mean_level}, {"covariance_level", seen.drift->covariance_level}};
  }
  if (!seen.warning.empty()) line["warning"] = seen.warning;
  return line;
}

// False where the run was asked to end before there was anything to read. A read itself is taken up again after a
// signal, so that the waiting is done here; a signal that comes just before it is seen after a moment.
bool wait_for_input() {
  constexpr int moment_ms = 200;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (!interrupt_asked())
    if (::poll(&input, 1, moment_ms) > 0) return true;
  return false;
}

// The rows of one file, a batch at a time: fewer in the last one. Of standard input a row at a time, as they come.
template <Storage Scalar>
Index read_batch(io::RowReader& in, bool stream, Block<Scalar>& batch) {
  if (!stream) return in.read<Scalar>(batch);
  Index filled = 0;
  while (filled < batch.rows()) {
    if (!wait_for_input()) return 0;  // what there is of a batch is none
    if (in.read<Scalar>(batch.middleRows(filled, 1)) == 0) break;
    ++filled;
  }
  return filled;
}

template <Storage Scalar>
class Follower {
 public:
  Follower(const Arguments& given, OnlineAligner<Scalar> aligner) : given_(given), aligner_(std::move(aligner)) {}

  int run(std::optional<io::RowReader> first) {
    try {
      for (std::size_t i = 0; i < given_.files.size(); ++i) {
        if (interrupt_asked()) break;
        if (!first) first.emplace(given_.files[i]);
        std::optional<PredictedFile> predicted;
        if (!given_.predicted.empty())
          predicted.emplace(given_.predicted[i], first->rows(), *aligner_.options().stream.balance);
        follow(given_.files[i], *first, predicted);
        first.reset();
      }
    } catch (...) {
      save();  // of the batches before the one that was refused
      throw;
    }
    save();
    if (!given_.out.empty()) io::save_npy<Scalar>(given_.out, aligner_.factor());
    if (!given_.quiet)
      print_note(fmt::format("{}{} batches{}", interrupt_asked() ? "interrupted after " : "followed ",
                             aligner_.target().version(),
                             given_.state.empty() ? "" : fmt::format("; the state is in {}", quoted(given_.state))));
    return interrupt_exit_code(failed_ ? exit_code::outcome : exit_code::success);
  }

 private:
  void follow(const std::string& file, io::RowReader& in, const std::optional<PredictedFile>& predicted) {
    const bool stream = is_stream(file);
    const Index rows = given_.batch.value_or(stream ? rows_from_input : std::max<Index>(in.rows(), 1));
    if (in.rows() == 0) observe(file, Block<Scalar>(0, in.cols()), {});
    Block<Scalar> batch(std::min(rows, std::max<Index>(in.rows(), 1)), in.cols());
    Index first = 0;
    while (const Index count = read_batch<Scalar>(in, stream, batch)) {
      observe(fmt::format("rows {} to {} of {}", first, first + count - 1,
                          stream ? "standard input" : quoted(std::filesystem::path(file))),
              batch.topRows(count), predicted ? predicted->rows(first, count) : Predicted());
      first += count;
      if (interrupt_asked()) return;
    }
  }

  void observe(const std::string& where, const ConstBlockView<Scalar>& batch, const Predicted& predicted) {
    Observation seen;
    try {
      seen = aligner_.observe(batch, {}, predicted);
    } catch (const std::invalid_argument& error) {
      misuse(fmt::format("{}: {}", where, error.what()), "mend or leave out that batch, and go on from the one before");
    }
    if (!seen.warning.empty()) print_note(fmt::format("warning: {}: {}", where, seen.warning));
    if (seen.trace && failed(seen.trace->status)) failed_ = true;
    print_line(line_of(seen, aligner_.options().stream.balance).dump());
  }

  void save() {
    if (given_.state.empty()) return;
    const Uninterrupted whole;
    io::save_online<Scalar>(given_.state, aligner_);
  }

  const Arguments& given_;
  OnlineAligner<Scalar> aligner_;
  bool failed_ = false;
};

int run(const Arguments& given) {
  check_arguments(given);
  const bool goes_on = !given.state.empty() && std::filesystem::exists(given.state);
  if (!given.state.empty()) io::check_writable(given.state);
  watch_for_interrupt();
  std::optional<OnlineAligner<float>> narrow;
  std::optional<OnlineAligner<double>> wide;
  if (goes_on) {
    const bool float32 = io::online_precision(given.state) == "float32";
    if (given.precision != Precision::automatic && float32 != (given.precision == Precision::float32))
      misuse(fmt::format("--precision differs from that of the stream in {}", quoted(given.state)),
             "leave --precision out to go on");
    if (float32)
      narrow.emplace(io::load_online<float>(given.state));
    else
      wide.emplace(io::load_online<double>(given.state));
    check_same(given, float32 ? narrow->options() : wide->options());
  }
  const OnlineAlignerOptions options = goes_on ? OnlineAlignerOptions{} : options_of(given);
  // The type of a new stream is that of its first file.
  if (is_stream(given.files.front()) && !wait_for_input()) return interrupt_exit_code(exit_code::success);
  std::optional<io::RowReader> first(given.files.front());
  if (!goes_on) {
    const bool holds_float32 = first->info().type == "float32" || first->info().type == "float16";
    if (given.precision == Precision::float32 || (given.precision == Precision::automatic && holds_float32))
      narrow.emplace(options);
    else
      wide.emplace(options);
  }
  if (narrow) return Follower<float>(given, std::move(*narrow)).run(std::move(first));
  return Follower<double>(given, std::move(*wide)).run(std::move(first));
}

}  // namespace

Command add_follow(CLI::App& program) {
  CLI::App* app = program.add_subcommand("follow", "follow a stream of feature batches, a few steps for each");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  app->add_option("FILES", given->files, "batches of features (.npy or .npz), in order; - for standard input")
      ->required()
      ->type_name("FILE");
  add_whole(*app, "--rank", given->rank, "columns of the factor (needed unless a state is taken up)");
  add_whole(*app, "--steps", given->steps, "for each batch (default 2)");
  add_step_size(*app, given->step, "Steps");
  add_real(*app, "--half-life", given->half_life, "batches after which a sample weighs half (default: never)");
  app->add_option("--half-life-in", given->unit, "batches (default) or samples")->type_name("UNIT");
  add_whole(*app, "--window", given->window, "only the last so many batches count, with full weight");
  add_whole(*app, "--keep", given->keep, "directions kept of older batches (default: 4 times the rank)");
  add_whole(*app, "--batch", given->batch, "rows of a batch (default: a file is one; 256 of standard input)");
  add_real(*app, "--run-length", given->run_length, "raise an alarm on drift, false once in so many batches");
  add_whole(*app, "--reference", given->reference, "first batches that the alarm takes for usual (default 20)");
  app->add_option("--predicted", given->predicted,
                  "the class of each row, or its class probabilities; once for each file of batches")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_path(*app, "--source-labels", given->source_labels, "labels of the source: each class counts as much as there");
  add_path(*app, "--state", given->state, "go on from this state where it exists, and leave it there (.npz)");
  add_path(*app, "--out", given->out, "the last factor (.npy)");
  add_seed(*app, "--seed", given->seed, "of the first start and the alarm")->default_str("0");
  add_precision(*app, given->precision);
  add_threads(*app);
  app->add_flag("--quiet", given->quiet, "print the lines alone");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
