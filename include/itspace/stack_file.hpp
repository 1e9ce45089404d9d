// SPDX-License-Identifier: Apache-2.0
//
// Stacks in files: arrays of three dimensions, (count, rows, columns), as align_batch takes and makes them.
#pragma once

#include <itspace/export.hpp>
#include <itspace/io.hpp>

#include <filesystem>
#include <string_view>

namespace itspace::io {

// As open_array, for an array of three dimensions in C order, with at least one value. Its shape is that of the file;
// rows() are those of all its matrices, one after the other.
ITSPACE_API Array open_stack(const std::filesystem::path& path, std::string_view key = {});

// The block as an array of shape (block.rows()/rows_each, rows_each, block.cols()). @pre rows_each divides the rows.
template <Storage Scalar>
ITSPACE_API void save_stack(Outputs& outputs, const std::filesystem::path& path, const ConstBlockView<Scalar>& block,
                            Index rows_each);

}  // namespace itspace::io
