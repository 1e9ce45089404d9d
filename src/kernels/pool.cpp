// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool.hpp"

#include <itspace/threads.hpp>

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace itspace::kernels {
namespace {

thread_local bool in_part = false;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is not `old`: awake for as long as the r x r work between two sweeps takes, asleep after that.
// Nobody burns a processor that others want.
template <class Value>
void wait_while(const std::atomic<Value>& value, Value old) {
  constexpr auto awake = std::chrono::microseconds(30);
  constexpr int looks = 64;
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < looks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() - begin < awake);
  value.wait(old, std::memory_order_acquire);
}

class Pool {
 public:
  // False where another caller has it.
  bool run(Index parts, Index threads, void (*work)(void*, Index), void* context) {
    const std::unique_lock hold(callers_, std::try_to_lock);
    if (!hold.owns_lock()) return false;
    while (workers_ < threads - 1 && add_worker()) ++workers_;
    work_.store(work, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    parts_.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
    helpers_.store(static_cast<std::uint32_t>(threads - 1), std::memory_order_relaxed);
    unfinished_.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
    const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    next_.store(std::uint64_t(round) << 32, std::memory_order_release);
    round_.store(round, std::memory_order_release);
    round_.notify_all();
    claim_parts(round);
    for (std::uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;
         left = unfinished_.load(std::memory_order_acquire))
      wait_while(unfinished_, left);
    return true;
  }

 private:
  bool add_worker() {
    try {
      std::thread([this, number = workers_] { serve(static_cast<std::uint32_t>(number)); }).detach();
      return true;
    } catch (const std::system_error&) {
      return false;  // fewer threads then
    }
  }

  [[noreturn]] void serve(std::uint32_t number) {
    in_part = true;
    std::uint32_t seen = 0;
    for (;;) {
      wait_while(round_, seen);
      seen = round_.load(std::memory_order_acquire);
      if (number < helpers_.load(std::memory_order_relaxed)) claim_parts(seen);
    }
  }

  // A worker that comes late, when another round is on or all parts are taken, claims nothing: the round is part of
  // what is compared.
  void claim_parts(std::uint32_t round) {
    const bool outer = std::exchange(in_part, true);
    for (;;) {
      std::uint64_t next = next_.load(std::memory_order_acquire);
      const auto work = work_.load(std::memory_order_relaxed);
      void* const context = context_.load(std::memory_order_relaxed);
      const std::uint32_t parts = parts_.load(std::memory_order_relaxed);
      if (next >> 32 != round || static_cast<std::uint32_t>(next) >= parts) break;
      if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
      work(context, static_cast<Index>(static_cast<std::uint32_t>(next)));
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
    }
    in_part = outer;
  }

  std::mutex callers_;
  Index workers_ = 0;
  std::atomic<void (*)(void*, Index)> work_ = nullptr;
  std::atomic<void*> context_ = nullptr;
  std::atomic<std::uint32_t> parts_ = 0, helpers_ = 0;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;
  alignas(64) std::atomic<std::uint64_t> next_ = 0;  // the round, and the next part of it
  alignas(64) std::atomic<std::uint32_t> unfinished_ = 0;
};

// Never destroyed: its threads may outlive static objects. After fork the child has no such threads, and starts anew.
std::atomic<Pool*> the_pool = nullptr;

void forget_pool() {
  the_pool.store(nullptr);
}

Pool& pool() {
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
  static_cast<void>(registered);
  Pool* found = the_pool.load(std::memory_order_acquire);
  if (found == nullptr) {
    auto made = std::make_unique<Pool>();
    if (the_pool.compare_exchange_strong(found, made.get())) found = made.release();
  }
  return *found;
}

}  // namespace

bool inside_part() {
  return in_part;
}

void run_parts(Index parts, Index threads, void (*work)(void*, Index), void* context) {
  threads = std::min({parts, threads, itspace::threads()});
  if (threads > 1 && !in_part && pool().run(parts, threads, work, context)) return;
  for (Index part = 0; part < parts; ++part) work(context, part);
}

Index parts_for(double multiply_adds) {
  const double worthwhile = multiply_adds / least_work;
  if (worthwhile < 2) return 1;
  return std::min({threads(), most_parts, static_cast<Index>(std::min(worthwhile, double(most_parts)))});
}

}  // namespace itspace::kernels
