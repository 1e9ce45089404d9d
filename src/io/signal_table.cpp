// SPDX-License-Identifier: Apache-2.0
//
// The two tables, and what handlers ask of them.
#include "signal_table.hpp"

#include <unistd.h>

#include <cerrno>
#include <itspace/signals.hpp>

namespace itspace::io {
namespace {

constinit SignalTable temporaries_table;
constinit SignalTable mappings_table;

}  // namespace

int SignalTable::add(const char* name, const void* begin, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.taken.exchange(true)) {
      row.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_relaxed);
      row.bytes.store(bytes, std::memory_order_relaxed);
      row.name.store(name, std::memory_order_release);
      return static_cast<int>(i);
    }
  }
  return -1;
}

void SignalTable::remove(int row) noexcept {
  if (row >= 0) {
    rows_[static_cast<std::size_t>(row)].name.store(nullptr, std::memory_order_release);
    rows_[static_cast<std::size_t>(row)].taken.store(false);
  }
}

SignalTable& temporaries() noexcept {
  return temporaries_table;
}

SignalTable& mappings() noexcept {
  return mappings_table;
}

void remove_temporaries() noexcept {
  const int kept = errno;
  temporaries().for_each([](const char* name, std::uintptr_t, std::size_t) { ::unlink(name); });
  errno = kept;
}

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const char* found = nullptr;
  mappings().for_each([&](const char* name, std::uintptr_t begin, std::size_t bytes) {
    if (at >= begin && at - begin < bytes) {
      found = name;
    }
  });
  return found;
}

}  // namespace itspace::io
