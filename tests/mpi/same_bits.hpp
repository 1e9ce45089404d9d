// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mpi_ranks.hpp"

#include <itspace/block.hpp>

#include <algorithm>
#include <vector>

namespace itspace::test {

// Whether every rank has this very block.
template <Storage Scalar>
bool same_bits_on_all_ranks(const Block<Scalar>& block) {
  const std::uint64_t own = mpi::fingerprint<Scalar>(block);
  const auto size = static_cast<std::size_t>(all_ranks().size()), rank = static_cast<std::size_t>(all_ranks().rank());
  std::vector<double> halves(2 * size, 0.0);  // 32 bits each: a double has them all
  halves[rank] = static_cast<double>(own >> 32);
  halves[size + rank] = static_cast<double>(own & 0xFFFFFFFFu);
  all_ranks().sum(halves);
  return std::all_of(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(size),
                     [&](double half) { return half == halves[0]; }) &&
         std::all_of(halves.begin() + static_cast<std::ptrdiff_t>(size), halves.end(),
                     [&](double half) { return half == halves[size]; });
}

}  // namespace itspace::test
