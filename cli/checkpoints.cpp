// SPDX-License-Identifier: Apache-2.0
#include "checkpoints.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <array>
#include <sstream>

namespace itspace::cli {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The first line that one has and the other has not.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  const auto left = lines_of(a), right = lines_of(b);
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string in_left = i < left.size() ? left[i] : "nothing",
                      in_right = i < right.size() ? right[i] : "nothing";
    if (in_left != in_right) return {in_left, in_right};
  }
  return {};
}

template <Storage Scalar>
constexpr std::string_view precision_text = std::same_as<Scalar, float> ? "float32" : "float64";

}  // namespace

void CheckpointArguments::check() const {
  check_at_least("--checkpoint-every", every, 1);
  if (file.empty() && (resume || every_given))
    misuse(fmt::format("{} is given without --checkpoint", resume ? "--resume" : "--checkpoint-every"),
           "name the file with --checkpoint");
}

void add_checkpoints(CLI::App& app, CheckpointArguments& given, const std::string& group) {
  add_path(app, "--checkpoint", given.file, "keep what a killed run needs to go on (.npz)")->group(group);
  app.add_option_function<std::string>(
         "--checkpoint-every",
         [&given](const std::string& text) {
           given.every = parse_whole("--checkpoint-every", text);
           given.every_given = true;
         },
         "steps between two of them; each costs one pass")
      ->type_name("N")
      ->default_str(fmt::format("{}", given.every))
      ->group(group);
  app.add_flag("--resume", given.resume, "go on from --checkpoint where there is one")->group(group);
}

std::string run_text(const AlignOptions& options, Index rank, const TargetArguments& target,
                     const CheckpointArguments& given, const std::string& description) {
  const StepSize& step = options.step_size;
  const bool searches = step.kind() == StepSize::Kind::line_search;
  constexpr std::array<std::string_view, 4> precisions{"auto", "float32", "mixed", "float64"};
  return fmt::format(
      "target={}, ridge {}, {}\nrank={}\nsteps={}\nsolver={}\nalpha={}\nroute={}\ngram-regularization={}\n"
      "tolerance={}\ncompletion={}\nprobe={}\nguard={}\nevaluate-last={}\nseed={}\nprecision={}\n"
      "checkpoint-every={}\n",
      description, precise(target.ridge), target.weights.empty() ? "no weights" : "weights", rank, options.steps,
      name(options.solver), searches ? "line-search" : precise(step.resolve(options.steps)), name(options.route),
      precise(options.gram_regularization), precise(options.tolerance), options.completion, options.probe,
      options.guard ? fmt::format("{}", *options.guard) : "default", options.evaluate_last, options.seed,
      precisions[static_cast<std::size_t>(target.precision)], given.every);
}

const CheckpointPlace& CheckpointPlace::here() {
  static const CheckpointPlace place;
  return place;
}

CheckpointedRun::CheckpointedRun(const CheckpointArguments& given, std::string run, bool quiet,
                                 const CheckpointPlace& place)
    : given_(given), run_(std::move(run)), place_(place) {
  if (!given_.resume) return;
  std::string precision;
  place_.at_file([&] { precision = precision_in_file(quiet); });
  precision = place_.told(precision);
  if (!precision.empty()) found_ = precision;
}

std::string CheckpointedRun::precision_in_file(bool quiet) const {
  if (!std::filesystem::exists(given_.file)) {
    if (!quiet)
      print_note(fmt::format("there is no checkpoint in {} yet: the run begins with its start", quoted(given_.file)));
    return "";
  }
  const io::CheckpointHead head = io::load_checkpoint_head(given_.file);
  if (head.run != run_) {
    const auto [there, here] = first_difference(head.run, run_);
    misuse(fmt::format("{} is the checkpoint of another run: there {}, here {}", quoted(given_.file), there, here),
           "resume with the target and the options of that run, or leave out --resume to begin again");
  }
  return head.precision;
}

template <Storage Scalar>
Checkpoint<Scalar> CheckpointedRun::load() const {
  Checkpoint<Scalar> checkpoint;
  std::string trace;
  place_.at_file([&] {
    checkpoint = io::load_checkpoint<Scalar>(given_.file);
    trace = io::to_json(checkpoint.trace);
  });
  place_.tell(checkpoint.current);
  place_.tell(checkpoint.best);
  checkpoint.trace = io::trace_from_json(place_.told(std::move(trace)));
  return checkpoint;
}

Precision CheckpointedRun::precision(Precision asked) const {
  return asked == Precision::automatic && found_ == "float64" ? Precision::mixed : asked;
}

template <Storage Scalar>
Result<Scalar> CheckpointedRun::align(TargetRef<Scalar> target, const std::optional<Block<Scalar>>& start, Index rank,
                                      const AlignOptions& options, const OnStep<Scalar>& on_step) const {
  if (given_.file.empty())
    return start ? itspace::align<Scalar>(target, *start, options, on_step)
                 : itspace::align<Scalar>(target, rank, options, on_step);
  const Checkpoints<Scalar> checkpoints{
      given_.every, [&](const Checkpoint<Scalar>& checkpoint) {
        place_.at_file([&] { io::save_checkpoint<Scalar>(given_.file, checkpoint, run_); });
      }};
  if (found_ == precision_text<Scalar>) return resume<Scalar>(target, load<Scalar>(), options, checkpoints, on_step);
  return start ? align_with_checkpoints<Scalar>(target, *start, options, checkpoints, on_step)
               : align_with_checkpoints<Scalar>(target, rank, options, checkpoints, on_step);
}

template Result<float> CheckpointedRun::align(TargetRef<float>, const std::optional<Block<float>>&, Index,
                                              const AlignOptions&, const OnStep<float>&) const;
template Result<double> CheckpointedRun::align(TargetRef<double>, const std::optional<Block<double>>&, Index,
                                               const AlignOptions&, const OnStep<double>&) const;

}  // namespace itspace::cli
