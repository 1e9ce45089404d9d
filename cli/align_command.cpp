// SPDX-License-Identifier: Apache-2.0
//
// itspace align: from files to a factor and its trace.
#include "align_arguments.hpp"
#include "align_report.hpp"
#include "checkpoints.hpp"
#include "commands.hpp"
#include "device.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "resolution.hpp"
#include "streamed_target.hpp"
#include "text.hpp"

#include <itspace/align.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <variant>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace align --target features.npy --rank 16 --out Y.npy
      two steps toward the covariance of the rows, from a random start
  itspace align --target tgt.npy --start src.npy --rank 16 --steps 5 --floor --out Y.npy --trace run.json
      from the leading part of the source, with a record, and the gap to the best that rank 16 allows
  itspace align --target stats.npz --rank 8 --steps 20 --alpha line-search --tolerance 1e-3 --out Y.npy
      as many steps as it takes until one gains less than 0.1 %
  itspace align --target tgt.npy --start src.npy --rank 16 --steps 4 --solver ritz --floor --out Y.npy
      straight to the floor: a certified, warm-started eigensolver instead of the paper's damped steps
  itspace align --target big.npy --target-as covariance --trust --rank 32 --precision float32 --out Y.npy
      skip the check of a covariance that is known to be one
  itspace align --target tgt.npy --start Y.npy --rank 16 --iterates steps/ --out Y2.npy --json
      go on from an earlier result, keep every iterate, print one JSON object
  mpirun -n 8 itspace align --target features.npy --rank 16 --out Y.npy
      the rows of the file spread over 8 processes, on one machine or many (docs/scaling.md); so with files that are
      streamed, of which each process reads its share, and with checkpoints
  itspace align --target 'part-*.npy' --memory 2GiB --rank 16 --steps 50 --checkpoint run.npz --resume --out Y.npy
      features larger than memory, read once for each step; killed and started again it goes on where it was

What the target is taken for (auto): `sigma` of an .npz, or a square symmetric array, is a covariance;
anything else is features, one sample per row. A start with as many rows as the target has dimensions and
--rank columns is a factor. Ctrl-C (or SIGTERM, SIGHUP) ends a run after the step at hand: the best iterate is still
written, and the exit code is 130 (143, 129); a second one ends the program. --out and --trace appear together or not
at all, and the trace holds a checksum of its factor. No output may be one of the inputs.)";

using Arguments = AlignArguments;

// Under mpirun: what was given and needs all of the target in one process.
std::vector<std::string> options_of_one_process(const Arguments& given) {
  std::vector<std::string> options;
  if (given.floor) options.emplace_back("--floor");
  if (given.device.cuda) options.emplace_back("--device");
  if (!given.target.weights.empty()) options.emplace_back("--weights");
  if (!given.iterates.empty()) options.emplace_back("--iterates");
  return options;
}

void print_outcome(const Arguments& given, const AlignReport& report, const Trace& trace) {
  std::string text = report.summary(trace) + fmt::format("\nThe factor ({}, iterate {} of {}) is in {}",
                                                         shape_text(trace.dim, trace.rank), trace.best,
                                                         trace.steps.size() - 1, quoted(given.out));
  if (!given.trace.empty()) text += fmt::format(", the trace in {}", quoted(given.trace));
  if (!given.iterates.empty()) text += fmt::format(", all iterates in {}", quoted(given.iterates));
  print_line("\n" + text + ".");
}

// What to do about squares that overflow. `largest`: the entry to blame, where it is known.
template <Storage Scalar>
std::string remedy_of_overflow(const std::string& largest) {
  return fmt::format("{}scale the data down{}; ",
                     largest.empty() ? "" : fmt::format("the largest entry: {}; ", largest),
                     std::same_as<Scalar, float> ? ", or give --precision mixed" : "");
}

