// SPDX-License-Identifier: Apache-2.0
#include "mpi/state.hpp"

#include "core/require.hpp"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace itspace::mpi {
namespace {

constexpr int tag = 1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, words, &length);
  throw Lost(text("MPI could not ", what, ": ", std::string_view(words, static_cast<std::size_t>(length))));
}

bool is_running() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

Environment::Environment() {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun != 0) return;
  int level = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "start");
  owner_ = true;
}

Environment::~Environment() {
  if (owner_ && is_running()) MPI_Finalize();
}

void abort_job(int exit_code) {
  if (is_running()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

Communicator::State::State(MPI_Comm given) {
  check(MPI_Comm_dup(given, &comm), "duplicate a communicator");
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "take over its errors");
  check(MPI_Comm_rank(comm, &rank), "tell the rank");
  check(MPI_Comm_size(comm, &size), "tell the number of ranks");
}

Communicator::State::~State() {
  if (is_running()) MPI_Comm_free(&comm);
}

void Communicator::State::exchange(const Messages& messages, const std::byte* out, std::byte* in) {
  const auto begin = Clock::now();
  requests.assign(2 * slot(size), MPI_REQUEST_NULL);  // from the others, then to them
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + size - step) % size;
    if (messages.from_size[slot(peer)] == 0) continue;
    check(MPI_Irecv(in + messages.from_offset[slot(peer)], static_cast<int>(messages.from_size[slot(peer)]), MPI_BYTE,
                    peer, tag, comm, &requests[slot(peer)]),
          "receive");
  }
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    const std::size_t bytes = messages.to_size[slot(peer)];
    if (bytes == 0) continue;
    check(MPI_Isend(out + messages.to_offset[slot(peer)], static_cast<int>(bytes), MPI_BYTE, peer, tag, comm,
                    &requests[slot(size) + slot(peer)]),
          "send");
    ++traffic.messages;
    traffic.bytes += static_cast<std::int64_t>(bytes);
  }
  wait(begin);
  traffic.seconds += seconds_since(begin);
}

void Communicator::State::wait(Clock::time_point begin) {
  for (;;) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "go on");
    if (done != 0) return;
    if (limit_in_seconds > 0 && seconds_since(begin) > limit_in_seconds) give_up();
    std::this_thread::yield();  // there may be more ranks than processors
  }
}

void Communicator::State::give_up() {
  std::string silent;
  int count = 0;
  constexpr int most_named = 8;
  for (int peer = 0; peer < size; ++peer) {
    int done = 1;
    for (const std::size_t at : {slot(peer), slot(size) + slot(peer)}) {
      int of_this = 1;
      if (requests[at] != MPI_REQUEST_NULL) MPI_Test(&requests[at], &of_this, MPI_STATUS_IGNORE);
      done = done != 0 && of_this != 0 ? 1 : 0;
    }
    if (done == 0 && ++count <= most_named) silent += text(count > 1 ? ", " : "", peer);
  }
  if (count > most_named) silent += text(" and ", count - most_named, " more");
  throw Lost(text("rank", count == 1 ? " " : "s ", silent, " of ", size, count == 1 ? " has" : " have",
                  " not answered for ", limit_in_seconds, " s"));
}

void Communicator::State::check_stamp(int peer, std::size_t slot_bytes, std::uint64_t stamp) const {
  if (peer == rank || std::memcmp(incoming.data() + slot(peer) * slot_bytes, &stamp, sizeof(stamp)) == 0) return;
  throw Lost(text("rank ", peer, " has other numbers than rank ", rank,
                  " where both must have the same bits: the ranks must be machines of one kind, with the same number "
                  "of threads, and make the same calls"));
}

}  // namespace itspace::mpi
