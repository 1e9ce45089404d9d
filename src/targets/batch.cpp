// SPDX-License-Identifier: Apache-2.0
//
// Many problems, each a run of align() on its own, by whichever thread is free. Where they have few columns, a thread
// takes several at a time and makes their runs side by side.
#include <itspace/batch.hpp>
#include <itspace/covariance.hpp>
#include <itspace/targets.hpp>
#include <itspace/threads.hpp>

#include "core/align_impl.hpp"
#include "core/negative_variance.hpp"
#include "core/require.hpp"
#include "core/side_by_side.hpp"
#include "core/truncation.hpp"
#include "kernels/pool.hpp"
#include "targets/batch_parts.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace itspace {
namespace {

// Problems of one part. A claim costs little beside one problem, and what is left when a thread finds no more is short.
constexpr Index most_per_part = 16, parts_per_thread = 8;

// Whether the call is to end. The caller's function is asked on its own thread; the other threads see what it said.
class StopSign {
 public:
  explicit StopSign(const std::function<bool()>& should_stop) : should_stop_(should_stop) {}

  bool is_up() {
    if (should_stop_ && std::this_thread::get_id() == caller_ && !up_.load(std::memory_order_relaxed)) ask();
    return up_.load(std::memory_order_relaxed);
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  void ask() {
    try {
      if (should_stop_()) up_ = true;
    } catch (...) {
      thrown_ = std::current_exception();
      up_ = true;
    }
  }

  const std::function<bool()>& should_stop_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> up_ = false;
  std::exception_ptr thrown_;  // the caller's thread alone touches it
};

// Whether nothing needs to be said about a matrix, or done to it.
template <Storage Data>
bool is_plain(const ConstBlockView<Data>& sigma) {
  return is_exactly_symmetric<Data>(sigma) && sigma.diagonal().minCoeff() >= 0;
}

template <Storage Scalar, Storage Data>
class Batch {
 public:
  // Without starts: null.
  Batch(const MatrixStack<Data>& targets, const MatrixStack<Scalar>* starts, Index rank, const AlignOptions& options,
        const BatchOptions& batch)
      : targets_(targets), starts_(starts), options_(options), batch_(batch), stop_(batch.should_stop) {
    make_outcomes(targets.count, targets.cols, rank, options.steps, batch.keep_traces, result_);
    result_.factors = Block<Scalar>(targets.count * targets.cols, rank);
    if (batch.should_stop)
      on_step_ = [this](const Step&, const ConstBlockView<Scalar>&) {
        return stop_.is_up() ? StepAction::stop : StepAction::proceed;
      };
  }

  BatchResult<Scalar> run() {
    const Index shares = parts_per_thread * threads(), count = targets_.count;
    const Index per_part = std::clamp<Index>(count / shares, 1, most_per_part);
    const kernels::OneBlasThread blas;
    stop_.is_up();  // asked once in any case: other threads may leave the caller nothing to do
    kernels::run_parts((count + per_part - 1) / per_part, [&](Index part) {
      const kernels::PartScope alone;  // also where the caller does all parts by itself
      const Index begin = part * per_part, end = std::min(count, begin + per_part);
      if (suits_side_by_side(options_, result_.rank)) {
        solve_side_by_side(begin, end);
      } else {
        for (Index i = begin; i < end; ++i) solve(i);
      }
    });
    stop_.rethrow();
    return std::move(result_);
  }

 private:
  using Host = HostSpace<Scalar>;

  // A problem that has nothing against it, and its run.
  struct Prepared {
    Prepared(Index i, const ConstBlockView<Data>& matrix, StackOf kind) : index(i) {
      if (kind == StackOf::features) {
        features.emplace(lent(matrix));
        context.emplace(space, *features);
      } else {
        if (!is_plain<Data>(matrix)) averaged = averaged_away(matrix);
        covariance.emplace(lent(averaged.size() > 0 ? ConstBlockView<Data>(averaged) : matrix));
        context.emplace(space, *covariance);
      }
    }

    Index index;
    Host space;
    Block<Data> averaged;
    std::optional<FeaturesTarget<Scalar, Data>> features;
    std::optional<DenseTarget<Scalar, Data>> covariance;
    std::optional<RunContext<Host>> context;
  };

  // The pool's work must not throw, and what befalls one problem is no other's business.
  void solve(Index i) noexcept {
    guard(i, [&] {
      Prepared problem(i, targets_[i], batch_.targets);
      store(i, run_on_host<Scalar>(*problem.context, start_of(problem), options_, on_step_));
    });
  }

