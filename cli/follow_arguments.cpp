// SPDX-License-Identifier: Apache-2.0
#include "follow_arguments.hpp"

#include "arguments.hpp"
#include "predicted.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  itspace follow --rank 16 --source src.npy --candidate-out C.npz --state S.npz day1.npy
  itspace transform --map C.npz --in day2.npy --out mapped2.npy     # then your classifier: p2.npy of day2, q2.npy of mapped2
  itspace follow --source src.npy --predictions p2.npy,q2.npy --candidate-out C.npz --map-out M.npz --state S.npz day2.npy
      gated: M.npz maps the stream into the source's frame where the predictions say that this helps, and is the
      identity where they do not; day3.npy is mapped by C.npz to ask again, and by M.npz to be used

For each batch one JSON object on one line: its number, samples, effective samples (sum w)^2/sum w^2, the objective
W2^2 of the factor against the covariance so far (before the steps and after), whether the steps are certified, and
with --run-length the levels of the drift alarm (an alarm from 1 on), and the gate: `choice` is the map that is applied
from here on, or none; `says` what the last samples speak for and `sentence` why. It is closed at first, stays as it is
where a batch comes without predictions, and decides by those of the last 512 samples, each under the map of its time
(docs/should-i-adapt.md has the rule; no label is used). Recent batches are kept as they came, older ones
as --keep leading directions and a diagonal. A batch with a value that is not finite, or of another dimension, ends the
run with exit code 2; the state is then that of the batches before it. An empty one is skipped with a warning. Ctrl-C
and SIGTERM end the run after the batch at hand, with the state saved. Options that a --state file has already must be
left out, or be the same.)";

}  // namespace

bool is_stream(const std::string& path) {
  return path == "-";
}

void check_arguments(const FollowArguments& given) {
  NamedFiles inputs;
  for (const std::string& file : given.files) inputs.push_back({"the batches", file});
  for (const std::string& file : given.predicted) inputs.push_back({"--predicted", file});
  inputs.push_back({"--source-labels", given.source_labels});
  NamedFiles outputs{{"--state", given.state}, {"--out", given.out}};
  given.gate.add_files(inputs, outputs);
  check_files(inputs, outputs);
  check_gate(given.gate, given.files);
  if (!given.predicted.empty() && given.predicted.size() != given.files.size())
    misuse(fmt::format("--predicted is given {} times for {} files of batches", given.predicted.size(),
                       given.files.size()),
           "give one for each, in their order");
  if (!given.predicted.empty() && std::count(given.files.begin(), given.files.end(), "-") > 0)
    misuse("--predicted is given with standard input (-)", "give the batches as files");
  if (!given.source_labels.empty() && given.predicted.empty() && given.gate.predictions.empty())
    misuse("--source-labels is given without --predicted or --predictions",
           "give the predicted classes of each file too");
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

OnlineAlignerOptions options_of(const FollowArguments& given) {
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
  if (!given.source_labels.empty() && !given.predicted.empty())
    options.stream.balance = balance_of_labels(given.source_labels);
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

void check_same(const FollowArguments& given, const OnlineAlignerOptions& found) {
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
  if (!given.source_labels.empty() && !given.predicted.empty()) {
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

void add_follow_options(CLI::App& app, FollowArguments& given) {
  app.footer(examples);
  app.add_option("FILES", given.files, "batches of features (.npy or .npz), in order; - for standard input")
      ->required()
      ->type_name("FILE");
  add_whole(app, "--rank", given.rank, "columns of the factor (needed unless a state is taken up)");
  add_whole(app, "--steps", given.steps, "for each batch (default 2)");
  add_step_size(app, given.step, "Steps");
  add_real(app, "--half-life", given.half_life, "batches after which a sample weighs half (default: never)");
  app.add_option("--half-life-in", given.unit, "batches (default) or samples")->type_name("UNIT");
  add_whole(app, "--window", given.window, "only the last so many batches count, with full weight");
  add_whole(app, "--keep", given.keep, "directions kept of older batches (default: 4 times the rank)");
  add_whole(app, "--batch", given.batch, "rows of a batch (default: a file is one; 256 of standard input)");
  add_real(app, "--run-length", given.run_length, "raise an alarm on drift, false once in so many batches");
  add_whole(app, "--reference", given.reference, "first batches that the alarm takes for usual (default 20)");
  app.add_option("--predicted", given.predicted,
                 "the class of each row, or its class probabilities; once for each file of batches")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_path(app, "--source-labels", given.source_labels,
           "labels of the source: with --predicted each class counts as much as there, and with\n"
           "--predictions other classes are refused");
  add_gate_options(app, given.gate);
  add_path(app, "--state", given.state, "go on from this state where it exists, and leave it there (.npz)");
  add_path(app, "--out", given.out, "the last factor (.npy)");
  add_seed(app, "--seed", given.seed, "of the first start and the alarm")->default_str("0");
  add_precision(app, given.precision)
      ->description(
          "float32 or float64, of the state and of all arithmetic. Default: that of\n"
          "the first file, float32 for float16. Batches of which float32 does not\n"
          "resolve W2^2 to 1 % of itself are warned of");
  add_threads(app);
  app.add_flag("--quiet", given.quiet, "print the lines alone");
}

}  // namespace itspace::cli
