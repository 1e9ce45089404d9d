// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/device.hpp>

#include "cuda/device_state.hpp"
#include "cuda/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace itspace::cuda {
namespace {

// Sizes are rounded up to this, so that nearly equal blocks share.
constexpr std::size_t granule = 512;
// Uploads are small matrices; this many bytes hold those of several steps.
constexpr std::size_t least_upload = std::size_t(1) << 18;

std::size_t rounded(std::size_t bytes) {
  return (bytes + granule - 1) / granule * granule;
}

std::size_t power_of_two(std::size_t bytes) {
  std::size_t size = granule;
  while (size < bytes) size *= 2;
  return size;
}

// Errors of calls that are answered here must not be found by the next check of a launch.
cudaError_t forgotten(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

// Throws unless there is such a device and it can run the kernels.
void check_device(int ordinal) {
  int count = 0;
  const std::string none = no_device_text(forgotten(cudaGetDeviceCount(&count)));
  if (!none.empty()) throw std::runtime_error(none);
  if (ordinal < 0 || ordinal >= count) throw std::runtime_error(no_such_device_text(ordinal, count));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "reading the properties of the device");
  const std::string old = old_device_text(properties.name, properties.major, properties.minor);
  if (!old.empty()) throw std::runtime_error(old);
}

}  // namespace

int device_count() noexcept {
  int count = 0;
  return forgotten(cudaGetDeviceCount(&count)) == cudaSuccess ? count : 0;
}

std::string why_no_device() {
  int count = 0;
  return no_device_text(forgotten(cudaGetDeviceCount(&count)));
}

DeviceState::DeviceState(int ordinal, bool own_stream, cudaStream_t stream)
    : ordinal_(ordinal), owns_stream_(own_stream), stream_(stream) {
  check_device(ordinal);
  const UseDevice use(ordinal);
  kernels::check_compiled_for_this_device();
  // Not cudaStreamNonBlocking: what the caller launched on the default stream is done before.
  if (own_stream) check(cudaStreamCreate(&stream_), "creating a stream");
}

DeviceState::~DeviceState() {
  // Nothing to be done about errors here; each is forgotten.
  int before = 0;
  const bool known = cudaGetDevice(&before) == cudaSuccess;
  cudaSetDevice(ordinal_);
  cudaStreamSynchronize(stream_);
  linear_algebra.reset();
  free_all();
  if (owns_stream_) cudaStreamDestroy(stream_);
  if (known) cudaSetDevice(before);
  cudaGetLastError();
}

void DeviceState::free_all() noexcept {
  release_unused();
  for (Piece& piece : scratch_) cudaFree(piece.memory);
  cudaFree(upload_device_.memory);
  cudaFreeHost(upload_host_.memory);
  cudaFreeHost(results_.memory);
}

void* DeviceState::allocate_new(std::size_t bytes) {
  void* memory = nullptr;
  cudaError_t error = forgotten(cudaMalloc(&memory, bytes));
  if (error == cudaErrorMemoryAllocation) {
    release_unused();
    error = forgotten(cudaMalloc(&memory, bytes));
  }
  if (error == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    forgotten(cudaMemGetInfo(&free, &total));
    throw std::runtime_error(out_of_memory_text(bytes, free, total));
  }
  check(error, "allocating memory");
  return memory;
}

void* DeviceState::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  {
    const std::lock_guard lock(unused_lock_);
    if (const auto found = unused_.find(size); found != unused_.end()) {
      void* memory = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) unused_.erase(found);
      return memory;
    }
  }
  return allocate_new(size);
}

void DeviceState::give_back(void* memory, std::size_t bytes) noexcept {
  try {
    const std::lock_guard lock(unused_lock_);
    unused_[rounded(bytes)].push_back(memory);
  } catch (...) {
    cudaFree(memory);  // waits for what is launched
  }
}

void DeviceState::release_unused() noexcept {
  const std::lock_guard lock(unused_lock_);
  for (const auto& [size, memories] : unused_)
    for (void* memory : memories) forgotten(cudaFree(memory));
  unused_.clear();
}

void* DeviceState::scratch_bytes(Scratch purpose, std::size_t bytes) {
  Piece& piece = scratch_[static_cast<std::size_t>(purpose)];
  if (piece.bytes >= bytes && piece.memory != nullptr) return piece.memory;
  // cudaFree waits for what is launched on the old piece.
  check(cudaFree(piece.memory), "freeing scratch memory");
  piece = {};
  const std::size_t size = power_of_two(bytes);
  piece.memory = allocate_new(size);
  piece.bytes = size;
  return piece.memory;
}

void DeviceState::grow_pinned(Piece& piece, std::size_t bytes) {
  if (piece.bytes >= bytes && piece.memory != nullptr) return;
  check(cudaFreeHost(piece.memory), "freeing pinned memory");
  piece = {};
  const std::size_t size = power_of_two(bytes);
  check(cudaMallocHost(&piece.memory, size), "allocating pinned memory of the host");
  piece.bytes = size;
}

double* DeviceState::results(std::ptrdiff_t count) {
  grow_pinned(results_, bytes_of<double>(count));
  return static_cast<double*>(results_.memory);
}

const double* DeviceState::upload(const double* values, std::ptrdiff_t count) {
  const std::size_t bytes = bytes_of<double>(count);
  if (uploaded_ + bytes > upload_host_.bytes) {
    synchronize();
    if (bytes > upload_host_.bytes) {
      const std::size_t size = power_of_two(std::max(bytes, least_upload));
      check(cudaFree(upload_device_.memory), "freeing memory for uploads");
      upload_device_ = {};
      upload_device_ = {allocate_new(size), size};
      grow_pinned(upload_host_, size);
    }
  }
  char* host = static_cast<char*>(upload_host_.memory) + uploaded_;
  char* device = static_cast<char*>(upload_device_.memory) + uploaded_;
  std::memcpy(host, values, bytes);
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "copying a small matrix to the device");
  uploaded_ += bytes;
  return reinterpret_cast<const double*>(device);
}

void DeviceState::synchronize() {
  check(cudaStreamSynchronize(stream_), "waiting for the device");
  uploaded_ = 0;
}

Device::Device(int ordinal) : state_(std::make_shared<DeviceState>(ordinal, true, nullptr)) {}
Device::Device(int ordinal, Stream stream)
    : state_(std::make_shared<DeviceState>(ordinal, false, static_cast<cudaStream_t>(stream))) {}

int Device::ordinal() const {
  return state_->ordinal();
}

Stream Device::stream() const {
  return state_->stream();
}

DeviceProperties Device::properties() const {
  const UseDevice use(ordinal());
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, ordinal()), "reading the properties of the device");
  DeviceProperties properties;
  properties.name = found.name;
  properties.major = found.major;
  properties.minor = found.minor;
  properties.multiprocessors = found.multiProcessorCount;
  check(cudaMemGetInfo(&properties.free_bytes, &properties.memory_bytes), "asking for free memory");
  check(cudaDriverGetVersion(&properties.driver_version), "asking for the driver's version");
  check(cudaRuntimeGetVersion(&properties.runtime_version), "asking for the runtime's version");
  return properties;
}

void Device::while_current(const std::function<void()>& work) const {
  const UseDevice use(ordinal());
  work();
}

void Device::synchronize() const {
  const UseDevice use(ordinal());
  state_->synchronize();
}

void Device::release_unused() const {
  const UseDevice use(ordinal());
  state_->release_unused();
}

}  // namespace itspace::cuda
