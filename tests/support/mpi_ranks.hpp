// SPDX-License-Identifier: Apache-2.0
//
// The ranks of the job that a test is part of.
#pragma once

#include <itspace/mpi/communicator.hpp>

namespace itspace::test {

// Begins MPI, which ends with the process. A rank that takes another way than the rest is waited for no longer than
// this, and the test fails.
inline const mpi::Communicator& all_ranks() {
  constexpr double patience_in_seconds = 60;
  static const mpi::Environment environment;
  static const mpi::Communicator ranks = [] {
    mpi::Communicator all = mpi::Communicator::world();
    all.set_time_limit(patience_in_seconds);
    return all;
  }();
  return ranks;
}

}  // namespace itspace::test
