// SPDX-License-Identifier: Apache-2.0
#include "sampling.hpp"

#include <itspace/random.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace itspace::experiments {

std::vector<Index> shuffled(Index count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  const Random random(seed, stream);
  // Fisher and Yates; std::shuffle differs between standard libraries.
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto j = static_cast<std::size_t>(random.uniform(i) * static_cast<double>(i));
    std::swap(order[i - 1], order[std::min(j, i - 1)]);
  }
  return order;
}

Block<float> some_rows(const Block<float>& rows, double share, std::uint64_t seed, std::uint64_t stream) {
  const auto wanted = static_cast<Index>(std::lround(share * static_cast<double>(rows.rows())));
  const Index count = std::clamp<Index>(wanted, std::min<Index>(2, rows.rows()), rows.rows());
  const std::vector<Index> order = shuffled(rows.rows(), seed, stream);
  Block<float> kept(count, rows.cols());
  for (Index i = 0; i < count; ++i) kept.row(i) = rows.row(order[static_cast<std::size_t>(i)]);
  return kept;
}

}  // namespace itspace::experiments
