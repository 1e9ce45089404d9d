// SPDX-License-Identifier: Apache-2.0
#include "checkpoints.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <array>

namespace itspace::cli {

namespace {

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
  constexpr std::array<const char*, 4> precisions{"auto", "float32", "mixed", "float64"};
  return io::run_text({.target = description,
                       .ridge = target.ridge,
                       .weighted = !target.weights.empty(),
                       .rank = rank,
                       .options = options,
                       .precision = precisions[static_cast<std::size_t>(target.precision)],
                       .every = given.every});
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
  if (head.run != run_)
    misuse(fmt::format("{} is the checkpoint of another run: {}", quoted(given_.file),
                       io::difference_of_runs(head.run, run_)),
           "resume with the target and the options of that run; or leave out --resume to begin again, from its result "
           "where that is given as --start");
  if (!quiet) print_note(fmt::format("the run goes on from its checkpoint in {}", quoted(given_.file)));
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
