// SPDX-License-Identifier: Apache-2.0
//
// itspace align on the ranks of a job: each reads its share of the target, all make the same steps. What can fail on
// one of them alone (files, values) is agreed upon, so that all end with one message; a rank that is lost ends the job.
#include "ranks.hpp"

#include "align_report.hpp"
#include "checkpoints.hpp"
#include "commands.hpp"
#include "files.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "ranks_input.hpp"
#include "resolution.hpp"
#include "streamed_target.hpp"
#include "text.hpp"

#include <itspace/mpi/align.hpp>
#include <itspace/mpi/streamed.hpp>
#include <itspace/mpi/targets.hpp>
#include <itspace/threads.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>

namespace itspace::cli {

namespace {

// Bits depend on the number of threads, and a launcher may give its ranks different ones.
void agree_on_threads(const mpi::Communicator& ranks) {
  std::vector<double> counts(static_cast<std::size_t>(ranks.size()), 0.0);
  counts[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(threads());
  ranks.sum(counts);
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  if (*least != *most) set_threads(static_cast<Index>(*least));
}

// Checkpoints are files of rank 0, which the others need not see.
class CheckpointsOfFirst : public CheckpointPlace {
 public:
  explicit CheckpointsOfFirst(const mpi::Communicator& ranks) : ranks_(ranks) {}

  void at_file(const std::function<void()>& work) const override {
    ranks_.agree([&] {
      if (ranks_.rank() == 0) work();
    });
  }
  std::string told(std::string text) const override { return ranks_.broadcast(std::move(text)); }
  void tell(Block<float>& block) const override { tell_all(block); }
  void tell(Block<double>& block) const override { tell_all(block); }

 private:
  template <Storage Scalar>
  void tell_all(Block<Scalar>& block) const {
    std::array<double, 2> shape{};
    if (ranks_.rank() == 0) shape = {static_cast<double>(block.rows()), static_cast<double>(block.cols())};
    ranks_.sum(shape);
    block.resize(static_cast<Index>(shape[0]), static_cast<Index>(shape[1]));
    ranks_.broadcast<Scalar>(block);
  }

  const mpi::Communicator& ranks_;
};

using StartInput = std::variant<Input<float>, Input<double>>;

class SpreadRun {
 public:
  SpreadRun(const SpreadAlign& given, const mpi::Communicator& ranks)
      : given_(given), ranks_(ranks), progress_(!given.quiet && ranks.rank() == 0), checkpoint_place_(ranks) {}

  int run() {
    const bool streamed = ranks_.any(asks_for_stream(given_.target.names, given_.memory));
    ranks_.agree([&] {
      if (is_first()) check_files_of_job();
      if (streamed) {
        files_.emplace(given_.target.names);
      } else {
        array_ = open(given_.target.request);
      }
    });
    return streamed ? run_streamed() : run_in_memory();
  }

 private:
  bool is_first() const { return ranks_.rank() == 0; }
  bool talkative() const { return !given_.quiet && !given_.json; }

  void check_files_of_job() const {
    NamedFiles inputs = given_.target.files();
    inputs.push_back({"--start", given_.start.path});
    const NamedFiles outputs{
        {"--out", given_.out}, {"--trace", given_.trace}, {"--checkpoint", given_.checkpoint.file}};
    check_files(inputs, outputs);
    for (const NamedFile& output : outputs)
      if (!output.path.empty()) io::check_writable(output.path);
  }

  // What is read is the same for all: agree on the rest, and on the start.
  void begin(std::string target_note, std::string description) {
    target_note_ = std::move(target_note);
    ranks_.agree([&] {
      check_rank(given_.rank, dim_, given_.target.request.path);
      if (is_first() && !given_.start.path.empty()) load_start();
    });
    agree_on_threads(ranks_);
    watch_for_interrupt();
    note();
    checkpointed_.emplace(given_.checkpoint,
                          run_text(given_.options, given_.rank, given_.target, given_.checkpoint, description),
                          given_.quiet, checkpoint_place_);
  }

  int run_in_memory() {
    check_same_file(ranks_, given_.target.request, array_);
    dim_ = array_.cols();
    Verdict verdict{};
    ranks_.agree([&] { verdict = kind_of(given_.target, array_); });
    // In the words of one process, so that it can go on with a checkpoint of many, and they with one of its.
    const std::string description = verdict.kind == Kind::features
                                        ? fmt::format("features, {} samples of dimension {}", array_.rows(), dim_)
                                        : fmt::format("covariance of dimension {}", dim_);
    target_json_ = {
        {"path", given_.target.request.path.string()}, {"taken_for", name(verdict.kind)}, {"why", verdict.why}};
    return with_data_type(given_.target.precision, {&array_}, [&]<class Data>() {
      std::optional<HeldBlock<Data>> own;
      ranks_.agree([&] { own.emplace(own_rows<Data>(ranks_, array_, given_.target.request.path)); });
      begin(fmt::format("{}: {} ({})", quoted(given_.target.request.path), description, verdict.why), description);
      const Precision precision = checkpointed_->precision(given_.target.precision);
      return in_enough_precision<Data>(precision, given_.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
        if (verdict.kind == Kind::features)
          return with_ridge<Scalar, Data>(mpi::FeatureRows<Scalar, Data>(ranks_, *own), watch);
        return with_ridge<Scalar, Data>(mpi::DenseRows<Scalar, Data>(ranks_, *own), watch);
      });
    });
  }

  int run_streamed() {
    check_same_files(ranks_, given_.target.request, *files_);
    dim_ = files_->cols();
    ranks_.agree([&] { check_streamed(given_.target, *files_); });
    target_json_ = stream_json(given_.target, *files_);
    const bool narrow = files_->type() == "float32" || files_->type() == "float16";
    return with_data_type(given_.target.precision, narrow, [&]<class Data>() {
      begin(fmt::format("{} ({})", description(*files_), files_and_size(*files_)),
            run_description(*files_, given_.memory));
      const Precision precision = checkpointed_->precision(given_.target.precision);
      return in_enough_precision<Data>(precision, given_.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
        return stream_in<Scalar, Data>(watch);
      });
    });
  }

