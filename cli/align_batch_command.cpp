// SPDX-License-Identifier: Apache-2.0
//
// itspace align-batch: from stacks in files to a stack of factors and the record of all runs.
#include "arguments.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "step_arguments.hpp"
#include "text.hpp"

#include <itspace/batch.hpp>
#include <itspace/stack_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace align-batch --targets sigmas.npy --rank 8 --out factors.npy
      two steps toward each of B covariances (B, d, d), from random starts; the factors are (B, d, 8)
  itspace align-batch --targets samples.npy --as features --starts Y.npy --steps 5 --out Z.npy --trace runs.json
      toward the covariance of each feature set (B, n, d), from the factors (B, d, r) of an earlier call

Each problem is what `itspace align` would make of it alone on one thread, bit for bit; the problems are spread over the
threads. A bad one (not finite, not symmetric, a negative variance) does not fail the others: it keeps its start, NaN
where that is random, the record says what was found, and the exit code is 1. Ctrl-C ends the call: problems that were
not begun keep their starts, as `not_run`. --out and --trace appear together or not at all.)";

struct Arguments {
  Request targets{"targets", "--as"}, starts{"starts", ""};
  Precision precision = Precision::automatic;
  std::filesystem::path out, trace;
  std::optional<Index> rank;
  StepArguments step;
  AlignOptions options;
  bool json = false, quiet = false;
};

void check_arguments(Arguments& given) {
  given.options.step_size = given.step.size();
  check_at_least("--steps", given.options.steps, 0);
  check_not_negative("--tolerance", given.options.tolerance);
  if (given.options.guard) check_at_least("--guard", *given.options.guard, 0);
  if (given.options.guard && given.options.solver != Solver::ritz)
    misuse(fmt::format("--guard is {}, but solver paper has no guard columns", *given.options.guard),
           "add --solver ritz, or leave out --guard");
  if (given.targets.as == Kind::factor)
    misuse("--as is factor, and targets are covariances or features", "give --as covariance or --as features");
  if (!given.rank && given.starts.path.empty())
    misuse("neither --rank nor --starts is given", "give the rank for random starts, or a stack of starts");
  if (given.rank) check_at_least("--rank", *given.rank, 1);
  check_files({{"--targets", given.targets.path}, {"--starts", given.starts.path}},
              {{"--out", given.out}, {"--trace", given.trace}});
}

template <Storage Scalar>
MatrixStack<Scalar> stack_of(const io::Array& array, const HeldBlock<Scalar>& values) {
  const auto& shape = array.info().shape;
  return {values.view().data(), shape[0], shape[1], shape[2]};
}

// What --as leaves open: a stack of square matrices is one of covariances.
StackOf kind_of(const Arguments& given, const io::Array& targets) {
  const auto& shape = targets.info().shape;
  const bool square = shape[1] == shape[2];
  if (given.targets.as == Kind::covariance && !square)
    misuse(fmt::format("{} holds matrices of {}, but a covariance is square", quoted(given.targets.path),
                       shape_text(shape[1], shape[2])),
           "give --as features if their rows are samples");
  const bool features = given.targets.as == Kind::features || (given.targets.as == Kind::automatic && !square);
  return features ? StackOf::features : StackOf::covariances;
}

std::string status_text(const std::optional<Status>& status) {
  return status ? std::string(name(*status)) : "not_run";
}

template <Storage Scalar>
Json record_of(const Arguments& given, const BatchResult<Scalar>& result, std::string_view precision) {
  Json json{{"schema", "itspace.batch/1"},
            {"count", result.count},
            {"dim", result.dim},
            {"rank", result.rank},
            {"steps", given.options.steps},
            {"solver", name(given.options.solver)},
            {"precision", precision},
            {"factor_checksum", io::checksum_of<Scalar>(result.factors)}};
  Json& problems = json["problems"] = Json::array();
  for (Index i = 0; i < result.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Json problem{{"status", status_text(result.status[at])},
                 {"certified", result.certified[at] != 0},
                 {"best", result.best[at]}};
    problem["objectives"] = std::vector<double>(result.objectives.row(i).begin(), result.objectives.row(i).end());
    if (!result.reasons[at].empty()) problem["reason"] = result.reasons[at];
    problems.push_back(std::move(problem));
  }
  return json;
}

// "9998 step_limit, 2 not_finite"
std::string ends_text(const std::vector<std::optional<Status>>& status) {
  std::map<std::string, Index> counts;
  for (const auto& one : status) ++counts[status_text(one)];
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(fmt::format("{} {}", count, text));
  return joined(parts);
}

template <Storage Scalar>
int report(const Arguments& given, const BatchResult<Scalar>& result, std::string_view precision) {
  const Json record = record_of<Scalar>(given, result, precision);
  io::Outputs outputs;
  io::save_stack<Scalar>(outputs, given.out, result.factors, result.dim);
  if (!given.trace.empty()) io::save_text(outputs, given.trace, record.dump(1) + "\n");
  commit(outputs);
  const auto certified = std::count(result.certified.begin(), result.certified.end(), std::uint8_t(1));
  if (given.json) {
    print_json(record);
  } else if (!given.quiet) {
    print_line(fmt::format("{} problems: {}; {} certified.", result.count, ends_text(result.status), certified));
    print_line(fmt::format("The factors ({} x {} each) are in {}{}.", result.dim, result.rank, quoted(given.out),
                           given.trace.empty() ? "" : fmt::format(", the record in {}", quoted(given.trace))));
  }
  const auto bad = std::find_if(result.status.begin(), result.status.end(),
                                [](const auto& status) { return status ? failed(*status) : !interrupt_asked(); });
  if (bad == result.status.end()) return interrupt_exit_code(exit_code::success);
  const auto at = static_cast<std::size_t>(bad - result.status.begin());
  print_error(
      fmt::format("problem {} ended as {}{}\nthe others are not affected; the factor of such a problem is the "
                  "best iterate before that, mostly its start",
                  at, status_text(*bad), result.reasons[at].empty() ? "" : fmt::format(": {}", result.reasons[at])));
  return exit_code::outcome;
}

