// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace itspace {

// The r x r work is in double, whatever the blocks are in.
inline constexpr double eps64 = std::numeric_limits<double>::epsilon();

}  // namespace itspace
