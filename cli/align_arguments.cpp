// SPDX-License-Identifier: Apache-2.0
#include "align_arguments.hpp"

#include "streamed_target.hpp"
#include "text.hpp"

#include <itspace/io.hpp>

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace itspace::cli {

void check_arguments(const AlignArguments& given) {
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
  if (!given.checkpoint.file.empty() && given.options.steps <= given.checkpoint.every && !given.quiet)
    print_note(
        fmt::format("no checkpoint is written: the run ends after --steps {}, and the first is due after that "
                    "(--checkpoint-every {})",
                    given.options.steps, given.checkpoint.every));
}

std::filesystem::path iterate_path(const AlignArguments& given, Index index) {
  return given.iterates / fmt::format("Y_{:03}.npy", index);
}

namespace {

// The iterates that would be written and either exist already or have the name of another output.
NamedFiles iterates_at_risk(const AlignArguments& given) {
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

}  // namespace

void check_paths(const AlignArguments& given) {
  NamedFiles inputs = given.target.files();
  inputs.push_back({"--start", given.start.path});
  NamedFiles outputs{{"--out", given.out}, {"--trace", given.trace}, {"--checkpoint", given.checkpoint.file}};
  check_files(inputs, outputs);
  for (const NamedFile& iterate : iterates_at_risk(given)) {
    check_files(inputs, {iterate});
    for (const NamedFile& output : outputs) check_files({}, {output, iterate});
  }
}

void check_outputs(const AlignArguments& given) {
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
    const bool ends_in_slash = !given.iterates.has_filename();
    io::check_writable(ends_in_slash ? given.iterates.parent_path() : given.iterates);  // can be created
  }
}

namespace {

void add_start(CLI::App& app, AlignArguments& given) {
  add_path(app, "--start", given.start.path, "where to start (default: random)")->group(input_group);
  add_kind(app, "--start-as", given.start.as, "take it for: auto, covariance, features, factor")->group(input_group);
  app.add_option("--start-key", given.start.key, "its name in an .npz")->type_name("NAME")->group(input_group);
}

void add_steps(CLI::App& app, AlignArguments& given) {
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

void add_outputs(CLI::App& app, AlignArguments& given) {
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

void add_arguments(CLI::App& app, AlignArguments& given) {
  add_target(app, given.target, true);
  add_memory(app, given.memory)->group(input_group);
  add_start(app, given);
  add_steps(app, given);
  add_outputs(app, given);
}

}  // namespace itspace::cli
