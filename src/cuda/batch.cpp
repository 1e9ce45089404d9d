// SPDX-License-Identifier: Apache-2.0
//
// A batch on a device: pieces of it in one launch each, whose records the host writes while the next piece is under
// way; then, on the host, what is left.
#include "cuda/batch.hpp"

#include <itspace/cuda/batch.hpp>
#include <itspace/random.hpp>
#include <itspace/threads.hpp>

#include "core/polar.hpp"
#include "cuda/fused_record.hpp"
#include "cuda/views.hpp"
#include "kernels/pool.hpp"
#include "targets/batch_parts.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace itspace::cuda {
namespace {

// Problems of one launch: enough for some rounds of all multiprocessors, and few enough that the host has records to
// write while the next are under way. Logs of long runs are kept within bounds.
constexpr Index most_of_piece = 4096, most_log_bytes = Index(32) << 20;
// Problems that one thread records at a time, and bytes that go through the host at a time.
constexpr Index recorded_at_once = 64, most_host_bytes = Index(256) << 20;

template <Storage Scalar>
class DeviceBatch {
 public:
  // Without starts: null.
  DeviceBatch(const Device& device, const MatrixStack<Scalar>& targets, const MatrixStack<Scalar>* starts, Index rank,
              const AlignOptions& options, const BatchOptions& batch)
      : device_(device), targets_(targets), starts_(starts), options_(options), batch_(batch) {
    result_.dim = targets.cols;
    result_.rank = rank;
    result_.factors = Block<Scalar>(device, targets.count * targets.cols, rank);
    // Once it has said so it is not asked again.
    if (batch.should_stop)
      batch_.should_stop = [this, ask = batch.should_stop] { return stopped_ = stopped_ || ask(); };
  }

  BatchResult<Scalar> run() {
    const UseDevice use(device_.ordinal());
    if (targets_.count > 0 && is_for_one_launch()) {
      solve_on_device();
    } else {
      make_room();
    }
    solve_the_rest();
    return std::move(result_);
  }

 private:
  // For outcomes: some memory that is touched for the first time, which takes as long as a launch of many problems.
  void make_room() {
    make_outcomes(targets_.count, targets_.cols, result_.rank, options_.steps, batch_.keep_traces, result_);
    result_.on_device.resize(static_cast<std::size_t>(targets_.count));
  }

  bool is_stopped() const { return batch_.should_stop && batch_.should_stop(); }

  bool is_for_one_launch() const {
    constexpr Index small = 1024;
    const Index dim = result_.dim, rank = result_.rank;
    return batch_.targets == StackOf::covariances && dim <= small && is_for_fused(options_, rank) &&
           kernels::takes_batch<Scalar>(static_cast<int>(dim), static_cast<int>(rank));
  }

  // What is known of a piece, on the device or in pinned memory.
  struct Log {
    kernels::FusedRow* rows;
    double* traces;
  };
  Index rows_of_each() const { return options_.steps + 1; }
  Index log_bytes(Index count) const {
    return count *
           (rows_of_each() * static_cast<Index>(sizeof(kernels::FusedRow)) + static_cast<Index>(sizeof(double)));
  }
  Log log_at(void* memory, Index count) const {
    auto* rows = static_cast<kernels::FusedRow*>(memory);
    return {rows, reinterpret_cast<double*>(rows + count * rows_of_each())};
  }

  void solve_on_device() {
    DeviceState& state = device_.state();
    const Index of_one = log_bytes(1), piece = std::clamp<Index>(most_log_bytes / of_one, 1, most_of_piece);
    const Index doubles = log_bytes(piece) / static_cast<Index>(sizeof(double));
    for (const OddPolynomial& p : polar_polynomials()) polynomials_.push_back({p.a, p.b, p.c, p.lowest});
    Block<Scalar> omega;
    if (starts_ == nullptr) omega = random_factor();
    void* const there = state.scratch<double>(Scratch::fused, doubles);
    double* const here = state.results(2 * doubles);

    Index first = 0, before = 0;  // problems of the piece that is launched, and of the one before it
    for (Index turn = 0; before < targets_.count; ++turn) {
      Index count = 0;
      if (first < targets_.count && !is_stopped()) {
        count = std::min(piece, targets_.count - first);
        launch(first, count, omega, there, here + (turn & 1) * doubles);
      }
      if (turn == 0) make_room();  // while the device is at the first piece
      if (first > before)
        record_piece(before, log_at(here + ((turn & 1) ^ 1) * doubles, first - before), first - before);
      before = first;
      if (count == 0) break;
      state.synchronize();
      first += count;
    }
  }

