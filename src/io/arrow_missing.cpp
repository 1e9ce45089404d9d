// SPDX-License-Identifier: Apache-2.0
//
// In place of arrow_loader.cpp where this library was built without Arrow.
#include "arrow_file.hpp"
#include "error.hpp"

namespace itspace::io {

std::unique_ptr<ArrowFile> open_arrow_file(const ArrowRequest&) {
  fail("this itspace was built without Arrow");
}

bool reads_arrow_files() {
  return false;
}

}  // namespace itspace::io
