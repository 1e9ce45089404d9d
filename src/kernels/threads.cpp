// SPDX-License-Identifier: Apache-2.0
#include <itspace/threads.hpp>

#include "kernels/pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

// Not every BLAS has them.
extern "C" {
void openblas_set_num_threads(int) __attribute__((weak));
int openblas_get_num_threads(void) __attribute__((weak));
}

namespace itspace {
namespace {

constexpr Index most_threads = 4096;

Index affinity_count() {
  // A machine may have more processors than cpu_set_t has bits.
  for (std::size_t bits = 1024; bits <= (std::size_t(1) << 20); bits *= 4) {
    cpu_set_t* set = CPU_ALLOC(bits);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max<Index>(1, std::thread::hardware_concurrency());
}

// The first positive integer of a setting such as OMP_NUM_THREADS=4,2; 0 where there is none.
Index setting(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  std::string_view digits(text);
  digits.remove_prefix(std::min(digits.find_first_not_of(" \t"), digits.size()));
  Index value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
  const bool ends_well = rest.empty() || rest.front() == ',' || rest.front() == ' ';
  return error == std::errc() && ends_well && value > 0 ? std::min(value, most_threads) : 0;
}

Index default_count() {
  static const Index count = [] {
    Index n = std::min(affinity_count(), most_threads);
    if (const double quota = kernels::cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup"); quota > 0)
      n = std::min(n, std::max<Index>(1, static_cast<Index>(std::ceil(quota))));
    // As OpenMP has it, the number may be above the processors that there are.
    if (const Index asked = setting("OMP_NUM_THREADS"); asked > 0) n = asked;
    if (const Index limit = setting("OMP_THREAD_LIMIT"); limit > 0) n = std::min(n, limit);
    return n;
  }();
  return count;
}

std::atomic<Index> process_count = 0;  // 0: the default
thread_local Index scope_count = 0;    // 0: that of the process
thread_local Index blas_scope = 0;     // what the innermost scope on this thread gave BLAS; 0: none lives

std::atomic<int> blas_before_process = 0;  // BLAS's own number when the process was given one

void set_blas(Index count) {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(static_cast<int>(count));
}
int blas_count() {
  return openblas_get_num_threads != nullptr ? openblas_get_num_threads() : 0;
}

// The scopes that have set BLAS's number, and that number outside of all of them. Scopes begin and end on many threads
// at once, with no lock, which a forked child might find taken. The turn makes a state that comes again another one:
// whoever read BLAS's number outside of all scopes did so only if none has begun since.
struct BlasScopes {
  std::uint16_t count = 0, outside = 0;
  std::uint32_t turn = 0;
};
std::atomic<BlasScopes> blas_scopes{};
static_assert(std::atomic<BlasScopes>::is_always_lock_free);

// Returns what the scope around it on this thread gave BLAS, for its end.
Index begin_blas_scope(Index count) {
  BlasScopes now = blas_scopes.load(), next;
  do {
    next = now;
    if (now.count == 0) next.outside = static_cast<std::uint16_t>(blas_count());
    ++next.count;
    ++next.turn;
  } while (!blas_scopes.compare_exchange_weak(now, next));
  set_blas(count);
  return std::exchange(blas_scope, count);
}

// Back to what the scope around it on this thread has, or the process had before. (On a thread that has none others
// live elsewhere, and theirs stays.) The last scope sets the number outside before it ends: after it, the next to begin
// would take a scope's number for that. Where one begins meanwhile it may run with too many.
void end_blas_scope(Index around) {
  blas_scope = around;
  BlasScopes now = blas_scopes.load(), next;
  do {
    const Index of_process = process_count.load();
    if (now.count > 1) {
      if (around > 0) set_blas(around);
    } else if (of_process > 0) {
      set_blas(of_process);
    } else if (now.outside > 0) {
      set_blas(now.outside);
    }
    next = now;
    --next.count;
    ++next.turn;
  } while (!blas_scopes.compare_exchange_weak(now, next));
}

void check(Index count) {
  if (count < 0 || count > most_threads)
    throw std::invalid_argument("the count of threads is " + std::to_string(count) + "; it must lie between 1 and " +
                                std::to_string(most_threads) + ", or be 0 for the default");
}

}  // namespace

namespace kernels {
namespace {

// A small file; empty where it cannot be read. (No streams: see core/require.hpp.)
std::string text_of(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return text;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
  std::fclose(file);
  return text;
}

double number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  static_cast<void>(end);
  return error == std::errc() ? value : 0;
}

double smaller_quota(double a, double b) {
  if (a <= 0) return b;
  return b > 0 ? std::min(a, b) : a;
}

// Whether "cpu" is one of the names of a list such as "cpu,cpuacct".
bool has_cpu(std::string_view names) {
  for (;;) {
    const std::size_t comma = names.find(',');
    if (names.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) return false;
    names.remove_prefix(comma + 1);
  }
}

// Version 2: "max 100000" or "150000 100000".
double quota_of_version_2(const std::string& folder) {
  const std::string line = text_of(folder + "/cpu.max");
  const std::size_t space = line.find(' ');
  if (space == std::string::npos || line.starts_with("max")) return 0;
  const double period = number(std::string_view(line).substr(space + 1));
  return period > 0 ? number(line) / period : 0;
}

// Version 1: -1 is no quota.
double quota_of_version_1(const std::string& folder) {
  const double quota = number(text_of(folder + "/cpu.cfs_quota_us"));
  const double period = number(text_of(folder + "/cpu.cfs_period_us"));
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

// Each group above ours limits it too; inside a container the path may name groups that are not mounted, and the root
// is ours.
double cpu_quota(const std::string& membership, const std::string& mounted_at) {
  double quota = 0;
  const std::string lines = text_of(membership);
  for (std::size_t at = 0, end; at < lines.size(); at = end + 1) {  // hierarchy:controllers:path
    end = std::min(lines.find('\n', at), lines.size());
    const std::string line = lines.substr(at, end - at);
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool version_2 = names.empty();
    if (!version_2 && !has_cpu(names)) continue;
    std::string path = line.substr(second + 1);
    for (;;) {
      if (path == "/") path.clear();
      if (version_2) {
        quota = smaller_quota(quota, quota_of_version_2(mounted_at + path));
      } else {
        for (const std::string& folder : {mounted_at + "/cpu", mounted_at + "/" + names})
          quota = smaller_quota(quota, quota_of_version_1(folder + path));
      }
      if (path.empty()) break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return quota;
}

}  // namespace kernels

Index threads() {
  if (kernels::inside_part()) return 1;
  if (scope_count > 0) return scope_count;
  const Index count = process_count.load(std::memory_order_relaxed);
  return count > 0 ? count : default_count();
}

void set_threads(Index count) {
  check(count);
  if (process_count.load() == 0 && count > 0) blas_before_process = blas_count();
  process_count = count;
  if (count > 0) {
    set_blas(count);
  } else if (blas_before_process > 0) {
    set_blas(blas_before_process);
  }
}

ThreadScope::ThreadScope(Index count) : outer_(scope_count), sets_blas_(count > 0) {
  check(count);
  if (!sets_blas_) return;
  scope_count = count;
  around_of_blas_ = begin_blas_scope(count);
}

ThreadScope::~ThreadScope() {
  scope_count = outer_;
  if (sets_blas_) end_blas_scope(around_of_blas_);
}

kernels::OneBlasThread::OneBlasThread() : around_(begin_blas_scope(1)) {}

kernels::OneBlasThread::~OneBlasThread() {
  end_blas_scope(around_);
}

bool kernels::OneBlasThread::is_to_be_had() {
  return openblas_set_num_threads != nullptr;
}

}  // namespace itspace
