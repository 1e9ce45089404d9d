// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a job read: each sees that it is what the others see, and takes its share.
#pragma once

#include "arguments.hpp"

#include <itspace/mpi/communicator.hpp>
#include <itspace/row_files.hpp>

#include <string>

namespace itspace::cli {

// @throws on all ranks where one sees another shape, type or list of files than rank 0, or other values in three rows,
// which stand for the rest: nobody reads all of it.
void check_same_file(const mpi::Communicator& ranks, const Request& request, const io::Array& array);
void check_same_files(const mpi::Communicator& ranks, const Request& request, const io::RowFiles& files);

struct Verdict {
  Kind kind;
  std::string why;
};
// Whether a square array is symmetric is not asked: it would take all of it in one place.
// @throws std::invalid_argument where it cannot be spread.
Verdict kind_of(const TargetArguments& given, const io::Array& array);

// The rows of this rank: where the file holds them as they are needed, they stay in the file.
// @throws std::invalid_argument naming the value that is not finite.
template <Storage Data>
HeldBlock<Data> own_rows(const mpi::Communicator& ranks, const io::Array& array, const std::filesystem::path& path);

}  // namespace itspace::cli
