// SPDX-License-Identifier: Apache-2.0
//
// itspace follow: a stream of batches, a few steps for each, one line for each as it goes.
#include "commands.hpp"
#include "follow_arguments.hpp"
#include "interrupt.hpp"
#include "predicted.hpp"
#include "text.hpp"

#include <itspace/online_file.hpp>
#include <itspace/row_stream.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace itspace::cli {

namespace {

constexpr Index rows_from_input = 256;  // a batch of standard input

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
    line["resolution"] = trace.steps[static_cast<std::size_t>(trace.best)].resolution;
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
  Follower(const FollowArguments& given, OnlineAligner<Scalar> aligner) : given_(given), aligner_(std::move(aligner)) {}

  int run(std::optional<io::RowReader> first, std::optional<FollowGate> gate) {
    if (gate) gate_.emplace(given_.gate, std::move(*gate), aligner_.options().rank, first->cols());
    try {
      for (std::size_t i = 0; i < given_.files.size(); ++i) {
        if (interrupt_asked()) break;
        if (!first) first.emplace(given_.files[i]);
        std::optional<PredictedFile> predicted;
        if (!given_.predicted.empty())
          predicted.emplace(given_.predicted[i], first->rows(), *aligner_.options().stream.balance);
        std::optional<AnswersFile> answers;
        if (!given_.gate.predictions.empty()) answers.emplace(given_.gate.predictions[i], first->rows());
        follow(given_.files[i], *first, predicted, answers);
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
  void follow(const std::string& file, io::RowReader& in, const std::optional<PredictedFile>& predicted,
              const std::optional<AnswersFile>& answers) {
    const bool stream = is_stream(file);
    if (in.info().shape.size() < 2 && !given_.quiet)
      print_note(fmt::format("{}: {}", stream ? "standard input" : quoted(std::filesystem::path(file)), as_one_column));
    const Index rows = given_.batch.value_or(stream ? rows_from_input : std::max<Index>(in.rows(), 1));
    if (in.rows() == 0) observe(file, Block<Scalar>(0, in.cols()), {}, {});
    Block<Scalar> batch(std::min(rows, std::max<Index>(in.rows(), 1)), in.cols());
    Index first = 0;
    while (const Index count = read_batch<Scalar>(in, stream, batch)) {
      observe(fmt::format("rows {} to {} of {}", first, first + count - 1,
                          stream ? "standard input" : quoted(std::filesystem::path(file))),
              batch.topRows(count), predicted ? predicted->rows(first, count) : Predicted(),
              answers ? std::optional(answers->rows(first, count)) : std::nullopt);
      first += count;
      if (interrupt_asked()) return;
    }
  }

  void observe(const std::string& where, const ConstBlockView<Scalar>& batch, const Predicted& predicted,
               const std::optional<GateAnswers>& answers) {
    Observation seen;
    try {
      if (answers) gate_->gate().check(*answers);  // before anything is changed
      seen = aligner_.observe(batch, {}, predicted);
    } catch (const std::invalid_argument& error) {
      misuse(fmt::format("{}: {}", where, error.what()), "mend or leave out that batch, and go on from the one before");
    }
    if (!seen.warning.empty()) print_note(fmt::format("warning: {}: {}", where, seen.warning));
    if (seen.trace && failed(seen.trace->status)) failed_ = true;
    Json line = line_of(seen, aligner_.options().stream.balance);
    if (gate_) line["gate"] = gate_->observe(aligner_, answers);
    print_line(line.dump());
  }

  void save() {
    if (!given_.state.empty()) {
      const Uninterrupted whole;
      io::save_online<Scalar>(given_.state, aligner_, gate_ ? std::optional(gate_->gate()) : std::nullopt);
    }
    if (gate_) gate_->save_maps(aligner_);
  }

  const FollowArguments& given_;
  OnlineAligner<Scalar> aligner_;
  std::optional<GatedStream<Scalar>> gate_;
  bool failed_ = false;
};

int run(const FollowArguments& given) {
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
  std::optional<FollowGate> gate =
      gate_of(given.gate, goes_on ? io::load_follow_gate(given.state) : std::nullopt, given.source_labels, given.state);
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
  if (narrow) return Follower<float>(given, std::move(*narrow)).run(std::move(first), std::move(gate));
  return Follower<double>(given, std::move(*wide)).run(std::move(first), std::move(gate));
}

}  // namespace

Command add_follow(CLI::App& program) {
  CLI::App* app = program.add_subcommand("follow", "follow a stream of feature batches, a few steps for each");
  auto given = std::make_shared<FollowArguments>();
  add_follow_options(*app, *given);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
