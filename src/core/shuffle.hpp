// SPDX-License-Identifier: Apache-2.0
//
// Seeded permutations, the same with every compiler.
#pragma once

#include <itspace/random.hpp>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace itspace {

// 0 .. n - 1 in random order (Fisher and Yates); the bias of the remainder is below n/2^64.
inline std::vector<Index> shuffled(Index n, std::uint64_t seed, std::uint64_t stream) {
  const Random random(seed, stream);
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index(0));
  for (std::size_t left = order.size(); left > 1; --left) {
    const auto pick = static_cast<std::size_t>(random.bits(left) % left);
    std::swap(order[left - 1], order[pick]);
  }
  return order;
}

}  // namespace itspace
