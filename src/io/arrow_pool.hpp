// SPDX-License-Identifier: Apache-2.0
//
// Memory up to a limit, for one thread at a time. Large blocks are the system's pages and no part of the heap, where
// what is freed between others stays resident; those that are given back are kept for the next row group, within the
// limit.
#pragma once

#include <arrow/memory_pool.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>

namespace itspace::io {

class LimitedPool : public arrow::MemoryPool {
 public:
  explicit LimitedPool(std::int64_t limit) : limit_(limit) {}
  ~LimitedPool() override { unmap_spare(); }

  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    if (!is_large(size)) {
      ARROW_RETURN_NOT_OK(require_room(size));
      return of_heap_.Allocate(size, alignment, out);
    }
    if (spare_.empty()) return map(in_pages(size), out);
    // The smallest that is large enough, or the largest; its pages are there already.
    auto spare = spare_.lower_bound(size);
    if (spare == spare_.end()) --spare;
    const std::int64_t capacity = spare->first;
    *out = spare->second;
    spare_.erase(spare);
    spare_bytes_ -= capacity;
    mapped_.emplace(*out, capacity);
    const arrow::Status fits = remap(size, out);
    if (!fits.ok()) Free(*out, size, alignment);
    return fits;
  }

  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** bytes) override {
    if (!is_large(old_size) && !is_large(new_size)) {
      ARROW_RETURN_NOT_OK(require_room(new_size - old_size));
      return of_heap_.Reallocate(old_size, new_size, alignment, bytes);
    }
    if (is_large(old_size) && is_large(new_size)) return remap(new_size, bytes);
    std::uint8_t* moved = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &moved));
    std::memcpy(moved, *bytes, static_cast<std::size_t>(std::min(old_size, new_size)));
    Free(*bytes, old_size, alignment);
    *bytes = moved;
    return arrow::Status::OK();
  }

  void Free(std::uint8_t* bytes, std::int64_t size, std::int64_t alignment) override {
    if (!is_large(size)) {
      of_heap_.Free(bytes, size, alignment);
      return;
    }
    const auto block = mapped_.find(bytes);
    spare_.emplace(block->second, bytes);
    spare_bytes_ += block->second;
    mapped_.erase(block);
  }

  std::int64_t bytes_allocated() const override { return of_heap_.bytes_allocated() + mapped_bytes_ - spare_bytes_; }
  std::int64_t total_bytes_allocated() const override { return bytes_allocated(); }  // nobody asks
  std::int64_t num_allocations() const override { return static_cast<std::int64_t>(mapped_.size()); }
  std::string backend_name() const override { return "itspace"; }

 private:
  static bool is_large(std::int64_t size) { return size >= std::int64_t(1) << 16; }
  static std::int64_t in_pages(std::int64_t size) {
    constexpr std::int64_t page = 4096;
    return (size + page - 1) / page * page;
  }

  arrow::Status require_room(std::int64_t more) {
    const auto has_room = [&] { return more <= limit_ - of_heap_.bytes_allocated() - mapped_bytes_; };
    if (!has_room()) unmap_spare();
    if (has_room()) return arrow::Status::OK();
    return arrow::Status::OutOfMemory(more, " bytes are wanted beside ", bytes_allocated(), ", and ", limit_,
                                      " are the limit");
  }

  arrow::Status map(std::int64_t capacity, std::uint8_t** out) {
    ARROW_RETURN_NOT_OK(require_room(capacity));
    void* const block =
        ::mmap(nullptr, static_cast<std::size_t>(capacity), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return arrow::Status::OutOfMemory("the system has no ", capacity, " bytes");
    *out = static_cast<std::uint8_t*>(block);
    mapped_.emplace(*out, capacity);
    mapped_bytes_ += capacity;
    return arrow::Status::OK();
  }

  // Another size for a block in use, unless it is right already.
  arrow::Status remap(std::int64_t size, std::uint8_t** bytes) {
    const auto block = mapped_.find(*bytes);
    const std::int64_t before = block->second, capacity = in_pages(size);
    if (capacity <= before && before <= capacity + capacity / 4) return arrow::Status::OK();
    ARROW_RETURN_NOT_OK(require_room(capacity - before));
    void* const moved =
        ::mremap(*bytes, static_cast<std::size_t>(before), static_cast<std::size_t>(capacity), MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return arrow::Status::OutOfMemory("the system has no ", capacity, " bytes");
    mapped_.erase(block);
    *bytes = static_cast<std::uint8_t*>(moved);
    mapped_.emplace(*bytes, capacity);
    mapped_bytes_ += capacity - before;
    return arrow::Status::OK();
  }

  void unmap_spare() {
    for (const auto& [capacity, block] : spare_) ::munmap(block, static_cast<std::size_t>(capacity));
    mapped_bytes_ -= spare_bytes_;
    spare_bytes_ = 0;
    spare_.clear();
  }

  arrow::ProxyMemoryPool of_heap_{arrow::system_memory_pool()};  // counts what is given out
  std::int64_t limit_;
  std::unordered_map<std::uint8_t*, std::int64_t> mapped_;  // in use, and how large they are
  std::multimap<std::int64_t, std::uint8_t*> spare_;        // given back
  std::int64_t mapped_bytes_ = 0, spare_bytes_ = 0;         // of both, and of the second
};

}  // namespace itspace::io
