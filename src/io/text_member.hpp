// SPDX-License-Identifier: Apache-2.0
//
// A text inside an .npz: the `format` of a file of ours.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace itspace::io {

// The text of the array `key`, which must be there, have no dimensions and hold a string (NumPy's types U and S).
// Characters beyond ASCII come back as '?': no name of ours has any.
std::string read_text(const std::filesystem::path& path, std::string_view key);

}  // namespace itspace::io
