// SPDX-License-Identifier: Apache-2.0
//
// The options that all runs have in common: align's, align_batch's, and those on a GPU.
#pragma once

#include <itspace/align.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace itspace::python {

// Throws std::invalid_argument for names that there are not, and for a step size that is given twice.
AlignOptions align_options(Index steps, std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                           const std::string& solver, const std::string& route, std::optional<Index> guard,
                           std::uint64_t seed);

}  // namespace itspace::python
