// SPDX-License-Identifier: Apache-2.0
//
// A small table that a signal handler can read at any moment: no lock, no allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace itspace::io {

class SignalTable {
 public:
  // `name` must live until remove(). Returns the row, or -1 where the table is full: the handler then knows less.
  int add(const char* name, const void* begin = nullptr, std::size_t bytes = 0) noexcept;
  void remove(int row) noexcept;

  // Calls visit(name, begin, bytes) for every row.
  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (const Row& row : rows_) {
      if (const char* const name = row.name.load(std::memory_order_acquire)) {
        visit(name, row.begin.load(std::memory_order_relaxed), row.bytes.load(std::memory_order_relaxed));
      }
    }
  }

 private:
  struct Row {
    std::atomic<bool> taken = false;
    std::atomic<const char*> name = nullptr;
    std::atomic<std::uintptr_t> begin = 0;
    std::atomic<std::size_t> bytes = 0;
  };
  static_assert(std::atomic<const char*>::is_always_lock_free && std::atomic<std::uintptr_t>::is_always_lock_free);
  std::array<Row, 256> rows_;
};

SignalTable& temporaries() noexcept;
SignalTable& mappings() noexcept;

}  // namespace itspace::io