  // Omega of make_random_product, the same for all.
  Block<Scalar> random_factor() {
    Space<Scalar> space(device_);
    Block<Scalar> omega = space.make_block(result_.dim, result_.rank);
    space.fill_normal(Random(options_.seed), omega);
    space.scale_columns(omega, SmallVector::Constant(result_.rank, 1 / std::sqrt(static_cast<double>(result_.dim))));
    return omega;
  }

  void launch(Index first, Index count, const Block<Scalar>& omega, void* there, double* here) {
    DeviceState& state = device_.state();
    const bool random = starts_ == nullptr;
    const Index dim = result_.dim, rank = result_.rank;
    const kernels::BatchJob<Scalar> job{targets_.data + first * dim * dim,
                                        random ? omega.data() : starts_->data + first * dim * rank,
                                        random,
                                        result_.factors.data() + first * dim * rank,
                                        static_cast<int>(count),
                                        static_cast<int>(dim),
                                        static_cast<int>(rank),
                                        static_cast<int>(options_.steps),
                                        alpha(),
                                        polynomials_.data(),
                                        static_cast<int>(polynomials_.size())};
    const Log log = log_at(there, count);
    kernels::launch_batch<Scalar>(state.stream(), job, {log.rows, log.traces});
    check(cudaMemcpyAsync(here, there, static_cast<std::size_t>(log_bytes(count)), cudaMemcpyDeviceToHost,
                          state.stream()),
          "reading what is known of a batch");
  }

  void record_piece(Index first, const Log& log, Index count) {
    Recorder blank(result_.dim, result_.rank, precision_name<Scalar>(), alpha(), 0, Solver::paper, begin_);
    blank.expect_at_once(rows_of_each());
    const Index parts = (count + recorded_at_once - 1) / recorded_at_once;
    itspace::kernels::run_parts(parts, threads(), [&](Index part) {
      try {
        Recorder recorder = blank;
        for (Index i = part * recorded_at_once; i < std::min(count, (part + 1) * recorded_at_once); ++i) {
          recorder = blank;  // and the room for its rows is kept
          record(first + i, {log.rows + i * rows_of_each(), static_cast<std::size_t>(rows_of_each())}, log.traces[i],
                 recorder);
        }
      } catch (const std::bad_alloc&) {  // those are among the rest
      }
    });
  }

  // Nothing where the device could not certify the run. Rows behind the first that is not certifiable are not read.
  void record(Index i, std::span<const kernels::FusedRow> rows, double trace, Recorder& recorder) {
    for (const kernels::FusedRow& row : rows)
      if (!row.certifiable) return;
    const Index first_pass = starts_ == nullptr ? 1 : 0;
    const Trace* const run =
        record_fused<Scalar>(rows, recorder, result_.dim, result_.rank, alpha(), trace, first_pass);
    if (run == nullptr) return;
    if (batch_.keep_traces) result_.traces[static_cast<std::size_t>(i)] = *run;
    store_trace(i, *run, result_);
    result_.on_device[static_cast<std::size_t>(i)] = 1;
  }

  // By the host's align_batch, in copies.
  void solve_the_rest() {
    std::vector<Index> left;
    for (Index i = 0; i < targets_.count; ++i)
      if (result_.on_device[static_cast<std::size_t>(i)] == 0) left.push_back(i);
    const Index bytes =
        (targets_.rows * targets_.cols + result_.dim * result_.rank) * static_cast<Index>(sizeof(Scalar));
    const auto at_once = static_cast<std::size_t>(std::max<Index>(1, most_host_bytes / std::max<Index>(1, bytes)));
    for (std::size_t first = 0; first < left.size(); first += at_once) {
      const std::span<const Index> some(left.data() + first, std::min(at_once, left.size() - first));
      if (is_stopped()) {
        leave(some);
      } else {
        solve_on_host(some);
      }
    }
  }

