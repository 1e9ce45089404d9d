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
#include "resolution.hpp"
#include "text.hpp"

#include <itspace/mpi/align.hpp>
#include <itspace/mpi/targets.hpp>
#include <itspace/threads.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>

namespace itspace::cli {

namespace {

// What all ranks must see alike. The values of three rows stand for the rest: nobody reads all of it.
struct FileSeen {
  std::string shape, values;
};

FileSeen seen(const io::Array& array) {
  FileSeen file{fmt::format("{} {}", array.info().type, shape_text(array.rows(), array.cols())), ""};
  Block<double> row(1, array.cols());
  for (const Index i : {Index(0), array.rows() / 2, array.rows() - 1}) {
    if (i < 0 || i >= array.rows()) continue;
    array.read_rows<double>(i, row);
    file.values += fmt::format("{:016x} ", mpi::fingerprint<double>(row));
  }
  return file;
}

void check_same_file(const mpi::Communicator& ranks, const Request& request, const io::Array& array) {
  const FileSeen here = seen(array);
  const FileSeen first{ranks.broadcast(here.shape), ranks.broadcast(here.values)};
  constexpr auto remedy = "give all ranks the same file, by a path that leads to it on every machine";
  ranks.agree([&] {
    if (here.shape != first.shape)
      throw std::runtime_error(fmt::format("{} {} is {}, but on rank 0 it is {}\n{}", request.role,
                                           quoted(request.path), here.shape, first.shape, remedy));
    if (here.values != first.values)
      throw std::runtime_error(fmt::format("{} {} has other values than on rank 0, though the same shape\n{}",
                                           request.role, quoted(request.path), remedy));
  });
}

struct Verdict {
  Kind kind;
  std::string why;
};

// Whether a square array is symmetric is not asked: it would take all of it in one place.
Verdict kind_of(const TargetArguments& given, const io::Array& array) {
  const Request& request = given.request;
  const Index rows = array.rows(), cols = array.cols();
  const auto path = quoted(request.path);
  if (rows == 0 || cols == 0)
    misuse(fmt::format("{} is {}, which holds no values", path, shape_text(rows, cols)),
           "give an array with at least one row and one column");
  Verdict verdict{request.as, "as " + request.as_option + " says"};
  if (request.as == Kind::automatic && array.info().key == "sigma") verdict = {Kind::covariance, "named sigma"};
  if (request.as == Kind::automatic && verdict.kind == Kind::automatic) {
    if (rows == cols)
      misuse(fmt::format("{} is {}: a covariance or features, and no rank reads all of it to tell", path,
                         shape_text(rows, cols)),
             fmt::format("say what it is with {} covariance or {} features", request.as_option, request.as_option));
    verdict = {Kind::features, "not square: one sample per row"};
  }
  if (verdict.kind == Kind::factor)
    misuse(fmt::format("{} is taken for a factor, which is not spread over ranks", path),
           "leave out mpirun: a factor is small");
  if (verdict.kind == Kind::features && rows < 2)
    misuse(fmt::format("{} holds 1 sample ({}), but a covariance needs at least 2", path, shape_text(rows, cols)),
           "give features with one sample per row");
  if (verdict.kind == Kind::covariance && rows != cols)
    misuse(fmt::format("{} is {}, but a covariance is square", path, shape_text(rows, cols)),
           fmt::format("give a d x d matrix, or samples in rows with {} features", request.as_option));
  if (verdict.kind == Kind::covariance && !given.trust)
    misuse(fmt::format("{}: no rank reads all of a covariance under mpirun, so nobody checks that it is symmetric and "
                       "positive semidefinite",
                       path),
           "add --trust for a matrix that is known to be a covariance");
  return verdict;
}

// The rows of this rank: where the file holds them as they are needed, they stay in the file.
template <Storage Data>
HeldBlock<Data> own_rows(const io::Array& array, Index first, Index count) {
  if (array.is_borrowed<Data>()) {
    const auto whole = std::make_shared<const HeldBlock<Data>>(array.as<Data>());
    const auto view = whole->view();
    return HeldBlock<Data>(whole,
                           borrow(view.data() + first * view.outerStride(), count, view.cols(), view.outerStride()));
  }
  Block<Data> rows(count, array.cols());
  if (count > 0) array.read_rows<Data>(first, rows);
  return HeldBlock<Data>(std::move(rows));
}

template <Storage Data>
void check_finite_rows(const HeldBlock<Data>& rows, Index first, const std::filesystem::path& path) {
  const auto values = rows.view();
  for (Index i = 0; i < values.rows(); ++i) {
    if (values.row(i).allFinite()) continue;
    Index j = 0;
    while (std::isfinite(values(i, j))) ++j;
    misuse(fmt::format("{}[{}, {}] is {}", quoted(path), first + i, j, values(i, j)),
           "all values must be finite; drop or impute the rows that have others");
  }
}

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
      : given_(given), ranks_(ranks), checkpoint_place_(ranks) {}

