// SPDX-License-Identifier: Apache-2.0
//
// itspace align: from files to a factor and its trace.
#include "align_report.hpp"
#include "arguments.hpp"
#include "checkpoints.hpp"
#include "commands.hpp"
#include "device.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "resolution.hpp"
#include "step_arguments.hpp"
#include "streamed_target.hpp"
#include "text.hpp"

#include <itspace/align.hpp>

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <stdexcept>
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
      the rows of the file spread over 8 processes, on one machine or many (docs/scaling.md)
  itspace align --target 'part-*.npy' --memory 2GiB --rank 16 --steps 50 --checkpoint run.npz --resume --out Y.npy
      features larger than memory, read once for each step; killed and started again it goes on where it was

What the target is taken for (auto): `sigma` of an .npz, or a square symmetric array, is a covariance;
anything else is features, one sample per row. A start with as many rows as the target has dimensions and
--rank columns is a factor. Ctrl-C (or SIGTERM, SIGHUP) ends a run after the step at hand: the best iterate is still
written, and the exit code is 130 (143, 129); a second one ends the program. --out and --trace appear together or not
at all, and the trace holds a checksum of its factor. No output may be one of the inputs.)";

struct Arguments {
  TargetArguments target;
  Request start{"start", "--start-as"};
  std::filesystem::path out, trace, iterates;
  Index rank = 0;
  StepArguments step;
  CheckpointArguments checkpoint;
  std::optional<std::uint64_t> memory;
  DeviceChoice device;
  AlignOptions options;  // what is not given on the command line stays the library's
  bool no_completion = false, skip_last = false, floor = false, json = false, quiet = false;
  double rank_timeout = default_rank_timeout;
};

// Under mpirun: what was given and needs all of the target in one process.
std::vector<std::string> options_of_one_process(const Arguments& given) {
  std::vector<std::string> options;
  if (given.floor) options.emplace_back("--floor");
  if (given.device.cuda) options.emplace_back("--device");
  if (!given.target.weights.empty()) options.emplace_back("--weights");
  if (!given.iterates.empty()) options.emplace_back("--iterates");
  if (given.memory) options.emplace_back("--memory");
  if (!given.checkpoint.file.empty()) options.emplace_back("--checkpoint");
  if (given.target.names.size() > 1) options.emplace_back("--target with several files");
  return options;
}

void check_arguments(const Arguments& given) {
  check_at_least("--rank", given.rank, 1);
  check_at_least("--steps", given.options.steps, 0);
  if (given.options.guard) {
    check_at_least("--guard", *given.options.guard, 0);
    if (given.options.solver != Solver::ritz)
      misuse(fmt::format("--guard is {}, but solver paper has no guard columns", *given.options.guard),
             "add --solver ritz, or leave out --guard");
  }
  check_not_negative("--tolerance", given.options.tolerance);
  check_not_negative("--gram-regularization", given.options.gram_regularization);
  check_not_negative("--ridge", given.target.ridge);
  if (given.start.path.empty() && (!given.start.key.empty() || given.start.as != Kind::automatic))
    misuse("--start-key and --start-as are given without --start", "name the file with --start");
  given.checkpoint.check();
  if (!given.checkpoint.file.empty() && given.device.cuda)
    misuse("--checkpoint is given for a run on a GPU, of which none are made", "leave it out, or run on the host");
}

std::filesystem::path iterate_path(const Arguments& given, Index index) {
  return given.iterates / fmt::format("Y_{:03}.npy", index);
}

// The iterates that would be written and either exist already or have the name of another output.
NamedFiles iterates_at_risk(const Arguments& given) {
  NamedFiles found;
  const auto add = [&](const std::filesystem::path& name) {
    constexpr std::string_view begin = "Y_", end = ".npy";
    const std::string text = name.string();
    if (!text.starts_with(begin) || !text.ends_with(end) || text.size() <= begin.size() + end.size()) return;
    const std::string digits = text.substr(begin.size(), text.size() - begin.size() - end.size());
    Index index = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || rest != digits.data() + digits.size() || index > given.options.steps) return;
    if (iterate_path(given, index).filename() == name) found.push_back({"--iterates", given.iterates / name});
  };
  if (given.iterates.empty()) return found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(given.iterates, ignored)) add(entry.path().filename());
  for (const auto& other : {given.out, given.trace}) add(other.filename());
  return found;
}

