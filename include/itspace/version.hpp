// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <itspace/export.hpp>

#include <string_view>

namespace itspace {

// "major.minor.patch" of the library that is linked.
ITSPACE_API std::string_view version();

}  // namespace itspace
