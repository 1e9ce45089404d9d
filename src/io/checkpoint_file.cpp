// SPDX-License-Identifier: Apache-2.0
#include <itspace/checkpoint_file.hpp>

#include <algorithm>
#include <optional>

#include "state_file.hpp"

namespace itspace::io {
namespace {

constexpr StateKind kind{"checkpoint of a run", checkpoint_format, "itspace align --checkpoint"};
constexpr std::string_view checkpoint_remedy = "the file is damaged: begin the run again, or use an older copy";

// Takes the first line off. A text has none where it has ended.
std::optional<std::string_view> next_line(std::string_view& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string run_text(const CheckpointRun& run) {
  const AlignOptions& options = run.options;
  const bool searches = options.step_size.kind() == StepSize::Kind::line_search;
  return fmt::format(
      "target={}, ridge {}, {}\nrank={}\nsteps={}\nsolver={}\nalpha={}\nroute={}\ngram-regularization={}\n"
      "tolerance={}\ncompletion={}\nprobe={}\nguard={}\nevaluate-last={}\nseed={}\nprecision={}\n"
      "checkpoint-every={}\n",
      run.target, run.ridge, run.weighted ? "weights" : "no weights", run.rank, options.steps, name(options.solver),
      searches ? "line-search" : fmt::format("{}", options.step_size.resolve(options.steps)), name(options.route),
      options.gram_regularization, options.tolerance, options.completion, options.probe,
      options.guard ? fmt::format("{}", *options.guard) : "default", options.evaluate_last, options.seed, run.precision,
      run.every);
}

std::string difference_of_runs(std::string_view there, std::string_view here) {
  while (!there.empty() || !here.empty()) {
    const auto of_there = next_line(there), of_here = next_line(here);
    if (of_there != of_here) {
      return fmt::format("there {}, here {}", of_there.value_or("nothing"), of_here.value_or("nothing"));
    }
  }
  return "";
}

template <Storage Scalar>
void save_checkpoint(const std::filesystem::path& path, const Checkpoint<Scalar>& checkpoint, std::string_view run) {
  AtomicFile file(path);
  StateWriter out(file, path);
  out.text("format", checkpoint_format);
  out.text("precision", precision_name<Scalar>());
  out.text("run", run);
  out.bytes("trace", to_json(checkpoint.trace));
  out.matrix<Scalar>("current", checkpoint.current);
  out.matrix<Scalar>("best", checkpoint.best);
  out.finish();
  file.commit();
}

CheckpointHead load_checkpoint_head(const std::filesystem::path& path) {
  check_format(path, kind);
  CheckpointHead head{read_text(path, "precision"), read_text(path, "run")};
  if (head.precision != precision_name<float>() && head.precision != precision_name<double>()) {
    fail("{}: its precision is {}, float32 or float64 was expected; {}", in_quotes(path), in_quotes(head.precision),
         checkpoint_remedy);
  }
  return head;
}

template <Storage Scalar>
Checkpoint<Scalar> load_checkpoint(const std::filesystem::path& path) {
  const CheckpointHead head = load_checkpoint_head(path);
  if (head.precision != precision_name<Scalar>()) {
    fail("{}: is the checkpoint of a run in {}, and this one is in {}; resume it in its own precision", in_quotes(path),
         head.precision, precision_name<Scalar>());
  }
  const StateReader in(path, checkpoint_remedy);
  Checkpoint<Scalar> checkpoint{in.template matrix<Scalar>("current"), in.template matrix<Scalar>("best"), {}};
  in.require_shape("best", checkpoint.best.rows(), checkpoint.best.cols(), checkpoint.current.rows(),
                   checkpoint.current.cols());
  try {
    checkpoint.trace = trace_from_json(in.bytes("trace"));
  } catch (const std::runtime_error& error) {
    fail("array 'trace' of {}: {}; {}", in_quotes(path), error.what(), checkpoint_remedy);
  }
  if (checkpoint.trace.steps.empty()) {
    fail("array 'trace' of {}: has no steps; {}", in_quotes(path), checkpoint_remedy);
  }
  return checkpoint;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                 \
  template void save_checkpoint<Scalar>(const std::filesystem::path&, const Checkpoint<Scalar>&, std::string_view); \
  template Checkpoint<Scalar> load_checkpoint<Scalar>(const std::filesystem::path&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::io
