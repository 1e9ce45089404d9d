// SPDX-License-Identifier: Apache-2.0
#undef _FORTIFY_SOURCE  // it takes a jump to another stack for a mistake

#include "emulated/launch.hpp"

#include "stand_in/runtime.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace itspace::test::emulated {
namespace {

constexpr std::size_t stack_bytes = 256 * 1024, most_shared_bytes = 227 * 1024, most_threads = 1024;

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "emulated kernel: %s\n", what);
  std::abort();
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

// Threads that wait for each other.
struct Meeting {
  int members = 0, arrived = 0;
  unsigned round = 0;
};

enum class State { fresh, running, waiting, done };
struct Fiber {
  std::unique_ptr<unsigned char[]> stack = std::make_unique<unsigned char[]>(stack_bytes);
  ucontext_t context;
  jmp_buf at;
  State state = State::fresh;
  Thread who;
  Meeting* meeting = nullptr;
  unsigned round = 0;  // of the meeting that it waits for
  std::vector<Copy> copies;
};

// What runs now. All of a launch runs on the host's thread that asked for it.
struct Block {
  std::vector<Fiber> fibers;
  std::vector<int> order;
  Meeting all;
  std::vector<Meeting> warps;
  std::vector<Word> words;  // two for each lane: who is ahead by a round does not write what another still reads
  std::unique_ptr<double[]> shared = std::make_unique<double[]>(most_shared_bytes / sizeof(double));
  const std::function<void()>* body = nullptr;
  Fiber* running = nullptr;
  jmp_buf scheduler;
  ucontext_t outside;
};

std::mutex one_launch;
Block& block() {
  static Block only;
  return only;
}

int warp_of(const Fiber& fiber) {
  return static_cast<int>(&fiber - block().fibers.data()) / warp_size;
}

// Who does not come to a meeting any more is no member.
void leave(Meeting& meeting) {
  --meeting.members;
  if (meeting.arrived > 0 && meeting.arrived == meeting.members) {
    meeting.arrived = 0;
    ++meeting.round;
  }
}

void body_of_fiber() {
  Block& b = block();
  Fiber& fiber = *b.running;
  (*b.body)();
  if (!fiber.copies.empty()) refuse("a thread ended that had not waited for its copies");
  fiber.state = State::done;
  leave(b.all);
  leave(b.warps[static_cast<std::size_t>(warp_of(fiber))]);
  _longjmp(b.scheduler, 1);
}

void resume(Fiber& fiber) {
  Block& b = block();
  b.running = &fiber;
  here = fiber.who;
  if (_setjmp(b.scheduler) != 0) return;
  if (fiber.state != State::fresh) {
    fiber.state = State::running;
    _longjmp(fiber.at, 1);
  }
  fiber.state = State::running;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, body_of_fiber, 0);
  swapcontext(&b.outside, &fiber.context);
}

void meet(Meeting& meeting) {
  Block& b = block();
  Fiber& fiber = *b.running;
  if (++meeting.arrived == meeting.members) {
    meeting.arrived = 0;
    ++meeting.round;
    return;
  }
  fiber.meeting = &meeting;
  fiber.round = meeting.round;
  fiber.state = State::waiting;
  if (_setjmp(fiber.at) == 0) _longjmp(b.scheduler, 1);
}

void run_block(int threads) {
  Block& b = block();
  int left = threads;
  while (left > 0) {
    bool moved = false;
    for (const int index : b.order) {
      Fiber& fiber = b.fibers[static_cast<std::size_t>(index)];
      const bool may_run =
          fiber.state == State::fresh || (fiber.state == State::waiting && fiber.meeting->round != fiber.round);
      if (!may_run) continue;
      moved = true;
      resume(fiber);
      if (fiber.state == State::done) --left;
    }
    if (!moved) refuse("threads wait for others that never come");
  }
}

}  // namespace

void run(dim3 grid, dim3 size, std::size_t shared_bytes, const std::function<void()>& body) {
  require_current_device();
  const std::lock_guard only(one_launch);
  Block& b = block();
  const std::size_t threads = std::size_t(size.x) * size.y * size.z;
  if (threads == 0 || threads > most_threads || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
      grid.z > 65535 || shared_bytes > most_shared_bytes)
    refuse("a launch of sizes that no device has");
  if (b.fibers.size() < threads) b.fibers = std::vector<Fiber>(threads);
  const std::size_t warps = (threads + warp_size - 1) / warp_size;
  b.warps.resize(warps);
  b.words.resize(2 * warps * warp_size);
  b.body = &body;
  block_size = size;
  grid_size = grid;
  static std::uint64_t launch = 0;
  b.order.resize(threads);
  std::iota(b.order.begin(), b.order.end(), 0);
  if (++launch % 3 == 1) std::reverse(b.order.begin(), b.order.end());
  if (launch % 3 == 2)  // warps, and lanes of each, in turns
    std::stable_sort(b.order.begin(), b.order.end(), [](int i, int j) { return i * 13 % 32 < j * 13 % 32; });
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        std::memset(b.shared.get(), 0xff, shared_bytes);
        b.all = {static_cast<int>(threads), 0, 0};
        for (std::size_t warp = 0; warp < warps; ++warp)
          b.warps[warp] = {static_cast<int>(std::min<std::size_t>(warp_size, threads - warp * warp_size)), 0, 0};
        for (std::size_t i = 0; i < threads; ++i) {
          Fiber& fiber = b.fibers[i];
          fiber.state = State::fresh;
          const auto at = static_cast<unsigned>(i);
          fiber.who = {{at % size.x, at / size.x % size.y, at / size.x / size.y}, {x, y, z}};
        }
        run_block(static_cast<int>(threads));
      }
}

void* dynamic_shared() {
  return block().shared.get();
}

void meet_block() {
  meet(block().all);
}
void meet_warp() {
  Block& b = block();
  meet(b.warps[static_cast<std::size_t>(warp_of(*b.running))]);
}

const Word* exchange(const Word& mine) {
  Block& b = block();
  const auto warp = static_cast<std::size_t>(warp_of(*b.running));
  Word* const words = b.words.data() + (2 * warp + b.warps[warp].round % 2) * warp_size;
  words[this_lane()] = mine;
  if (b.warps[warp].members != std::min<int>(warp_size, static_cast<int>(b.order.size() - warp * warp_size)))
    refuse("a warp exchanges words without all of its lanes");
  meet(b.warps[warp]);
  return words;
}

void begin_copy(void* to, const void* from, std::size_t bytes) {
  const auto fits = [bytes](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; };
  if ((bytes != 4 && bytes != 8 && bytes != 16) || !fits(to) || !fits(from))
    refuse("a copy of a size, or to a place, that there is not");
  block().running->copies.push_back({to, from, bytes});
}
void finish_copies() {
  for (const Copy& copy : block().running->copies) std::memcpy(copy.to, copy.from, copy.bytes);
  block().running->copies.clear();
}

}  // namespace itspace::test::emulated
