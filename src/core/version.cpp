// SPDX-License-Identifier: Apache-2.0
#include <itspace/version.hpp>

namespace itspace {

std::string_view version() {
  return ITSPACE_VERSION;
}

}  // namespace itspace
