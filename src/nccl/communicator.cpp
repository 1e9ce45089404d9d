// SPDX-License-Identifier: Apache-2.0
#include <itspace/nccl/targets.hpp>

#include "core/require.hpp"
#include "nccl/library.hpp"

#include <concepts>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace itspace::nccl {

std::string why_not() {
  try {
    library();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return cuda::why_no_device();
}

struct Communicator::State {
  State(mpi::Communicator given, cuda::Device on) : ranks(std::move(given)), device(std::move(on)) {}
  ~State() {
    if (comm == nullptr) return;
    try {
      device.while_current([&] { library().comm_destroy(comm); });
    } catch (const std::runtime_error&) {
      // The device is gone, and the others with it.
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  mpi::Communicator ranks;
  cuda::Device device;
  ncclComm_t comm = nullptr;
};

Communicator::Communicator(mpi::Communicator ranks, cuda::Device device)
    : state_(std::make_shared<State>(std::move(ranks), std::move(device))) {
  State& state = *state_;
  state.ranks.agree([] { library(); });
  ncclUniqueId id = {};
  state.ranks.agree([&] {
    if (state.ranks.rank() == 0) check(library().get_unique_id(&id), "making a name for the job");
  });
  const std::string told = state.ranks.broadcast(std::string(id.internal, sizeof id.internal));
  std::memcpy(id.internal, told.data(), sizeof id.internal);
  state.ranks.agree([&] {
    state.device.while_current([&] {
      check(library().comm_init_rank(&state.comm, state.ranks.size(), id, state.ranks.rank()),
            "joining the GPUs of the ranks, one for each,");
    });
  });
}

const mpi::Communicator& Communicator::ranks() const {
  return state_->ranks;
}

const cuda::Device& Communicator::device() const {
  return state_->device;
}

template <Storage Scalar>
void Communicator::sum(const cuda::View<Scalar>& block) const {
  require(block.stride == block.cols() || block.rows <= 1, "rows of ", block.cols(), " values lie ", block.stride,
          " apart; a sum between GPUs is of rows that lie one after the other: copy the block");
  const auto count = static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.cols());
  if (count == 0) return;
  constexpr ncclDataType_t type = std::same_as<Scalar, float> ? ncclFloat32 : ncclFloat64;
  const State& state = *state_;
  state.device.while_current([&] {
    check(library().all_reduce(block.data, block.data, count, type, ncclSum, state.comm,
                               static_cast<cudaStream_t>(state.device.stream())),
          "adding up a block");
  });
}
template ITSPACE_API void Communicator::sum<float>(const cuda::View<float>&) const;
template ITSPACE_API void Communicator::sum<double>(const cuda::View<double>&) const;

}  // namespace itspace::nccl
