// SPDX-License-Identifier: Apache-2.0
//
// Scratch of a product. Targets are shared between threads, so scratch belongs to the thread. It is used again, so that
// a pass allocates nothing after the first, and given back when it has been far too large for a while: a thread that
// once multiplied something large does not hold on to that memory for good.
#pragma once

#include <itspace/block.hpp>

#include <limits>
#include <memory>
#include <new>

namespace itspace::kernels {

// Buffers that are in use at once.
enum class Scratch {
  converted_panel,
  rows_aside,
  feature_chunk,
  slabs,
  partial_sums,
  small_matrix,
  converted_matrix,
  group_products,
  jacobi_columns,
  lane_matrices,
  eigenpairs,
  krylov,
  inner
};

template <Storage Scalar>
class ScratchBuffer {
 public:
  // Room for `count` values, whatever they were before. Values of an earlier call are lost.
  Scalar* room_for(Index count) {
    constexpr Index far_too_large = 4;
    constexpr int patience = 64;
    const bool wasteful = capacity_ > far_too_large * count;
    unused_ = wasteful ? unused_ + 1 : 0;
    if (count > capacity_ || unused_ > patience) {
      memory_.reset();
      capacity_ = 0;
      const auto values = static_cast<std::size_t>(count);
      if (values > std::numeric_limits<std::size_t>::max() / sizeof(Scalar)) throw std::bad_alloc();
      memory_.reset(static_cast<Scalar*>(allocate_bytes(values * sizeof(Scalar))));  // aligned for vectors
      capacity_ = count;
      unused_ = 0;
    }
    return memory_.get();
  }
  Index capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(Scalar* memory) const noexcept { free_bytes(memory); }
  };
  std::unique_ptr<Scalar, Free> memory_;
  Index capacity_ = 0;
  int unused_ = 0;  // calls in a row that needed far less
};

template <Storage Scalar, Scratch Purpose>
Scalar* thread_scratch(Index count) {
  thread_local ScratchBuffer<Scalar> buffer;
  return buffer.room_for(count);
}

template <Storage Scalar, Scratch Purpose>
BlockView<Scalar> scratch_block(Index rows, Index cols) {
  return BlockView<Scalar>(thread_scratch<Scalar, Purpose>(rows * cols), rows, cols, cols);
}

}  // namespace itspace::kernels
