// SPDX-License-Identifier: Apache-2.0
//
// Transport maps in files: an .npz that numpy.load opens, with the key `format` = "itspace.map/2", `kind`, and the
// parts of the map (TransportMap::Parts) under their own names, what is kept of the shift as kept_mean, kept_covariance
// and kept_deviations. A file of another format, or of a newer version, is refused by name; "itspace.map/1", which knew
// neither scales nor counts, is still read.
#pragma once

#include <itspace/export.hpp>
#include <itspace/io.hpp>
#include <itspace/transport_map.hpp>

#include <filesystem>
#include <string_view>

namespace itspace::io {

inline constexpr std::string_view map_format = "itspace.map/2";

// Whole or not at all, like every file of ours.
ITSPACE_API void save_map(const std::filesystem::path& path, const TransportMap& map);
ITSPACE_API void save_map(Outputs& outputs, const std::filesystem::path& path, const TransportMap& map);

// @throws std::runtime_error that names the file, what was found and what is expected: also where the parts contradict
// each other, such as a core that does not carry the one covariance to the other.
ITSPACE_API TransportMap load_map(const std::filesystem::path& path);

}  // namespace itspace::io
