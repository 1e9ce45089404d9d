// SPDX-License-Identifier: Apache-2.0
//
// A CUDA device as a place to compute: itspace::cuda, for those whose features live on a GPU.
//
// A Device is one queue of work on one GPU: a stream, the scratch memory that belongs to it, and memory of blocks that
// were given back and will be wanted again. Copies of it are the same queue. Blocks and targets hold on to theirs, so
// that nothing is freed under them. It serves one thread at a time: give each thread a Device of its own.
//
//     itspace::cuda::Device device(0);                  // a stream of its own, ordered after the default stream
//     itspace::cuda::Device theirs(0, current_stream);  // or the caller's: a cudaStream_t, as an opaque pointer
//
// Everything is launched on that stream. A call that gives numbers to the host waits for it; one that writes blocks
// does not. The calling thread's current device is left as it was.
//
// Errors (no device, a driver that is too old, a device of too low a compute capability, no memory) throw
// std::runtime_error, saying what was asked for and what there is; nothing is held on to, and the process goes on.
// No header here needs CUDA's.
#pragma once

#include <itspace/export.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace itspace::cuda {

// A cudaStream_t. Null is the default stream, as everywhere in CUDA.
using Stream = void*;

// The number of devices, 0 where there is no driver either. Never throws.
ITSPACE_API int device_count() noexcept;

// Why there is no device to be had; empty where there is one.
ITSPACE_API std::string why_no_device();

struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0, free_bytes = 0;
  int driver_version = 0, runtime_version = 0;  // as CUDA counts: 13000 is 13.0
};

// The lowest compute capability that the kernels are compiled for.
inline constexpr int least_major = 8, least_minor = 0;

class DeviceState;  // what a Device is: src/cuda/device_state.hpp

class ITSPACE_API Device {
 public:
  // With a stream of its own.
  explicit Device(int ordinal = 0);
  // With the caller's stream, which must belong to that device and outlive this and all blocks and targets made with
  // it.
  Device(int ordinal, Stream stream);

  int ordinal() const;
  Stream stream() const;
  DeviceProperties properties() const;

  // Does the work with this device as the calling thread's current one: for libraries that ask which that is.
  void while_current(const std::function<void()>& work) const;

  // Waits until all that was launched is done.
  void synchronize() const;
  // Gives back to CUDA the memory that is kept for blocks to come.
  void release_unused() const;

  DeviceState& state() const { return *state_; }

 private:
  std::shared_ptr<DeviceState> state_;
};

}  // namespace itspace::cuda
