// SPDX-License-Identifier: Apache-2.0
//
// How many threads a call may use.
//
// By default as many as this process may run on: the processors of its affinity mask, and no more than its container's
// CPU quota; OMP_NUM_THREADS and OMP_THREAD_LIMIT lower it, as they do for the OpenMP programs beside us. Small
// problems use one thread whatever the number. Same inputs, same number, same machine: same bits.
//
// The threads are our own pool, not OpenMP's: a forked child (Python's multiprocessing, data loaders) goes on working
// after its parent has used the library, where GNU's OpenMP waits for threads that fork did not copy. A call that finds
// the pool at work for another call does its work alone, with the same bits: eight callers on two processors take turns
// at nothing.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

namespace itspace {

// The number that calls from this thread may use; at least 1.
ITSPACE_API Index threads();

// For calls from all threads that begin after this one: ours and BLAS's. 0: the default again. Throws
// std::invalid_argument for a negative number or one above 4096.
ITSPACE_API void set_threads(Index count);

// For calls from this thread while it lives: ours, and BLAS's (whose number is one for the whole process, so while two
// of these live in two threads the last to begin has its way). A count of 0 leaves everything as it is.
class ITSPACE_API ThreadScope {
 public:
  explicit ThreadScope(Index count);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  Index outer_, around_of_blas_ = 0;
  bool sets_blas_;
};

}  // namespace itspace
