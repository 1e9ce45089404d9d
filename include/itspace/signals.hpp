// SPDX-License-Identifier: Apache-2.0
//
// What a program's own signal handlers may ask of itspace::io. The library installs no handler by itself. Both
// functions are async-signal-safe: they take no lock, allocate nothing and leave errno alone.
#pragma once

#include <itspace/export.hpp>

namespace itspace::io {

// Removes the temporary files of outputs that are not committed yet: for a handler that is about to end the process.
// What such a file would have replaced stays as it was.
ITSPACE_API void remove_temporaries() noexcept;

// The path of the input file that is mapped at `address` (siginfo_t::si_addr of a SIGBUS), or null. A mapped file that
// another program cuts short cannot be read to its end, and the kernel says so by SIGBUS.
ITSPACE_API const char* mapped_file_at(const void* address) noexcept;

}  // namespace itspace::io
