// SPDX-License-Identifier: Apache-2.0
//
// Seeded choices of rows.
#pragma once

#include <itspace/block.hpp>

#include <cstdint>
#include <vector>

namespace itspace::experiments {

// 0 ... count - 1 in a random order, the same for the same seed and stream everywhere.
std::vector<Index> shuffled(Index count, std::uint64_t seed, std::uint64_t stream);

// A random share of the rows, at least two (all of them for 1), in a random order. @pre 0 < share <= 1.
Block<float> some_rows(const Block<float>& rows, double share, std::uint64_t seed, std::uint64_t stream);

}  // namespace itspace::experiments
