// SPDX-License-Identifier: Apache-2.0
//
// The machine's physical memory as a limit.
#include "memory_limit.hpp"

#include <unistd.h>

#include "error.hpp"

namespace itspace::io {

void require_memory(std::uint64_t bytes, std::string_view what) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) {
    return;  // unknown: let the allocation decide
  }
  const std::uint64_t limit = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  if (bytes > limit) {
    fail(
        "{} needs {} bytes of memory, this machine has {}; pass a smaller array, or save it uncompressed in C order "
        "and in the precision of the run, so that it can be mapped",
        what, bytes, limit);
  }
}

}  // namespace itspace::io
