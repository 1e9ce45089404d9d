// SPDX-License-Identifier: Apache-2.0
//
// Scratch of a product. Targets are shared between threads, so scratch belongs to the thread, grows to what its
// products need and is used again: a pass allocates nothing after the first. `Slot` tells apart blocks that are in use
// at once.
#pragma once

#include <itspace/block.hpp>

#include <vector>

namespace itspace {

template <Storage Scalar, int Slot = 0>
BlockView<Scalar> scratch_block(Index rows, Index cols) {
  thread_local std::vector<Scalar> buffer;
  const auto size = static_cast<std::size_t>(rows * cols);
  if (buffer.size() < size) buffer.resize(size);
  return BlockView<Scalar>(buffer.data(), rows, cols, cols);
}

}  // namespace itspace
