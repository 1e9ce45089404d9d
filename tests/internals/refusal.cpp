// SPDX-License-Identifier: Apache-2.0
//
// A bad value handed to the library, and what it says, for a caller in C.
#include <itspace/covariance.hpp>
#include <itspace/export.hpp>

#include <cstddef>
#include <cstdio>
#include <limits>
#include <stdexcept>

extern "C" ITSPACE_API void refuse(char* message, std::size_t size) {
  itspace::Block<double> sigma = itspace::Block<double>::Identity(3, 3);
  sigma(1, 2) = -std::numeric_limits<double>::infinity();
  try {
    itspace::check_covariance<double>(sigma);
  } catch (const std::invalid_argument& error) {
    std::snprintf(message, size, "%s", error.what());
  }
}