  template <Storage Scalar, Storage Data>
  int stream_in(ResolutionWatch& watch) {
    using Streamed = StreamedFeatures<Scalar, Data>;
    std::uint64_t memory = 0;
    ranks_.agree([&] {
      memory = memory_for_chunks(given_.memory, *files_, {given_.options, given_.rank, sizeof(Scalar), true},
                                 Streamed::least_memory(dim_));
    });
    const Index rows = files_->rows(), own = ranks_.own_rows(rows);
    const std::uint64_t row_bytes = files_->bytes() / static_cast<std::uint64_t>(std::max<Index>(1, rows));
    const Index passes = given_.options.steps + (given_.start.path.empty() ? 2 : 1);
    SweepProgress sweeps(progress_, row_bytes * static_cast<std::uint64_t>(own), passes);
    auto source =
        std::make_shared<WatchedRows<Data>>(files_->source<Data>(ranks_.first_row(rows), own), row_bytes, sweeps);
    const mpi::StreamedRows<Scalar, Data> target(ranks_, std::move(source), memory);
    const int outcome = with_ridge<Scalar, Data>(target, watch);
    if (!given_.quiet) print_note(fmt::format("rank 0 {}", sweeps.summary(target.sweeps())));
    return outcome;
  }

  // A start is read whole, by rank 0.
  void load_start() {
    const Checks checks{.trust = given_.target.trust, .quiet = given_.quiet};
    const FactorShape shape{dim_, given_.rank};
    io::Array start = open(given_.start);
    if (holds_float32(start)) {
      start_.emplace(load<float>(given_.start, std::move(start), checks, shape));
    } else {
      start_.emplace(load<double>(given_.start, std::move(start), checks, shape));
    }
    std::visit(
        [&](const auto& input) {
          if (input.dim() != dim_)
            misuse(fmt::format("target {} has dimension {}, but start {} has dimension {}",
                               quoted(given_.target.request.path), dim_, quoted(given_.start.path), input.dim()),
                   "both must have the same coordinates");
        },
        *start_);
  }

  void note() const {
    if (given_.quiet) return;
    print_note(fmt::format("target {}, spread over {} ranks", target_note_, ranks_.size()));
    if (given_.start.path.empty()) print_note(fmt::format("start: random, seed {}", given_.options.seed));
    if (start_) std::visit([](const auto& input) { print_note(input.note()); }, *start_);
  }

  template <Storage Scalar, Storage Data, class Target>
  int with_ridge(Target target, ResolutionWatch& watch) {
    if (given_.target.ridge > 0)
      return report<Scalar, Data>(ShiftedTarget<Scalar>(std::move(target), given_.target.ridge), watch);
    return report<Scalar, Data>(target, watch);
  }

  // As rank 0 has read it; none where it is random.
  template <Storage Scalar>
  std::optional<Block<Scalar>> start_of_all() const {
    if (given_.start.path.empty()) return std::nullopt;
    Block<Scalar> start(dim_, given_.rank);
    ranks_.agree([&] {
      if (is_first())
        start = std::visit([&](const auto& input) { return start_of<Scalar>(input, given_.rank); }, *start_);
    });
    ranks_.broadcast<Scalar>(start);
    return start;
  }