// What a run writes and prints is the outcome of the attempt that counts; one that is given up leaves nothing behind.
template <Storage Scalar, Storage Data, class Run, class Largest>
int align_and_report(const Arguments& given, const Run& run, const Largest& largest_entry, std::optional<double> floor,
                     Json json, Progress& progress, ResolutionWatch& watch) {
  const bool talkative = !given.quiet && !given.json;
  AlignReport report(floor);
  bool began = false;  // a resumed run does not begin with row 0
  watch_for_interrupt();

  const OnStep<Scalar> on_step = [&](const Step& step, const ConstBlockView<Scalar>& iterate) {
    progress.clear();
    watch.see(step);
    if (watch.given_up()) return StepAction::stop;
    const bool first = !std::exchange(began, true);
    if (first && !given.iterates.empty()) std::filesystem::create_directory(given.iterates);
    if (first && talkative) print_line(report.heading());
    if (talkative) print_line(report.row(step));
    if (!given.iterates.empty()) io::save_npy<Scalar>(iterate_path(given, step.index), iterate);
    progress.show_step(step.index, given.options.steps);
    return interrupt_asked() ? StepAction::stop : StepAction::proceed;
  };
  Result<Scalar> result = run(on_step);
  progress.clear();
  watch.see_end(result.status());
  if (watch.given_up()) {
    if (!given.iterates.empty())
      for (const Step& step : result.trace.steps) std::filesystem::remove(iterate_path(given, step.index));
    return exit_code::success;
  }
  name_precision<Scalar, Data>(result.trace);

  save_run<Scalar>(given.out, given.trace, result);
  if (talkative) print_outcome(given, report, result.trace);
  if (given.json) {
    json.update(align_json(result.trace, floor));
    json["out"] = given.out.string();
    print_json(json);
  }
  if (interrupt_asked())
    print_note(fmt::format("stopped by an interrupt; the best iterate is in {}", quoted(given.out)));
  const bool ended_badly = failed(result.status());
  if (ended_badly) {
    const bool overflowed = result.status() == Status::not_finite && !result.trace.reason.empty();
    print_error(fmt::format("the run ended as {} after {} of {} steps{}\n{}the best iterate is in {}",
                            name(result.status()), result.trace.steps.size() - 1, given.options.steps,
                            overflowed ? ": " + result.trace.reason : "",
                            overflowed ? remedy_of_overflow<Scalar>(largest_entry()) : "", quoted(given.out)));
  }
  return ended_badly ? exit_code::outcome : interrupt_exit_code(exit_code::success);
}

// What a checkpoint of this run must have been made with.
std::string run_of(const Arguments& given, const std::string& target) {
  return run_text(given.options, given.rank, given.target, given.checkpoint, target);
}

// A start has the type of its file, whatever the run computes in.
using StartInput = std::variant<Input<float>, Input<double>>;

// The start of a run, said and put into `json`; none where it is random. `check_dim` refuses one of another dimension.
template <class CheckDim>
std::optional<StartInput> load_start(const Arguments& given, Index dim, Json& json, const CheckDim& check_dim) {
  if (given.start.path.empty()) {
    if (!given.quiet) print_note(fmt::format("start: random, seed {}", given.options.seed));
    json["start"] = {{"taken_for", "random"}, {"seed", given.options.seed}};
    return std::nullopt;
  }
  const Checks checks{.trust = given.target.trust, .quiet = given.quiet};
  const FactorShape shape{dim, given.rank};
  io::Array array = open(given.start);
  StartInput from = holds_float32(array) ? StartInput(load<float>(given.start, std::move(array), checks, shape))
                                         : StartInput(load<double>(given.start, std::move(array), checks, shape));
  std::visit(
      [&](const auto& start) {
        if (!given.quiet) print_note(start.note());
        check_dim(start);
        json["start"] = input_json(start);
      },
      from);
  return from;
}

template <Storage Scalar>
std::optional<Block<Scalar>> start_in(const std::optional<StartInput>& from, Index rank) {
  if (!from) return std::nullopt;
  return std::visit([&](const auto& file) { return start_of<Scalar>(file, rank); }, *from);
}

template <Storage Data>
int run_on(const Arguments& given, io::Array target_array) {
  Progress progress(!given.quiet);
  const auto input = load<Data>(given.target.request, std::move(target_array), given.target.checks(given.quiet));
  if (!given.quiet) print_note(input.note());
  check_rank(given.rank, input.dim(), given.target.request.path);

  Json json{{"command", "align"}, {"target", input_json(input)}};
  const Eigen::VectorXd weights =
      given.target.weights.empty() ? Eigen::VectorXd() : load_weights(given.target.weights, input);
  const auto from = load_start(given, input.dim(), json, [&](const auto& start) { check_same_dim(input, start); });
  const CheckpointedRun checkpointed(given.checkpoint, run_of(given, input.description()), given.quiet);
  const Precision precision = checkpointed.precision(given.target.precision);
  std::optional<double> floor;  // an eigenproblem: solved once, whatever becomes of the first attempt
  return in_enough_precision<Data>(precision, given.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
    const ProblemTarget<Scalar, Data> target(input, weights, given.target.ridge);
    const std::optional<Block<Scalar>> start = start_in<Scalar>(from, given.rank);
    if (given.floor && !floor) {
      progress.show("computing the floor");
      floor = target.floor(given.rank);
      progress.clear();
    }
    const auto run = [&](const OnStep<Scalar>& on_step) {
      return given.device.cuda
                 ? align_on_gpu<Scalar, Data>(given.device, target, start, given.rank, given.options, on_step)
                 : checkpointed.align<Scalar>(target.ref(), start, given.rank, given.options, on_step);
    };
    return align_and_report<Scalar, Data>(
        given, run, [&] { return largest_entry_text(input); }, floor, json, progress, watch);
  });
}

template <Storage Data>
int stream_on(const Arguments& given, const io::RowFiles& files) {
  Progress progress(!given.quiet);
  check_streamed(given.target, files);
  if (given.floor) refuse_streamed("--floor is asked for, an eigenproblem", "leave it out");
  if (given.device.cuda) refuse_streamed("--device is a GPU", "leave it out: the reading is what takes the time");
  check_rank(given.rank, files.cols(), given.target.request.path);
  if (!given.quiet) print_note(fmt::format("target: {} ({})", description(files), files_and_size(files)));
  Json json{{"command", "align"}, {"target", stream_json(given.target, files)}};
  const auto from = load_start(given, files.cols(), json, [&](const auto& start) {
    if (start.dim() != files.cols())
      misuse(fmt::format("target {} has dimension {}, but start {} has dimension {}", quoted(given.target.request.path),
                         files.cols(), quoted(given.start.path), start.dim()),
             "both must have the same coordinates");
  });
  const CheckpointedRun checkpointed(given.checkpoint, run_of(given, run_description(files, given.memory)),
                                     given.quiet);
  const Precision precision = checkpointed.precision(given.target.precision);
  return in_enough_precision<Data>(precision, given.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
    const std::optional<Block<Scalar>> start = start_in<Scalar>(from, given.rank);
    using Streamed = StreamedFeatures<Scalar, Data>;
    const std::uint64_t memory = memory_for_chunks(given.memory, files, {given.options, given.rank, sizeof(Scalar)},
                                                   Streamed::least_memory(files.cols()));
    const Index passes = given.options.steps + (start ? 1 : 2);
    SweepProgress sweeps(progress, files.bytes(), passes);
    const std::uint64_t row_bytes = files.bytes() / static_cast<std::uint64_t>(std::max<Index>(1, files.rows()));
    const Streamed target(std::make_shared<WatchedRows<Data>>(files.source<Data>(), row_bytes, sweeps), memory);
    const ShiftedTarget<Scalar> shifted(TargetRef<Scalar>(target), given.target.ridge);
    const TargetRef<Scalar> ref = given.target.ridge > 0 ? TargetRef<Scalar>(shifted) : TargetRef<Scalar>(target);
    const auto run = [&](const OnStep<Scalar>& on_step) {
      auto result = checkpointed.align<Scalar>(ref, start, given.rank, given.options, on_step);
      progress.clear();
      if (!given.quiet) print_note(sweeps.summary(target.sweeps()));
      return result;
    };
    const auto unknown = [] { return std::string(); };  // it would take another sweep
    return align_and_report<Scalar, Data>(given, run, unknown, std::nullopt, json, progress, watch);
  });
}

int run(Arguments& given) {
  given.options.step_size = given.step.size();
  if (given.no_completion) given.options.completion = false;
  if (given.skip_last) given.options.evaluate_last = false;
  check_arguments(given);
  if (job().size > 1)
    return align_on_ranks({given.target, given.memory, given.start, given.rank, given.options, given.out, given.trace,
                           given.checkpoint, given.json, given.quiet, given.rank_timeout,
                           options_of_one_process(given)});
  check_paths(given);
  check_device(given.device);
  if (is_streamed(given.target.names, given.memory, given.target.request.as)) {
    const io::RowFiles files(given.target.names);
    check_outputs(given);
    const bool narrow = files.type() == "float32" || files.type() == "float16";
    return with_data_type(given.target.precision, narrow, [&]<class Data>() { return stream_on<Data>(given, files); });
  }
  auto target_array = open(given.target.request);
  check_outputs(given);
  return with_data_type(given.target.precision, holds_float32(target_array),
                        [&]<class Data>() { return run_on<Data>(given, std::move(target_array)); });
}

}  // namespace

Command add_align(CLI::App& program) {
  CLI::App* app = program.add_subcommand("align", "move a rank-r covariance toward a target, with certificates");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_arguments(*app, *given);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