  void solve_on_host(std::span<const Index> some) {
    const auto count = static_cast<Index>(some.size());
    const Index rows = targets_.rows, cols = targets_.cols, dim = result_.dim, rank = result_.rank;
    const itspace::Block<Scalar> targets = fetched(targets_, some);
    const itspace::MatrixStack<Scalar> stack{targets.data(), count, rows, cols};
    itspace::BatchResult<Scalar> solved;
    if (starts_ != nullptr) {
      const itspace::Block<Scalar> starts = fetched(*starts_, some);
      solved = itspace::align_batch<Scalar>(stack, {starts.data(), count, dim, rank}, options_, batch_);
    } else {
      solved = itspace::align_batch<Scalar>(stack, rank, options_, batch_);
    }
    for_runs(some, [&](Index from, Index at, Index length) {
      copy_to_device<Scalar>(device_, solved.factors.middleRows(at * dim, length * dim), factors(from, length));
    });
    for (std::size_t n = 0; n < some.size(); ++n) {
      const auto i = static_cast<std::size_t>(some[n]);
      result_.objectives.row(some[n]) = solved.objectives.row(static_cast<Index>(n));
      result_.status[i] = solved.status[n];
      result_.reasons[i] = std::move(solved.reasons[n]);
      result_.best[i] = solved.best[n];
      result_.certified[i] = solved.certified[n];
      result_.unresolved[i] = solved.unresolved[n];
      if (batch_.keep_traces) result_.traces[i] = std::move(solved.traces[n]);
    }
  }

  // Without a run, in a call that was stopped.
  void leave(std::span<const Index> some) {
    Space<Scalar> space(device_);
    for_runs(some, [&](Index from, Index, Index length) {
      if (starts_ != nullptr) {
        const Index rows = length * result_.dim, cols = result_.rank;
        space.copy(ConstView<Scalar>(starts_->data + from * result_.dim * cols, rows, cols, cols),
                   factors(from, length));
      } else {
        kernels::fill<Scalar>(device_.state().stream(), out(factors(from, length)),
                              std::numeric_limits<Scalar>::quiet_NaN());
      }
    });
    for (const Index i : some) result_.reasons[static_cast<std::size_t>(i)] = stopped_before;
  }

  // visit(from, at, length): problems from .. from + length - 1 are those at .. of the list.
  template <class Visit>
  static void for_runs(std::span<const Index> some, const Visit& visit) {
    for (std::size_t at = 0, end; at < some.size(); at = end) {
      end = at + 1;
      while (end < some.size() && some[end] == some[end - 1] + 1) ++end;
      visit(some[at], static_cast<Index>(at), static_cast<Index>(end - at));
    }
  }
  itspace::Block<Scalar> fetched(const MatrixStack<Scalar>& stack, std::span<const Index> some) {
    const Index rows = stack.rows, cols = stack.cols;
    itspace::Block<Scalar> copy(static_cast<Index>(some.size()) * rows, cols);
    for_runs(some, [&](Index from, Index at, Index length) {
      copy_to_host<Scalar>(device_, ConstView<Scalar>(stack.data + from * rows * cols, length * rows, cols, cols),
                           copy.middleRows(at * rows, length * rows));
    });
    return copy;
  }
  View<Scalar> factors(Index first, Index count) {
    const Index dim = result_.dim, rank = result_.rank;
    return {result_.factors.data() + first * dim * rank, count * dim, rank, rank};
  }
  double alpha() const { return options_.step_size.resolve(options_.steps); }

  const Device& device_;
  const MatrixStack<Scalar>& targets_;
  const MatrixStack<Scalar>* starts_;
  const AlignOptions& options_;
  BatchOptions batch_;
  bool stopped_ = false;
  std::vector<kernels::FusedPolynomial> polynomials_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  BatchResult<Scalar> result_;
};

}  // namespace

template <Storage Scalar>
BatchResult<Scalar> align_batch(const Device& device, const std::type_identity_t<MatrixStack<Scalar>>& targets,
                                const std::type_identity_t<MatrixStack<Scalar>>& starts, const AlignOptions& options,
                                const BatchOptions& batch) {
  check_stacks({targets.count, targets.rows, targets.cols}, {starts.count, starts.rows, starts.cols}, options, batch);
  return DeviceBatch<Scalar>(device, targets, &starts, starts.cols, options, batch).run();
}

template <Storage Scalar>
BatchResult<Scalar> align_batch(const Device& device, const std::type_identity_t<MatrixStack<Scalar>>& targets,
                                Index rank, const AlignOptions& options, const BatchOptions& batch) {
  check_stack({targets.count, targets.rows, targets.cols}, rank, options, batch);
  return DeviceBatch<Scalar>(device, targets, nullptr, rank, options, batch).run();
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                 \
  template BatchResult<Scalar> align_batch<Scalar>(const Device&, const std::type_identity_t<MatrixStack<Scalar>>&, \
                                                   const std::type_identity_t<MatrixStack<Scalar>>&,                \
                                                   const AlignOptions&, const BatchOptions&);                       \
  template BatchResult<Scalar> align_batch<Scalar>(const Device&, const std::type_identity_t<MatrixStack<Scalar>>&, \
                                                   Index, const AlignOptions&, const BatchOptions&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda
