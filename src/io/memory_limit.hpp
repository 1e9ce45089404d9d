// SPDX-License-Identifier: Apache-2.0
//
// Allocation on a file's word: refused, not tried, where the machine cannot hold it. Linux grants more memory than it
// has, and the process would be killed much later, without a message.
#pragma once

#include <cstdint>
#include <string_view>

namespace itspace::io {

// Throws unless `bytes` fit into the machine's physical memory. `what` opens the message: "'a.npy'".
void require_memory(std::uint64_t bytes, std::string_view what);

}  // namespace itspace::io
