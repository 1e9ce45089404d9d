// SPDX-License-Identifier: Apache-2.0
//
// Sums and gathered rows, in rounds of messages of limited size.
#include "core/require.hpp"
#include "mpi/state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace itspace::mpi {
namespace {

// Values of a round of messages: what is sent and received in it is held in memory.
constexpr Index round_values = Index(1) << 22;

// Rows of a block to contiguous memory, and back.
template <Storage Scalar>
void pack(const ConstBlockView<Scalar>& rows, std::byte* out) {
  const auto row_bytes = static_cast<std::size_t>(rows.cols()) * sizeof(Scalar);
  const auto count = static_cast<std::size_t>(rows.rows());
  if (rows.outerStride() == rows.cols()) {
    std::memcpy(out, rows.data(), count * row_bytes);
    return;
  }
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(out + i * row_bytes, rows.row(static_cast<Index>(i)).data(), row_bytes);
}
template <Storage Scalar>
void unpack(const std::byte* in, BlockView<Scalar> rows) {
  const auto row_bytes = static_cast<std::size_t>(rows.cols()) * sizeof(Scalar);
  const auto count = static_cast<std::size_t>(rows.rows());
  if (rows.outerStride() == rows.cols()) {
    std::memcpy(rows.data(), in, count * row_bytes);
    return;
  }
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(rows.row(static_cast<Index>(i)).data(), in + i * row_bytes, row_bytes);
}

// A message of so many rows: a stamp, and the rows. None is sent without rows.
std::size_t message_bytes(Index rows, std::size_t row_bytes) {
  return rows == 0 ? 0 : sizeof(std::uint64_t) + static_cast<std::size_t>(rows) * row_bytes;
}

}  // namespace

Communicator Communicator::world() {
  require(is_running(), "MPI is not running; make an mpi::Environment first, and keep it");
  return Communicator(std::make_shared<State>(MPI_COMM_WORLD));
}

Communicator Communicator::of(int fortran_handle) {
  require(is_running(), "MPI is not running; make an mpi::Environment first, and keep it");
  return Communicator(std::make_shared<State>(MPI_Comm_f2c(static_cast<MPI_Fint>(fortran_handle))));
}

int Communicator::rank() const {
  return state_->rank;
}
int Communicator::size() const {
  return state_->size;
}
Traffic Communicator::traffic() const {
  return state_->traffic;
}

void Communicator::set_time_limit(double seconds) {
  require(seconds >= 0, "the time limit is ", seconds, " s; it is 0 (none) or more");
  state_->limit_in_seconds = seconds;
}

