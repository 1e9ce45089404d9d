// SPDX-License-Identifier: Apache-2.0
#include "targets/chunk_relay.hpp"

#include "targets/finite_rows.hpp"

#include <pthread.h>
#include <signal.h>

#include <thread>

namespace itspace {
namespace {

// Several rows go by at once, so that the sums, which are d in double, are loaded and stored less often.
template <Storage Data>
void gather_mean(const Chunk<Data>& chunk, const Eigen::RowVectorXd& origin, Eigen::RowVectorXd& mean) {
  constexpr Index together = 8;
  const Index cols = chunk.rows.cols();
  const Data* const rows = chunk.rows.data();
  const double* const from = origin.data();
  mean.setZero(cols);
  double* const sums = mean.data();
  Index i = 0;
  for (; i + together <= chunk.count; i += together) {
    const Data* const row = rows + i * cols;
    for (Index j = 0; j < cols; ++j) {
      double sum = 0;
      for (Index k = 0; k < together; ++k) sum += static_cast<double>(row[k * cols + j]) - from[j];
      sums[j] += sum;
    }
  }
  for (; i < chunk.count; ++i)
    for (Index j = 0; j < cols; ++j) sums[j] += static_cast<double>(rows[i * cols + j]) - from[j];
  mean /= static_cast<double>(chunk.count);
}

template <Storage Data>
double gather_scatter(const Chunk<Data>& chunk, const Eigen::RowVectorXd& origin) {
  double scatter = 0;
  for (Index i = 0; i < chunk.count; ++i)
    scatter += (chunk.rows.row(i).template cast<double>() - origin - chunk.mean).squaredNorm();
  return scatter;
}

// A reader leaves signals to the threads that the program knows of.
void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

template <Storage Data>
ChunkRelay<Data>::ChunkRelay(Index chunk_rows, Index cols) {
  for (Chunk<Data>& chunk : chunks_) chunk.rows.resize(chunk_rows, cols);
}

template <Storage Data>
bool ChunkRelay<Data>::fill(RowSource<Data>& source, Chunk<Data>& chunk, Index first_row, bool with_scatter) {
  chunk.count = 0;
  while (chunk.count < chunk.rows.rows()) {
    const Index count = source.read(chunk.rows.bottomRows(chunk.rows.rows() - chunk.count));
    if (count <= 0) break;
    chunk.count += count;
  }
  if (chunk.count == 0) return false;
  if (first_row == 0) origin_ = chunk.rows.row(0).template cast<double>();
  gather_mean(chunk, origin_, chunk.mean);
  if (!chunk.mean.allFinite()) require_finite(source, chunk.rows.topRows(chunk.count), first_row);
  chunk.scatter = with_scatter ? gather_scatter(chunk, origin_) : 0;
  return true;
}

template <Storage Data>
void ChunkRelay<Data>::read_all(RowSource<Data>& source, bool with_scatter) {
  std::exception_ptr failure;
  try {
    source.restart();
    for (Index number = 0, row = 0;; ++number) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return given_up_ || number - used_ < 2; });
        if (given_up_) return;
      }
      Chunk<Data>& chunk = chunks_[static_cast<std::size_t>(number % 2)];
      if (!fill(source, chunk, row, with_scatter)) break;
      row += chunk.count;
      const std::lock_guard lock(mutex_);
      ++read_;
      changed_.notify_all();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  read_all_ = true;
  changed_.notify_all();
}

template <Storage Data>
void ChunkRelay<Data>::sweep(RowSource<Data>& source, bool with_scatter,
                             const std::function<void(const Chunk<Data>&)>& visit) {
  read_ = used_ = 0;
  read_all_ = given_up_ = false;
  failure_ = nullptr;
  std::thread reader([&] {
    leave_signals_to_others();
    read_all(source, with_scatter);
  });
  struct Ended {
    ChunkRelay& relay;
    std::thread& thread;
    ~Ended() {
      {
        const std::lock_guard lock(relay.mutex_);
        relay.given_up_ = true;
        relay.changed_.notify_all();
      }
      thread.join();
    }
  } const ended{*this, reader};
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return read_ > used_ || read_all_; });
      if (read_ == used_) break;
    }
    visit(chunks_[static_cast<std::size_t>(used_ % 2)]);
    const std::lock_guard lock(mutex_);
    ++used_;
    changed_.notify_all();
  }
  if (failure_) std::rethrow_exception(failure_);
}

template class ChunkRelay<float>;
template class ChunkRelay<double>;

}  // namespace itspace