  template <Storage Scalar, Storage Data, class Target>
  int report(const Target& target, ResolutionWatch& watch) {
    AlignReport report{std::nullopt};
    bool began = false;  // a resumed run does not begin with row 0
    const OnStep<Scalar> on_step = [&](const Step& step, const ConstBlockView<Scalar>&) {
      progress_.clear();
      watch.see(step);  // the same on all ranks
      if (watch.given_up()) return StepAction::stop;
      if (!std::exchange(began, true) && talkative()) print_line(report.heading());
      if (talkative()) print_line(report.row(step));
      return interrupt_asked() ? StepAction::stop : StepAction::proceed;
    };
    Result<Scalar> result = checkpointed_->align<Scalar>(TargetRef<Scalar>(target), start_of_all<Scalar>(), given_.rank,
                                                         given_.options, mpi::agreed<Scalar>(ranks_, on_step));
    watch.see_end(result.status());
    if (watch.given_up()) return exit_code::success;
    name_precision<Scalar, Data>(result.trace);
    ranks_.agree([&] {
      if (is_first()) save_run<Scalar>(given_.out, given_.trace, result);
    });
    return tell(report, result.trace);
  }

  int tell(const AlignReport& report, const Trace& trace) const {
    if (talkative()) {
      std::string text = report.summary(trace) + fmt::format("\nThe factor ({}, iterate {} of {}) is in {}",
                                                             shape_text(trace.dim, trace.rank), trace.best,
                                                             trace.steps.size() - 1, quoted(given_.out));
      if (!given_.trace.empty()) text += fmt::format(", the trace in {}", quoted(given_.trace));
      print_line("\n" + text + ".");
    }
    if (given_.json) {
      Json json{{"command", "align"}, {"ranks", ranks_.size()}, {"target", target_json_}};
      json.update(align_json(trace, std::nullopt));
      json["out"] = given_.out.string();
      print_json(json);
    }
    if (failed(trace.status)) {
      print_error(fmt::format("the run ended as {} after {} of {} steps\nthe best iterate is in {}", name(trace.status),
                              trace.steps.size() - 1, given_.options.steps, quoted(given_.out)));
      return exit_code::outcome;
    }
    if (trace.status != Status::stopped) return exit_code::success;
    print_note(fmt::format("stopped by an interrupt; the best iterate is in {}", quoted(given_.out)));
    constexpr int by_sigterm = 143;  // the signal came to another rank
    return interrupt_exit_code(by_sigterm);
  }

  const SpreadAlign& given_;
  const mpi::Communicator& ranks_;
  io::Array array_;
  std::optional<io::RowFiles> files_;  // where they are streamed
  Index dim_ = 0;
  std::string target_note_;
  Json target_json_;
  Progress progress_;
  std::optional<StartInput> start_;  // of rank 0
  CheckpointsOfFirst checkpoint_place_;
  std::optional<CheckpointedRun> checkpointed_;
};

// Whether the launcher has begun to end this job: another rank has spoken, and the signal is here. A signal that was
// here before may be the launcher's or the user's; the launcher's is followed by one that nothing outlives.
bool is_being_ended(std::chrono::seconds patience) {
  const bool signalled_before = interrupt_asked();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    if (!signalled_before && interrupt_asked()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The others may have met the same, and one message is enough: the lowest rank that is there speaks first.
[[noreturn]] void leave(const mpi::Communicator& ranks, const std::string& what, bool all_meet_it) {
  constexpr std::chrono::seconds later[] = {std::chrono::seconds(0), std::chrono::seconds(3), std::chrono::seconds(6)};
  if (!all_meet_it || ranks.rank() == 0 || !is_being_ended(later[std::min(ranks.rank(), 2)])) {
    speak_up();
    print_error(fmt::format("on rank {} of {}: {}\nthe job is ended, and no result was written", ranks.rank(),
                            ranks.size(), what));
  }
  mpi::abort_job(exit_code::environment);
}

}  // namespace

int align_on_ranks(const SpreadAlign& given) {
  if (!given.of_one_process.empty())
    misuse(fmt::format("{} is for one process, and mpirun started {}", joined(given.of_one_process, ", "), job().size),
           fmt::format("leave out {}, or mpirun", joined(given.of_one_process, ", ")));
  check_not_negative("--rank-timeout", given.rank_timeout);
  const mpi::Environment environment;
  mpi::Communicator ranks = mpi::Communicator::world();
  ranks.set_time_limit(given.rank_timeout);
  try {
    return SpreadRun(given, ranks).run();
  } catch (const mpi::Agreed&) {
    throw;
  } catch (const mpi::Lost& error) {
    leave(ranks, error.what(), true);
  } catch (const std::invalid_argument&) {
    throw;  // of the arguments, which are the same on all ranks
  } catch (const std::bad_alloc&) {
    leave(ranks, "out of memory", false);
  } catch (const std::exception& error) {
    leave(ranks, error.what(), false);
  }
}

}  // namespace itspace::cli