  void solve_side_by_side(Index begin, Index end) noexcept {
    std::vector<Index> left;  // without a result
    try {
      left.reserve(static_cast<std::size_t>(end - begin));
      std::deque<Prepared> problems;
      std::vector<SmallRun<Scalar>> runs;
      for (Index i = begin; i < end; ++i)
        guard(i, [&] {
          Prepared& problem = problems.emplace_back(i, targets_[i], batch_.targets);
          runs.push_back({&*problem.context, start_of(problem)});
          left.push_back(i);
        });
      run_side_by_side<Scalar>(runs, result_.rank, options_, on_step_);
      for (std::size_t at = 0; at < runs.size(); ++at) store(left[at], std::move(runs[at].result));
    } catch (...) {  // memory ran out, for one of them or for all
      for (const Index i : left) solve(i);
    }
  }

  // What `work` throws is the outcome of problem i.
  template <class Work>
  void guard(Index i, const Work& work) noexcept {
    if (starts_ != nullptr) {
      factor(i) = (*starts_)[i];
    } else {
      factor(i).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
    }
    try {
      if (stop_.is_up()) {
        give_reason(i, stopped_before);
      } else {
        work();
      }
    } catch (const std::invalid_argument& objection) {
      give_reason(i, objection.what());
      if (batch_.targets == StackOf::covariances)
        result_.status[static_cast<std::size_t>(i)] =
            targets_[i].allFinite() ? Status::not_a_covariance : Status::not_finite;
    } catch (const std::bad_alloc&) {
      give_reason(i, "memory ran out");
    } catch (const std::exception& error) {
      give_reason(i, error.what());
    } catch (...) {
      give_reason(i, "an exception of unknown type was thrown");
    }
  }

  // A copy without the asymmetry of rounding; throws std::invalid_argument for what no rounding explains.
  static Block<Data> averaged_away(const ConstBlockView<Data>& sigma) {
    check_symmetric<Data>(sigma, rounded_to_float);
    refuse_negative_variance<Data>(sigma, "the covariance");
    Block<Data> averaged = sigma;
    symmetrise<Data>(averaged);
    return averaged;
  }

  Block<Scalar> start_of(Prepared& problem) {
    if (starts_ != nullptr) return Block<Scalar>((*starts_)[problem.index]);
    return make_random_start(*problem.context, result_.rank, options_.seed);
  }

  void store(Index i, Result<Scalar> run) {
    const auto at = static_cast<std::size_t>(i);
    result_.reasons[at] = run.trace.reason;
    // Nothing from here on throws: a problem has its whole result, or none.
    factor(i) = run.factor;
    store_trace(i, run.trace, result_);
    if (batch_.keep_traces) result_.traces[at] = std::move(run.trace);
  }

  void give_reason(Index i, const char* reason) noexcept {
    try {
      result_.reasons[static_cast<std::size_t>(i)] = reason;
    } catch (const std::bad_alloc&) {
      result_.reasons[static_cast<std::size_t>(i)] = "memory ran out";  // short enough to need none
    }
  }

  static Borrowed<Data> lent(const ConstBlockView<Data>& view) {
    return borrow(view.data(), view.rows(), view.cols(), view.outerStride());
  }
  BlockView<Scalar> factor(Index i) { return result_.factors.middleRows(i * result_.dim, result_.dim); }

  const MatrixStack<Data>& targets_;
  const MatrixStack<Scalar>* starts_;
  const AlignOptions& options_;
  const BatchOptions& batch_;
  StopSign stop_;
  OnStep<Scalar> on_step_;
  BatchResult<Scalar> result_;
};

}  // namespace

template <Storage Scalar, Storage Data>
BatchResult<Scalar> align_batch(const std::type_identity_t<MatrixStack<Data>>& targets,
                                const std::type_identity_t<MatrixStack<Scalar>>& starts, const AlignOptions& options,
                                const BatchOptions& batch) {
  check_stacks({targets.count, targets.rows, targets.cols}, {starts.count, starts.rows, starts.cols}, options, batch);
  return Batch<Scalar, Data>(targets, &starts, starts.cols, options, batch).run();
}

template <Storage Scalar, Storage Data>
BatchResult<Scalar> align_batch(const std::type_identity_t<MatrixStack<Data>>& targets, Index rank,
                                const AlignOptions& options, const BatchOptions& batch) {
  check_stack({targets.count, targets.rows, targets.cols}, rank, options, batch);
  return Batch<Scalar, Data>(targets, nullptr, rank, options, batch).run();
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                       \
  template BatchResult<Scalar> align_batch<Scalar, Data>(const std::type_identity_t<MatrixStack<Data>>&,        \
                                                         const std::type_identity_t<MatrixStack<Scalar>>&,      \
                                                         const AlignOptions&, const BatchOptions&);             \
  template BatchResult<Scalar> align_batch<Scalar, Data>(const std::type_identity_t<MatrixStack<Data>>&, Index, \
                                                         const AlignOptions&, const BatchOptions&);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