void check_paths(const Arguments& given) {
  NamedFiles inputs = given.target.files();
  inputs.push_back({"--start", given.start.path});
  NamedFiles outputs{{"--out", given.out}, {"--trace", given.trace}, {"--checkpoint", given.checkpoint.file}};
  check_files(inputs, outputs);
  for (const NamedFile& iterate : iterates_at_risk(given)) {
    check_files(inputs, {iterate});
    for (const NamedFile& output : outputs) check_files({}, {output, iterate});
  }
}

void check_outputs(const Arguments& given) {
  io::check_writable(given.out);
  if (!given.trace.empty()) io::check_writable(given.trace);
  if (!given.checkpoint.file.empty()) io::check_writable(given.checkpoint.file);
  if (given.iterates.empty()) return;
  if (std::filesystem::is_directory(given.iterates)) {
    io::check_writable(iterate_path(given, 0));
  } else if (std::filesystem::exists(given.iterates)) {
    throw std::runtime_error(fmt::format(
        "--iterates {} is a file, not a folder\ngive a folder, or a name for a new one", quoted(given.iterates)));
  } else {
    io::check_writable(given.iterates);  // can be created
  }
}

void print_outcome(const Arguments& given, const AlignReport& report, const Trace& trace) {
  std::string text = report.summary(trace) + fmt::format("\nThe factor ({}, iterate {} of {}) is in {}",
                                                         shape_text(trace.dim, trace.rank), trace.best,
                                                         trace.steps.size() - 1, quoted(given.out));
  if (!given.trace.empty()) text += fmt::format(", the trace in {}", quoted(given.trace));
  if (!given.iterates.empty()) text += fmt::format(", all iterates in {}", quoted(given.iterates));
  print_line("\n" + text + ".");
}

// What a run writes and prints is the outcome of the attempt that counts; one that is given up leaves nothing behind.
template <Storage Scalar, Storage Data, class Run>
int align_and_report(const Arguments& given, const Run& run, std::optional<double> floor, Json json, Progress& progress,
                     ResolutionWatch& watch) {
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
  if (ended_badly)
    print_error(fmt::format("the run ended as {} after {} of {} steps\nthe best iterate is in {}",
                            name(result.status()), result.trace.steps.size() - 1, given.options.steps,
                            quoted(given.out)));
  return ended_badly ? exit_code::outcome : interrupt_exit_code(exit_code::success);
}

// What a checkpoint of this run must have been made with.
std::string run_of(const Arguments& given, const std::string& target) {
  return run_text(given.options, given.rank, given.target.precision, given.checkpoint,
                  fmt::format("{}, ridge {}, {}", target, precise(given.target.ridge),
                              given.target.weights.empty() ? "no weights" : "weights"));
}

template <Storage Scalar>
Json input_json(const Input<Scalar>& input) {
  return {{"path", input.request.path.string()}, {"taken_for", name(input.kind)}, {"why", input.why}};
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
    return align_and_report<Scalar, Data>(given, run, floor, json, progress, watch);
  });
}

// What is asked of data in memory, and cannot be of data that go by.
void check_streamed(const Arguments& given, const io::RowFiles& files) {
  const auto refuse = [](const std::string& what, const std::string& remedy) {
    misuse(fmt::format("{}, and the target is streamed", what), remedy);
  };
  const Kind as = given.target.request.as;
  if (as == Kind::covariance || as == Kind::factor)
    refuse(fmt::format("--target-as is {}", name(as)), "only features are: leave out --memory, and give one file");
  if (as == Kind::automatic && files.rows() == files.cols())
    refuse(fmt::format("{} is square, which may be a covariance", quoted(given.target.request.path)),
           "say --target-as features; a covariance is read without --memory");
  if (!given.target.request.key.empty())
    refuse("--target-key is given", "arrays of an .npz are not: save it as .npy, or leave out --memory");
  if (!given.target.weights.empty()) refuse("--weights are given", "leave them out, or give features that fit memory");
  if (given.floor) refuse("--floor is asked for, an eigenproblem", "leave it out");
  if (given.device.cuda) refuse("--device is a GPU", "leave it out: the reading is what takes the time");
}

template <Storage Data>
int stream_on(const Arguments& given, const io::RowFiles& files) {
  Progress progress(!given.quiet);
  check_streamed(given, files);
  check_rank(given.rank, files.cols(), given.target.request.path);
  const std::string description = fmt::format("features, {} samples of dimension {}", files.rows(), files.cols());
  if (!given.quiet)
    print_note(fmt::format(
        "target: {} ({}, streamed: {} of {})", description,
        files.paths().size() == 1 ? quoted(files.paths().front()) : fmt::format("{} files", files.paths().size()),
        bytes_text(static_cast<double>(files.bytes())), files.type()));
  Json json{{"command", "align"},
            {"target",
             {{"path", given.target.request.path.string()},
              {"files", files.paths().size()},
              {"taken_for", "features"},
              {"why", "streamed"},
              {"bytes", files.bytes()}}}};
  const auto from = load_start(given, files.cols(), json, [&](const auto& start) {
    if (start.dim() != files.cols())
      misuse(fmt::format("target {} has dimension {}, but start {} has dimension {}", quoted(given.target.request.path),
                         files.cols(), quoted(given.start.path), start.dim()),
             "both must have the same coordinates");
  });
  const CheckpointedRun checkpointed(
      given.checkpoint,
      run_of(given, fmt::format("{} of {}, memory {}", description, files.type(), given.memory.value_or(0))),
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
    return align_and_report<Scalar, Data>(given, run, std::nullopt, json, progress, watch);
  });
}

int run(Arguments& given) {
  given.options.step_size = given.step.size();
  if (given.no_completion) given.options.completion = false;
  if (given.skip_last) given.options.evaluate_last = false;
  check_arguments(given);
  if (job().size > 1)
    return align_on_ranks({given.target, given.start, given.rank, given.options, given.out, given.trace, given.json,
                           given.quiet, given.rank_timeout, options_of_one_process(given)});
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

void add_start(CLI::App& app, Arguments& given) {
  add_path(app, "--start", given.start.path, "where to start (default: random)")->group(input_group);
  add_kind(app, "--start-as", given.start.as, "take it for: auto, covariance, features, factor")->group(input_group);
  app.add_option("--start-key", given.start.key, "its name in an .npz")->type_name("NAME")->group(input_group);
}

void add_steps(CLI::App& app, Arguments& given) {
  const std::string group = "Steps";
  AlignOptions& options = given.options;
  add_whole(app, "--rank", given.rank, "the rank r of the result, 1 to d")->required()->group(group);
  add_whole(app, "--steps", options.steps, "steps to make")
      ->default_str(fmt::format("{}", options.steps))
      ->group(group);
  add_solver(app, options.solver)->group(group);
  add_step_size(app, given.step, group);
  add_route(app, "--route", options.route, "how certificates are computed: auto, qr, gram, factor, root")->group(group);
  add_real(app, "--gram-regularization", options.gram_regularization, "gram route: regularise by X tr(G)/r")
      ->default_str(fmt::format("{}", options.gram_regularization))
      ->group(group);
  add_real(app, "--tolerance", options.tolerance, "stop when a step gains less than this share; 0: never")
      ->default_str(fmt::format("{}", options.tolerance))
      ->group(group);
  app.add_flag("--no-completion", given.no_completion, "leave directions that the target does not see as they are")
      ->group(group);
  app.add_flag("--probe", options.probe, "carry a random column that finds leading directions the start lacks")
      ->group(group);
  add_whole(app, "--guard", options.guard, "solver ritz: random columns carried beside the r of the factor")
      ->group(group);
  app.add_flag("--skip-last-evaluation", given.skip_last, "save the pass for the last objective; it is then bounded")
      ->group(group);
  add_seed(app, "--seed", options.seed, "for everything random")
      ->default_str(fmt::format("{}", options.seed))
      ->group(group);
  add_device(app, given.device)->group(group);
  add_rank_timeout(app, given.rank_timeout)->group(group);
}

void add_outputs(CLI::App& app, Arguments& given) {
  const std::string group = "Output";
  add_path(app, "--out", given.out, "the factor Y, d x r (.npy)")->required()->group(group);
  add_path(app, "--trace", given.trace, "the record of every step (JSON)")->group(group);
  add_path(app, "--iterates", given.iterates, "every iterate, as Y_000.npy, Y_001.npy, ...", "DIR")->group(group);
  add_checkpoints(app, given.checkpoint, group);
  app.add_flag("--floor", given.floor, "compute the rank-r floor (an eigenproblem) and show the gap to it")
      ->group(group);
  app.add_flag("--json", given.json, "print one JSON object instead of the table")->group(group);
  app.add_flag("--quiet", given.quiet, "print nothing but errors")->group(group);
}

}  // namespace

Command add_align(CLI::App& program) {
  CLI::App* app = program.add_subcommand("align", "move a rank-r covariance toward a target, with certificates");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_target(*app, given->target, true);
  add_memory(*app, given->memory)->group(input_group);
  add_start(*app, *given);
  add_steps(*app, *given);
  add_outputs(*app, *given);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
