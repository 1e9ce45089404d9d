// SPDX-License-Identifier: Apache-2.0
//
// What a Communicator holds: MPI's own, the buffers, and one way to talk, an exchange of messages with all others.
#pragma once

#include <itspace/mpi/communicator.hpp>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace itspace::mpi {

using Clock = std::chrono::steady_clock;

// @throws Lost where the code is none of success.
void check(int code, const char* what);
bool is_running();

struct Communicator::State {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  Traffic traffic;
  double limit_in_seconds = 0;
  std::vector<std::byte> outgoing, incoming;  // kept between calls: no allocation in a solver's loop
  std::vector<MPI_Request> requests;
  std::vector<double> small;

  explicit State(MPI_Comm given);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::size_t slot(int peer) const { return static_cast<std::size_t>(peer); }

  // One message to each of the others and one from each, of the given sizes; those of size 0 are not sent.
  struct Messages {
    std::vector<std::size_t> to_size, to_offset, from_size, from_offset;

    explicit Messages(int size)
        : to_size(static_cast<std::size_t>(size)), to_offset(to_size), from_size(to_size), from_offset(to_size) {}
  };
  void exchange(const Messages& messages, const std::byte* out, std::byte* in);

  // Of the message that came from a peer, the first thing in it.
  void check_stamp(int peer, std::size_t slot_bytes, std::uint64_t stamp) const;

 private:
  void wait(Clock::time_point begin);
  [[noreturn]] void give_up();
};

}  // namespace itspace::mpi
