// SPDX-License-Identifier: Apache-2.0
#include <itspace/block.hpp>

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace itspace {

namespace {

// Large blocks ask for large pages, as NumPy does: the system takes a microsecond for each page of 4 KiB that is
// touched for the first time, which is as long as a product takes that reads it once. They consist of whole ones, where
// no more than a part of the block is wasted.
constexpr std::size_t small_unit = 64, large_page = std::size_t(1) << 21, worth_large_pages = 2 * large_page,
                      wasted_part = 4;

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  const bool large = bytes >= worth_large_pages && whole(bytes, large_page) - bytes <= bytes / wasted_part;
  const std::size_t unit = large ? large_page : small_unit, rounded = whole(bytes, unit);
  void* memory = rounded >= bytes ? std::aligned_alloc(unit, rounded) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (large) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: what comes of it does not matter
#endif
  return memory;
}

void free_bytes(void* memory) noexcept {
  std::free(memory);
}

}  // namespace itspace
