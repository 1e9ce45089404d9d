// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace itspace::test {

// Ends the process where the current device is not the one, 0, that the tests' Device is of.
void require_current_device();

// What was copied from the device so far.
std::size_t bytes_to_host();

}  // namespace itspace::test
