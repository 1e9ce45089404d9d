// SPDX-License-Identifier: Apache-2.0
//
// The state of an OnlineAligner in a file: an .npz that numpy.load opens, with the key `format` = "itspace.online/1",
// `precision` ("float32" or "float64"), the options, and the parts of the stream under their own names. A stream that
// is saved and loaded goes on with the same bits. A file of another format, or of a newer version, is refused by name.
// The gate that is asked along the stream, where there is one, goes into the same file.
#pragma once

#include <itspace/export.hpp>
#include <itspace/follow_gate.hpp>
#include <itspace/io.hpp>
#include <itspace/online.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace itspace::io {

inline constexpr std::string_view online_format = "itspace.online/1";

// Whole or not at all, like every file of ours.
template <Storage Scalar>
ITSPACE_API void save_online(const std::filesystem::path& path, const OnlineAligner<Scalar>& aligner,
                             const std::optional<FollowGate>& gate = {});

// Which of the two load_online to call. @throws std::runtime_error where the file is no such state.
ITSPACE_API std::string online_precision(const std::filesystem::path& path);

// @throws std::runtime_error that names the file, what was found and what is expected.
template <Storage Scalar>
ITSPACE_API OnlineAligner<Scalar> load_online(const std::filesystem::path& path);
// Nothing where the stream has none.
ITSPACE_API std::optional<FollowGate> load_follow_gate(const std::filesystem::path& path);

}  // namespace itspace::io
