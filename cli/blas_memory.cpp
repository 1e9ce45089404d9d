// SPDX-License-Identifier: Apache-2.0
//
// Trying to get what OpenBLAS will want.
#include "blas_memory.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

// Weak: another BLAS has no such call, and no such fault.
extern "C" int openblas_get_num_threads() __attribute__((weak));

namespace itspace::cli {

namespace {

// BUFFER_SIZE of OpenBLAS on x86-64 (32 << 22), one for each thread: the calling one gets its own in the first product,
// the others where they start.
constexpr std::uint64_t buffer_bytes = std::uint64_t{128} << 20;
// Small change that must be there too: stacks, the first blocks.
constexpr std::uint64_t slack_bytes = std::uint64_t{16} << 20;

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit = {};
  return getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

// How many buffers the threads of OpenBLAS have already: anonymous writable memory in pieces of that size, of which
// neighbours are shown as one.
std::uint64_t buffers_held() {
  std::uint64_t held = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0, inode = 1;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, mode, &inode) == 4 && inode == 0 &&
        std::string_view(mode) == "rw-p")
      held += (end - begin) / buffer_bytes;
  }
  return held;
}

bool can_map(std::uint64_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, bytes);
  return true;
}

// Without fmt and streams: it is also said before they are ready.
std::string no_room_for(std::uint64_t threads) {
  constexpr std::uint64_t kilo = 1024, mega = kilo * kilo;
  const std::uint64_t space = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
  std::string text = "the limit of ";
  if (space != UINT64_MAX) text += std::to_string(space / kilo) + " kB of address space (ulimit -v)";
  if (space != UINT64_MAX && data != UINT64_MAX) text += " and ";
  if (data != UINT64_MAX) text += std::to_string(data / kilo) + " kB of data (ulimit -d)";
  text += " leaves BLAS no room: its " + std::to_string(threads) + (threads == 1 ? " thread needs " : " threads need ");
  text += std::to_string(buffer_bytes / mega) +
          " MB each\nraise the limit, or set OPENBLAS_NUM_THREADS=1, which needs the least";
  return text;
}

}  // namespace

bool memory_is_limited() {
  return limit_of(RLIMIT_AS) != UINT64_MAX || limit_of(RLIMIT_DATA) != UINT64_MAX;
}

void check_blas_memory() {
  if (openblas_get_num_threads == nullptr || !memory_is_limited()) return;
  const auto threads = static_cast<std::uint64_t>(openblas_get_num_threads());
  const std::uint64_t held = buffers_held(), missing = held < threads ? threads - held : 1;
  if (!can_map(missing * buffer_bytes + slack_bytes)) throw std::runtime_error(no_room_for(threads));
}

}  // namespace itspace::cli

namespace {

using namespace itspace::cli;

std::uint64_t processors() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? static_cast<std::uint64_t>(CPU_COUNT(&cpus)) : 1;
}

// The threads that OpenBLAS will have: what the environment says, and no more than there are processors. (getenv knows
// nothing yet.)
std::uint64_t threads_to_come(char** environment) {
  for (const std::string_view name : {"OPENBLAS_NUM_THREADS=", "GOTO_NUM_THREADS=", "OMP_NUM_THREADS="})
    for (char** entry = environment; *entry != nullptr; ++entry) {
      const int threads = std::string_view(*entry).substr(0, name.size()) == name ? std::atoi(*entry + name.size()) : 0;
      if (threads > 0) return std::min(static_cast<std::uint64_t>(threads), processors());
    }
  return processors();
}

// Newer OpenBLAS (0.3.29) allocates where it is loaded, before main(), and waits there for ever. Only what stands in
// .preinit_array of a program runs before that; nothing but the C library is ready then.
void check_before_blas_is_loaded(int, char**, char** environment) {
  if (openblas_get_num_threads == nullptr || !memory_is_limited()) return;
  const std::uint64_t threads = threads_to_come(environment);
  if (can_map(threads * buffer_bytes + slack_bytes)) return;
  const std::string message = "itspace: error: " + no_room_for(threads) + "\n";
  constexpr int no_environment = 3;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(no_environment);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_main)(int, char**,
                                                                        char**) = check_before_blas_is_loaded;

}  // namespace
