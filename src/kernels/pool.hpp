// SPDX-License-Identifier: Apache-2.0
//
// Work in parts, on the calling thread and those of one pool. Parts are fixed by the caller. Each thread has a share of
// them, and takes from the others' when it is done with its own: a thread that the system has set aside delays nobody
// but the part it holds, and results do not depend on who computed what.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <algorithm>
#include <string>

namespace itspace::kernels {

// work(context, part) for part = 0 .. parts - 1 (up to 2^18 of them; more are done alone), once each; returns when all
// are done. `work` must not throw. Inside a part, and while the pool serves another caller, all parts are done by the
// calling thread.
ITSPACE_API void run_parts(Index parts, Index threads, void (*work)(void*, Index), void* context);

// On at most so many threads; without a number, on one for each part.
template <class Work>
void run_parts(Index parts, Index threads, const Work& work) {
  run_parts(
      parts, threads, [](void* context, Index part) { (*static_cast<const Work*>(context))(part); },
      const_cast<Work*>(&work));
}
template <class Work>
void run_parts(Index parts, const Work& work) {
  run_parts(parts, parts, work);
}

// Whether this thread is at work on a part.
bool inside_part();

// While one lives, this thread counts as at work on a part: threads() is 1, whoever does the work and however busy the
// pool is. For work whose bits must not depend on that.
class PartScope {
 public:
  PartScope();
  ~PartScope();
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

 private:
  bool outer_;
};

// While one lives BLAS uses one thread; its number is one for the whole process. For parts that call BLAS themselves:
// its threads would contend with those of the pool, and their number decides the last bits.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

  static bool is_to_be_had();  // whether this BLAS can be told

 private:
  Index around_;
};

// The container's CPU quota in processors, from cgroup files of either version; 0 where there is none.
double cpu_quota(const std::string& membership, const std::string& mounted_at);

// Multiply-adds that are worth a part of their own: below, waking a thread costs more than it saves.
inline constexpr double least_work = 60e3;

// The most parts of anything; tables of them are kept on the stack.
inline constexpr Index most_parts = 256;

// The parts for so many multiply-adds: as many as there are threads, fewer where the work is small.
Index parts_for(double multiply_adds);

// Part p of n things cut into `parts` runs of whole groups.
struct Range {
  Index begin, end;
};
inline Range part_of(Index n, Index parts, Index part, Index group = 1) {
  const Index groups = (n + group - 1) / group;
  const auto cut = [&](Index p) { return std::min(n, groups * p / parts * group); };
  return {cut(part), cut(part + 1)};
}

}  // namespace itspace::kernels
