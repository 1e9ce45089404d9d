// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool.hpp"

#include <itspace/threads.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
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

using Clock = std::chrono::steady_clock;

// As long as the r x r work of few columns takes between two sweeps, and of some more columns.
constexpr std::chrono::microseconds usual_gap(100), long_gap(1000);

// Whether `value` became another one than `old` while goes_on(), which is asked now and then.
template <class Value, class GoesOn>
bool saw_change(const std::atomic<Value>& value, Value old, const GoesOn& goes_on) {
  constexpr int looks = 64;
  do {
    for (int i = 0; i < looks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return true;
      pause_briefly();
    }
  } while (goes_on());
  return false;
}

// Waits until `value` is not `old`: awake for a usual gap, asleep after that. Nobody burns a processor that others
// want.
template <class Value>
void wait_while(const std::atomic<Value>& value, Value old) {
  const auto begin = Clock::now();
  if (!saw_change(value, old, [&] { return Clock::now() - begin < usual_gap; }))
    value.wait(old, std::memory_order_acquire);
}

// How often the system has taken the processor from this thread to give it to another.
long times_set_aside() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// The same for one thread that waits again and again. To be woken takes as long as a small sweep: where the last gap
// was a long one, and nobody else wanted the processor, it stays awake for as long.
class PatientWait {
 public:
  template <class Value>
  void operator()(const std::atomic<Value>& value, Value old) {
    const auto begin = Clock::now();
    const auto within = [&](auto gap) { return Clock::now() - begin < gap; };
    if (saw_change(value, old, [&] { return within(usual_gap); })) return;
    if (patient_ && !was_set_aside() && saw_change(value, old, [&] { return within(long_gap); })) return;
    value.wait(old, std::memory_order_acquire);
    patient_ = within(long_gap) && !was_set_aside();
  }

 private:
  bool was_set_aside() {
    const long before = std::exchange(set_aside_, times_set_aside());
    return set_aside_ != before;
  }

  bool patient_ = false;
  long set_aside_ = 0;
};

// What is left of a share of the parts, in one word, so that whoever claims the next one knows that the round is still
// on: the round, how many parts the share has, and how many of them are taken.
struct Share {
  static constexpr int bits = 18;
  static constexpr std::uint64_t mask = (std::uint64_t(1) << bits) - 1;

  static std::uint64_t pack(std::uint32_t round, std::uint64_t count, std::uint64_t taken) {
    return (std::uint64_t(round) << (2 * bits)) | (count << bits) | taken;
  }
  static bool is_of(std::uint64_t share, std::uint32_t round) {
    return share >> (2 * bits) == pack(round, 0, 0) >> (2 * bits);
  }
  static std::uint64_t count(std::uint64_t share) { return (share >> bits) & mask; }
  static std::uint64_t taken(std::uint64_t share) { return share & mask; }
};
constexpr Index most_parts_of_a_round = Index(Share::mask);
constexpr Index most_pool_threads = 256;

// While it lives this thread, and so the threads that it starts, leave signals to the others: whoever waits for them or
// handles them is not surprised by threads that are not his. What a thread brings upon itself it gets, and profilers
// see it.
class SignalsElsewhere {
 public:
  SignalsElsewhere() {
    sigset_t others;
    sigfillset(&others);
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&others, own);
    pthread_sigmask(SIG_BLOCK, &others, &before_);
  }
  ~SignalsElsewhere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsElsewhere(const SignalsElsewhere&) = delete;

 private:
  sigset_t before_;
};

class Pool {
 public:
  // False where another caller has it.
  bool run(Index parts, Index threads, void (*work)(void*, Index), void* context) {
    const std::unique_lock hold(callers_, std::try_to_lock);
    if (!hold.owns_lock()) return false;
    while (workers_ < threads - 1 && add_worker()) ++workers_;
    work_.store(work, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    parts_.store(parts, std::memory_order_relaxed);
    threads_.store(threads, std::memory_order_relaxed);
    unfinished_.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
    const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    for (Index share = 0; share < threads; ++share) {
      const auto count =
          static_cast<std::uint64_t>(first_of(share + 1, parts, threads) - first_of(share, parts, threads));
      shares_[static_cast<std::size_t>(share)].left.store(Share::pack(round, count, 0), std::memory_order_release);
    }
    round_.store(round, std::memory_order_release);
    round_.notify_all();
    claim_parts(round, 0);
    for (std::uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;
         left = unfinished_.load(std::memory_order_acquire))
      wait_while(unfinished_, left);
    return true;
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::uint64_t> left = 0;
  };

  static Index first_of(Index share, Index parts, Index threads) { return parts * share / threads; }

  bool add_worker() {
    const SignalsElsewhere elsewhere;
    try {
      std::thread([this, number = workers_ + 1] { serve(number); }).detach();
      return true;
    } catch (const std::system_error&) {
      return false;  // fewer threads then
    }
  }

  [[noreturn]] void serve(Index number) {
    in_part = true;
    std::uint32_t seen = 0;
    PatientWait wait_while;
    for (;;) {
      wait_while(round_, seen);
      seen = round_.load(std::memory_order_acquire);
      claim_parts(seen, number);
    }
  }

  // Each thread has a share of the parts, the same in every sweep over the same data, which its caches then hold; when
  // it is done it takes from the others' shares. A worker that comes late, when the round is over, claims nothing.
  void claim_parts(std::uint32_t round, Index number) {
    const Index threads = threads_.load(std::memory_order_relaxed);
    if (number >= threads) return;
    const bool outer = std::exchange(in_part, true);
    for (Index turn = 0; turn < threads; ++turn) {
      const Index share = (number + turn) % threads;
      auto& left = shares_[static_cast<std::size_t>(share)].left;
      for (std::uint64_t state = left.load(std::memory_order_acquire);
           Share::is_of(state, round) && Share::taken(state) < Share::count(state);) {
        if (!left.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
        // The round lasts until this part is done: what describes it stays.
        const Index first =
            first_of(share, parts_.load(std::memory_order_relaxed), threads_.load(std::memory_order_relaxed));
        const auto work = work_.load(std::memory_order_relaxed);
        work(context_.load(std::memory_order_relaxed), first + static_cast<Index>(Share::taken(state)));
        if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
        state = left.load(std::memory_order_acquire);
      }
    }
    in_part = outer;
  }

  std::mutex callers_;
  Index workers_ = 0;
  std::atomic<void (*)(void*, Index)> work_ = nullptr;
  std::atomic<void*> context_ = nullptr;
  std::atomic<Index> parts_ = 0, threads_ = 0;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;
  alignas(64) std::atomic<std::uint32_t> unfinished_ = 0;
  std::array<Line, most_pool_threads> shares_;
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

PartScope::PartScope() : outer_(std::exchange(in_part, true)) {}

PartScope::~PartScope() {
  in_part = outer_;
}

void run_parts(Index parts, Index threads, void (*work)(void*, Index), void* context) {
  threads = std::min({parts, threads, itspace::threads(), most_pool_threads});
  if (threads > 1 && parts <= most_parts_of_a_round && !in_part && pool().run(parts, threads, work, context)) return;
  for (Index part = 0; part < parts; ++part) work(context, part);
}

Index parts_for(double multiply_adds) {
  const double worthwhile = multiply_adds / least_work;
  if (worthwhile < 2) return 1;
  return std::min({threads(), most_parts, static_cast<Index>(std::min(worthwhile, double(most_parts)))});
}

}  // namespace itspace::kernels