template <Storage Scalar, Storage Data>
BatchResult<Scalar> solve(const Arguments& given, const MatrixStack<Data>& targets,
                          const std::optional<io::Array>& starts, StackOf kind) {
  BatchOptions batch;
  batch.targets = kind;
  batch.should_stop = [] { return interrupt_asked(); };
  if (!starts) return align_batch<Scalar, Data>(targets, *given.rank, given.options, batch);
  const HeldBlock<Scalar> values = starts->as<Scalar>();
  return align_batch<Scalar, Data>(targets, stack_of<Scalar>(*starts, values), given.options, batch);
}

template <Storage Data>
int run_on(const Arguments& given, const io::Array& array, const std::optional<io::Array>& starts) {
  const HeldBlock<Data> values = array.as<Data>();
  const MatrixStack<Data> targets = stack_of<Data>(array, values);
  const StackOf kind = kind_of(given, array);
  if (!given.quiet)
    print_note(kind == StackOf::features
                   ? fmt::format("targets {}: {} feature sets, {} samples of dimension {}", quoted(given.targets.path),
                                 targets.count, targets.rows, targets.cols)
                   : fmt::format("targets {}: {} covariances of dimension {}", quoted(given.targets.path),
                                 targets.count, targets.cols));
  watch_for_interrupt();
  if constexpr (std::same_as<Data, float>) {
    if (given.precision != Precision::mixed) {
      const auto result = solve<float, float>(given, targets, starts, kind);
      const auto unresolved = std::count(result.unresolved.begin(), result.unresolved.end(), std::uint8_t(1));
      const bool again = unresolved > 0 && given.precision == Precision::automatic && !interrupt_asked();
      if (unresolved > 0 && !given.quiet)
        print_note(fmt::format("float32 does not resolve W2^2 to 1 % in {} of {} problems; {}", unresolved,
                               result.count,
                               again ? "all are made again in mixed precision" : "try --precision mixed"));
      if (!again) return report<float>(given, result, "float32");
    }
    return report<double>(given, solve<double, float>(given, targets, starts, kind), "mixed");
  } else {
    return report<double>(given, solve<double, double>(given, targets, starts, kind), "float64");
  }
}

int run(Arguments& given) {
  check_arguments(given);
  const io::Array targets = io::open_stack(given.targets.path, given.targets.key);
  std::optional<io::Array> starts;
  if (!given.starts.path.empty()) {
    starts = io::open_stack(given.starts.path, given.starts.key);
    const Index cols = starts->info().shape[2];
    if (given.rank && *given.rank != cols)
      misuse(fmt::format("--rank is {} and the starts in {} have {} columns", *given.rank, quoted(given.starts.path),
                         cols),
             fmt::format("give --rank {}, or leave it out", cols));
  }
  io::check_writable(given.out);
  if (!given.trace.empty()) io::check_writable(given.trace);
  return with_data_type(given.precision, {&targets},
                        [&]<class Data>() { return run_on<Data>(given, targets, starts); });
}

void add_inputs(CLI::App& app, Arguments& given) {
  add_path(app, "--targets", given.targets.path, "the targets, (B, d, d) or (B, n, d) (.npy or .npz)")
      ->required()
      ->group(input_group);
  add_kind(app, "--as", given.targets.as, "take them for: auto, covariance, features")->group(input_group);
  app.add_option("--targets-key", given.targets.key, "their name in an .npz")->type_name("NAME")->group(input_group);
  add_path(app, "--starts", given.starts.path, "where to start, (B, d, r) (default: random)")->group(input_group);
  app.add_option("--starts-key", given.starts.key, "their name in an .npz")->type_name("NAME")->group(input_group);
  add_precision(app, given.precision)->group(input_group);
  add_threads(app)->group(input_group);
}

void add_steps(CLI::App& app, Arguments& given) {
  const std::string group = "Steps";
  AlignOptions& options = given.options;
  add_whole(app, "--rank", given.rank, "the rank r of the results; with --starts it is theirs")->group(group);
  add_whole(app, "--steps", options.steps, "steps to make in each problem")
      ->default_str(fmt::format("{}", options.steps))
      ->group(group);
  add_solver(app, options.solver)->group(group);
  add_step_size(app, given.step, group);
  add_route(app, "--route", options.route, "how certificates are computed: auto, qr, gram, factor, root")->group(group);
  add_real(app, "--tolerance", options.tolerance, "stop a run when a step gains less than this share; 0: never")
      ->default_str(fmt::format("{}", options.tolerance))
      ->group(group);
  add_whole(app, "--guard", options.guard, "solver ritz: random columns carried beside the r of the factor")
      ->group(group);
  add_seed(app, "--seed", options.seed, "for everything random, the same in each problem")
      ->default_str(fmt::format("{}", options.seed))
      ->group(group);
}

}  // namespace

Command add_align_batch(CLI::App& program) {
  CLI::App* app = program.add_subcommand("align-batch", "the same for a stack of small problems, on all threads");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_inputs(*app, *given);
  add_steps(*app, *given);
  const std::string group = "Output";
  add_path(*app, "--out", given->out, "the factors, (B, d, r) (.npy)")->required()->group(group);
  add_path(*app, "--trace", given->trace, "status and objectives of every problem (JSON)")->group(group);
  app->add_flag("--json", given->json, "print that record instead of a summary")->group(group);
  app->add_flag("--quiet", given->quiet, "print nothing but errors")->group(group);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
