// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace itspace::cli {

// Whether the address space or the data segment of this process is limited (ulimit -v, ulimit -d).
bool memory_is_limited();

// OpenBLAS asks for its work space again and again, for ever, where the limit does not allow it. So it is asked here
// first. @throws std::runtime_error naming the limit and the remedy.
void check_blas_memory();

}  // namespace itspace::cli
