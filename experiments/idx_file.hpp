// SPDX-License-Identifier: Apache-2.0
//
// IDX files, the format of the MNIST family: bytes with a shape, plain or gzipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace itspace::experiments {

struct IdxArray {
  std::vector<std::size_t> shape;  // 1 to 3 dimensions
  std::vector<std::uint8_t> values;
};

// Throws std::runtime_error that names the file unless it is an IDX file of unsigned bytes, whole and nothing more.
IdxArray read_idx(const std::filesystem::path& path);

}  // namespace itspace::experiments