void Communicator::sum(std::span<double> values) const {
  State& state = *state_;
  const std::size_t bytes = values.size_bytes();
  if (state.size == 1 || bytes == 0) return;
  State::Messages messages(state.size);
  state.small.resize(values.size() * state.slot(state.size));
  for (int peer = 0; peer < state.size; ++peer) {
    messages.to_size[state.slot(peer)] = messages.from_size[state.slot(peer)] = bytes;
    messages.from_offset[state.slot(peer)] = state.slot(peer) * bytes;
  }
  std::copy(values.begin(), values.end(),
            state.small.begin() + static_cast<std::ptrdiff_t>(state.slot(state.rank) * values.size()));
  state.exchange(messages, reinterpret_cast<const std::byte*>(values.data()),
                 reinterpret_cast<std::byte*>(state.small.data()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    double total = 0;
    for (std::size_t p = 0; p < state.slot(state.size); ++p) total += state.small[p * values.size() + i];
    values[i] = total;
  }
}

template <Storage Scalar>
void Communicator::sum_to_owners(const std::type_identity_t<ConstBlockView<Scalar>>& part, BlockView<Scalar> own,
                                 std::uint64_t stamp) const {
  State& state = *state_;
  const Index rows = part.rows(), cols = part.cols(), mine = own_rows(rows), first = first_row(rows);
  require(own.rows() == mine && own.cols() == cols, "a share of ", own.rows(), " x ", own.cols(), " of a block of ",
          rows, " x ", cols, " is asked for; the rows of this rank are ", mine);
  if (state.size == 1) {
    own = part;
    return;
  }
  if (rows == 0 || cols == 0) return;
  const Index most = (rows + state.size - 1) / state.size;
  const Index step = std::clamp<Index>(round_values / (cols * state.size), 1, most);
  const auto slot_bytes = sizeof(stamp) + static_cast<std::size_t>(step * cols) * sizeof(Scalar);
  const auto row_bytes = static_cast<std::size_t>(cols) * sizeof(Scalar);
  state.outgoing.resize(slot_bytes * state.slot(state.size));
  state.incoming.resize(slot_bytes * state.slot(state.size));
  State::Messages messages(state.size);
  std::vector<double> total(static_cast<std::size_t>(cols));
  for (Index done = 0; done < most; done += step) {
    const auto rows_now = [&](int peer) {
      return std::clamp<Index>(first_row(peer + 1, rows) - first_row(peer, rows) - done, 0, step);
    };
    const Index mine_now = rows_now(state.rank);
    for (int peer = 0; peer < state.size; ++peer) {
      const std::size_t at = state.slot(peer), offset = at * slot_bytes;
      messages.to_offset[at] = messages.from_offset[at] = offset;
      messages.to_size[at] = message_bytes(rows_now(peer), row_bytes);
      messages.from_size[at] = message_bytes(mine_now, row_bytes);
      if (peer == state.rank || rows_now(peer) == 0) continue;
      std::byte* out = state.outgoing.data() + offset;
      std::memcpy(out, &stamp, sizeof(stamp));
      pack<Scalar>(part.middleRows(first_row(peer, rows) + done, rows_now(peer)), out + sizeof(stamp));
    }
    state.exchange(messages, state.outgoing.data(), state.incoming.data());
    for (int peer = 0; peer < state.size && mine_now > 0; ++peer) state.check_stamp(peer, slot_bytes, stamp);
    for (Index i = 0; i < mine_now; ++i) {
      std::fill(total.begin(), total.end(), 0.0);
      for (int peer = 0; peer < state.size; ++peer) {
        const Scalar* values =
            peer == state.rank
                ? part.row(first + done + i).data()
                : reinterpret_cast<const Scalar*>(state.incoming.data() + state.slot(peer) * slot_bytes +
                                                  sizeof(stamp) + static_cast<std::size_t>(i) * row_bytes);
        for (std::size_t j = 0; j < total.size(); ++j) total[j] += static_cast<double>(values[j]);
      }
      for (Index j = 0; j < cols; ++j) own(done + i, j) = static_cast<Scalar>(total[static_cast<std::size_t>(j)]);
    }
  }
}

template <Storage Scalar>
void Communicator::gather_rows(const std::type_identity_t<ConstBlockView<Scalar>>& own, BlockView<Scalar> all,
                               std::uint64_t stamp) const {
  State& state = *state_;
  const Index rows = all.rows(), cols = all.cols(), mine = own_rows(rows), first = first_row(rows);
  require(own.rows() == mine && own.cols() == cols, "a share of ", own.rows(), " x ", own.cols(), " of a block of ",
          rows, " x ", cols, " is given; the rows of this rank are ", mine);
  if (own.data() != all.data() + first * all.outerStride()) all.middleRows(first, mine) = own;
  if (state.size == 1 || rows == 0 || cols == 0) return;
  const Index most = (rows + state.size - 1) / state.size;
  const Index step = std::clamp<Index>(round_values / (cols * state.size), 1, most);
  const auto row_bytes = static_cast<std::size_t>(cols) * sizeof(Scalar);
  const std::size_t slot_bytes = sizeof(stamp) + static_cast<std::size_t>(step) * row_bytes;
  state.outgoing.resize(slot_bytes);
  std::memcpy(state.outgoing.data(), &stamp, sizeof(stamp));
  state.incoming.resize(slot_bytes * state.slot(state.size));
  State::Messages messages(state.size);
  for (Index done = 0; done < most; done += step) {
    const auto rows_now = [&](int peer) {
      return std::clamp<Index>(first_row(peer + 1, rows) - first_row(peer, rows) - done, 0, step);
    };
    const Index mine_now = rows_now(state.rank);
    if (mine_now > 0) pack<Scalar>(all.middleRows(first + done, mine_now), state.outgoing.data() + sizeof(stamp));
    for (int peer = 0; peer < state.size; ++peer) {
      const std::size_t at = state.slot(peer);
      messages.to_size[at] = message_bytes(mine_now, row_bytes);
      messages.from_size[at] = message_bytes(rows_now(peer), row_bytes);
      messages.from_offset[at] = at * slot_bytes;
    }
    state.exchange(messages, state.outgoing.data(), state.incoming.data());
    for (int peer = 0; peer < state.size; ++peer)
      if (rows_now(peer) > 0) state.check_stamp(peer, slot_bytes, stamp);
    for (int peer = 0; peer < state.size; ++peer) {
      if (peer == state.rank || rows_now(peer) == 0) continue;
      unpack<Scalar>(state.incoming.data() + state.slot(peer) * slot_bytes + sizeof(stamp),
                     all.middleRows(first_row(peer, rows) + done, rows_now(peer)));
    }
  }
}

template <Storage Scalar>
void Communicator::sum_rows(BlockView<Scalar> block, std::uint64_t stamp) const {
  BlockView<Scalar> own = block.middleRows(first_row(block.rows()), own_rows(block.rows()));
  sum_to_owners<Scalar>(block, own, stamp);  // a row is read before it is written
  gather_rows<Scalar>(own, block, stamp);
}

template <Storage Scalar>
void Communicator::broadcast(BlockView<Scalar> block) const {
  State& state = *state_;
  const Index rows = block.rows(), cols = block.cols();
  if (state.size == 1 || rows == 0 || cols == 0) return;
  const auto row_bytes = static_cast<std::size_t>(cols) * sizeof(Scalar);
  const Index step = std::clamp<Index>(round_values / cols, 1, rows);
  state.outgoing.resize(static_cast<std::size_t>(step) * row_bytes);
  for (Index done = 0; done < rows; done += step) {
    const Index count = std::min(step, rows - done);
    State::Messages messages(state.size);
    const std::size_t bytes = static_cast<std::size_t>(count) * row_bytes;
    if (state.rank == 0) {
      pack<Scalar>(block.middleRows(done, count), state.outgoing.data());
      std::fill(messages.to_size.begin() + 1, messages.to_size.end(), bytes);
    } else {
      messages.from_size[0] = bytes;
    }
    state.exchange(messages, state.outgoing.data(), state.outgoing.data());
    if (state.rank != 0) unpack<Scalar>(state.outgoing.data(), block.middleRows(done, count));
  }
}

// Four streams of multiply-and-rotate, so that the sweep is bound by memory and not by the multiplier.
template <Storage Scalar>
std::uint64_t fingerprint(const std::type_identity_t<ConstBlockView<Scalar>>& block) {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  const auto bytes = static_cast<std::size_t>(block.cols()) * sizeof(Scalar);
  for (Index i = 0; i < block.rows(); ++i) {
    const auto* row = reinterpret_cast<const std::byte*>(block.row(i).data());
    std::size_t at = 0;
    for (unsigned lane = 0; at < bytes; at += sizeof(std::uint64_t), lane = (lane + 1) % 4) {
      std::uint64_t word = 0;
      std::memcpy(&word, row + at, std::min(sizeof(word), bytes - at));
      lanes[lane] = std::rotl((lanes[lane] ^ word) * odd, 29);
    }
  }
  std::uint64_t mixed = static_cast<std::uint64_t>(block.rows()) * odd + static_cast<std::uint64_t>(block.cols());
  for (const std::uint64_t lane : lanes) mixed = std::rotl((mixed ^ lane) * odd, 31);
  return mixed;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                      \
  template void Communicator::sum_rows<Scalar>(BlockView<Scalar>, std::uint64_t) const;                  \
  template void Communicator::sum_to_owners<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&, \
                                                    BlockView<Scalar>, std::uint64_t) const;             \
  template void Communicator::gather_rows<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&,   \
                                                  BlockView<Scalar>, std::uint64_t) const;               \
  template void Communicator::broadcast<Scalar>(BlockView<Scalar>) const;                                \
  template std::uint64_t fingerprint<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::mpi
