// SPDX-License-Identifier: Apache-2.0
//
// CUDA's runtime on the memory of the host, for a machine without a GPU: what src/cuda asks of a device, with eyes that
// a device does not have. New memory is full of NaN. Every launch, copy and allocation must find the device current
// that its Device named; what is freed must be there, and all of it is gone at the end. Work is done at once, so that
// streams are not tested here; kernels are run by emulated/launch.hpp, or have stand-ins beside this file.
#include "stand_in/runtime.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace itspace::test {
namespace {

constexpr std::size_t total_bytes = std::size_t(1) << 32;
std::map<void*, std::size_t> pieces;
std::size_t held = 0, to_host = 0;
std::set<void*> handles;  // streams and events
// Not the one that the tests' Device is of: whoever needs that one makes it current, and this one again.
constexpr int callers = 1;
int current = callers;
cudaError_t last = cudaSuccess;

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "stand-in of CUDA: %s\n", what);
  std::abort();
}

cudaError_t make(void** memory, std::size_t bytes) {
  if (bytes > total_bytes - held) return answer(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xff, bytes);
  pieces[*memory] = bytes;
  held += bytes;
  return cudaSuccess;
}

cudaError_t destroy(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const auto found = pieces.find(memory);
  if (found == pieces.end()) refuse("memory is freed that is not there, or not any more");
  held -= found->second;
  pieces.erase(found);
  std::free(memory);
  return cudaSuccess;
}

template <class Handle>
cudaError_t make_handle(Handle* handle) {
  void* const made = std::malloc(1);
  handles.insert(made);
  *handle = static_cast<Handle>(made);
  return cudaSuccess;
}
cudaError_t destroy_handle(void* handle) {
  if (handles.erase(handle) == 0) refuse("a stream or an event is destroyed that is not there, or not any more");
  std::free(handle);
  return cudaSuccess;
}

// Sum over what is there at the end of the process, when all devices are gone.
struct AtTheEnd {
  ~AtTheEnd() {
    if (held != 0) refuse("memory was not given back");
    if (!handles.empty()) refuse("a stream or an event was not destroyed");
    if (current != callers) refuse("the caller's device is not current any more");
  }
} at_the_end;

}  // namespace

std::size_t bytes_to_host() {
  return to_host;
}

void require_current_device() {
  if (current != 0) refuse("work is launched while another device is current");
}

}  // namespace itspace::test

using namespace itspace::test;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 2;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device > 1) return answer(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "the host's memory");
  properties->major = 8;
  properties->minor = 0;
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = total_bytes - held;
  *total = total_bytes;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
  return "the stand-in's";
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error of the stand-in";
}
cudaError_t cudaGetLastError() {
  return std::exchange(last, cudaSuccess);
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  require_current_device();
  return make(memory, bytes);
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  require_current_device();
  return make(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  return destroy(memory);
}
cudaError_t cudaFreeHost(void* memory) {
  return destroy(memory);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  require_current_device();
  return make_handle(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  require_current_device();
  return make_handle(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return destroy_handle(stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  require_current_device();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  require_current_device();
  return make_handle(event);
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  require_current_device();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return destroy_handle(event);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  require_current_device();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  require_current_device();
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t) {
  require_current_device();
  if (kind == cudaMemcpyDeviceToHost) to_host += width * height;
  if (to_pitch < width || from_pitch < width) return answer(cudaErrorInvalidPitchValue);
  for (std::size_t row = 0; row < height; ++row)
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  require_current_device();
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
