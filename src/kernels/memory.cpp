// SPDX-License-Identifier: Apache-2.0
#include <itspace/block.hpp>

#include <cstdlib>

namespace itspace {

void* allocate_bytes(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void free_bytes(void* memory) noexcept {
  std::free(memory);
}

}  // namespace itspace
