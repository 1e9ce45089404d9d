// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace itspace::cli {

// The one of `words` that `typed` was most likely meant to be: few letters apart (missing, extra, wrong, or two
// exchanged); nullopt where none is near.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words);

}  // namespace itspace::cli
