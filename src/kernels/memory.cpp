// SPDX-License-Identifier: Apache-2.0
#include <itspace/block.hpp>

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace itspace {

namespace {

// Large blocks ask for large pages, as NumPy does: the system takes a microsecond for each page of 4 KiB that is
// touched for the first time, which is as long as a product takes that reads it once. The last page is made whole where
// little is wasted.
constexpr std::size_t large_page = std::size_t(1) << 21, worth_large_pages = 2 * large_page, wasted_share = 8;

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const bool large = bytes >= worth_large_pages;
  std::size_t rounded = whole(bytes, alignment);
  if (large && whole(bytes, large_page) - bytes <= bytes / wasted_share) rounded = whole(bytes, large_page);
  void* memory = rounded >= bytes ? std::aligned_alloc(large ? large_page : alignment, rounded) : nullptr;
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
