// SPDX-License-Identifier: Apache-2.0
//
// What a Device is: its stream, its memory, and the ways between the host and it.
#pragma once

#include <itspace/cuda/device.hpp>

#include "cuda/error.hpp"

#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace itspace::cuda {

class LinearAlgebra;  // linear_algebra.hpp

// Makes a device current for the thread, and the one before again.
class UseDevice {
 public:
  explicit UseDevice(int ordinal) {
    check(cudaGetDevice(&before_), "asking for the current device");
    if (before_ == ordinal) return;
    check(cudaSetDevice(ordinal), "choosing the device");
    changed_ = true;
  }
  ~UseDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

// Device memory that grows and is used over and over: one piece for each purpose.
enum class Scratch { partials, product, inner, inner_columns, wide_rows, flags, fused, count };

class DeviceState {
 public:
  DeviceState(int ordinal, bool own_stream, cudaStream_t stream);
  ~DeviceState();
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  int ordinal() const { return ordinal_; }
  cudaStream_t stream() const { return stream_; }

  // Memory of blocks. What is given back is kept for the next block of that size: work on it is ordered by the stream.
  // Any thread may give back: where a collector of garbage runs is not for us to say.
  void* allocate(std::size_t bytes);
  void give_back(void* memory, std::size_t bytes) noexcept;
  void release_unused() noexcept;

  // @pre this device is current (UseDevice), as for everything below.
  template <class T>
  T* scratch(Scratch purpose, std::ptrdiff_t count) {
    return static_cast<T*>(scratch_bytes(purpose, bytes_of<T>(count)));
  }

  // Pinned memory that kernels write results to; read after synchronize(), and before the next call of results().
  double* results(std::ptrdiff_t count);

  // A copy of host values on the device, good for work that is launched before the next synchronize().
  const double* upload(const double* values, std::ptrdiff_t count);

  void synchronize();

  std::shared_ptr<LinearAlgebra> linear_algebra;  // none until asked for

  template <class T>
  static std::size_t bytes_of(std::ptrdiff_t count) {
    if (count < 0 || static_cast<std::size_t>(count) > std::numeric_limits<std::size_t>::max() / (2 * sizeof(T)))
      throw std::bad_alloc();
    return static_cast<std::size_t>(count) * sizeof(T);
  }

 private:
  struct Piece {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  void* scratch_bytes(Scratch purpose, std::size_t bytes);
  void* allocate_new(std::size_t bytes);
  void free_all() noexcept;
  static void grow_pinned(Piece& piece, std::size_t bytes);

  int ordinal_;
  bool owns_stream_;
  cudaStream_t stream_;
  std::mutex unused_lock_;
  std::map<std::size_t, std::vector<void*>> unused_;
  std::array<Piece, static_cast<std::size_t>(Scratch::count)> scratch_;
  Piece results_;
  Piece upload_host_, upload_device_;
  std::size_t uploaded_ = 0;  // bytes since the last wait
};

}  // namespace itspace::cuda