  int run() {
    ranks_.agree([&] {
      if (is_first()) check_files_of_job();
      array_ = open(given_.target.request);
    });
    check_same_file(ranks_, given_.target.request, array_);
    ranks_.agree([&] {
      verdict_ = kind_of(given_.target, array_);
      check_rank(given_.rank, array_.cols(), given_.target.request.path);
    });
    agree_on_threads(ranks_);
    watch_for_interrupt();
    return with_data_type(given_.target.precision, {&array_}, [&]<class Data>() { return run_on<Data>(); });
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

  template <Storage Data>
  int run_on() {
    const Index rows = array_.rows(), first = ranks_.first_row(rows), count = ranks_.own_rows(rows);
    std::optional<HeldBlock<Data>> own;
    ranks_.agree([&] {
      own.emplace(own_rows<Data>(array_, first, count));
      check_finite_rows<Data>(*own, first, given_.target.request.path);
      if (is_first() && !given_.start.path.empty()) load_start();
    });
    note();
    checkpointed_.emplace(given_.checkpoint,
                          run_text(given_.options, given_.rank, given_.target, given_.checkpoint, description()),
                          given_.quiet, checkpoint_place_);
    const Precision precision = checkpointed_->precision(given_.target.precision);
    return in_enough_precision<Data>(precision, given_.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
      if (verdict_.kind == Kind::features)
        return with_ridge<Scalar, Data>(mpi::FeatureRows<Scalar, Data>(ranks_, *own), watch);
      return with_ridge<Scalar, Data>(mpi::DenseRows<Scalar, Data>(ranks_, *own), watch);
    });
  }

  // A start is read whole, by rank 0.
  void load_start() {
    const Checks checks{.trust = given_.target.trust, .quiet = given_.quiet};
    const FactorShape shape{array_.cols(), given_.rank};
    io::Array start = open(given_.start);
    if (holds_float32(start)) {
      start_.emplace(load<float>(given_.start, std::move(start), checks, shape));
    } else {
      start_.emplace(load<double>(given_.start, std::move(start), checks, shape));
    }
    std::visit(
        [&](const auto& input) {
          if (input.dim() != array_.cols())
            misuse(
                fmt::format("target {} has dimension {}, but start {} has dimension {}",
                            quoted(given_.target.request.path), array_.cols(), quoted(given_.start.path), input.dim()),
                "both must have the same coordinates");
        },
        *start_);
  }

  // In the words of one process, so that it can go on with a checkpoint of many, and they with one of its.
  std::string description() const {
    return verdict_.kind == Kind::features
               ? fmt::format("features, {} samples of dimension {}", array_.rows(), array_.cols())
               : fmt::format("covariance of dimension {}", array_.cols());
  }

  void note() const {
    if (given_.quiet) return;
    print_note(fmt::format("target {}: {} ({}), spread over {} ranks", quoted(given_.target.request.path),
                           description(), verdict_.why, ranks_.size()));
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
    Block<Scalar> start(array_.cols(), given_.rank);
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
      watch.see(step);  // the same on all ranks
      if (watch.given_up()) return StepAction::stop;
      if (!std::exchange(began, true) && talkative()) print_line(report.heading());
      if (talkative()) print_line(report.row(step));
      return interrupt_asked() ? StepAction::stop : StepAction::proceed;
    };
    Result<Scalar> result = checkpointed_->align<Scalar>(TargetRef<Scalar>(target), start_of_all<Scalar>(), given_.rank,
                                                         given_.options, mpi::agreed<Scalar>(ranks_, on_step));
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
      Json json{
          {"command", "align"},
          {"ranks", ranks_.size()},
          {"target",
           {{"path", given_.target.request.path.string()}, {"taken_for", name(verdict_.kind)}, {"why", verdict_.why}}}};
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
  Verdict verdict_{};
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
