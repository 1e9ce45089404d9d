// SPDX-License-Identifier: Apache-2.0
#include <itspace/random.hpp>

#include "core/random_numbers.hpp"

#include <numbers>

namespace itspace {

static_assert(random_numbers::sqrt2 == std::numbers::sqrt2 && random_numbers::ln2 == std::numbers::ln2 &&
              random_numbers::pi == std::numbers::pi);

Random::Random(std::uint64_t seed, std::uint64_t stream)
    : key_(random_numbers::mix(random_numbers::mix(seed) ^ (stream * 0xd1342543de82ef95ULL))) {}

std::uint64_t Random::bits(std::uint64_t counter) const {
  return random_numbers::bits(key_, counter);
}

double Random::uniform(std::uint64_t counter) const {
  return random_numbers::uniform(key_, counter);
}

double Random::normal(std::uint64_t counter) const {
  return random_numbers::normal(key_, counter);
}

template <Storage Scalar>
void Random::fill_normal(BlockView<Scalar> out) const {
  for (Index i = 0; i < out.rows(); ++i)
    for (Index j = 0; j < out.cols(); ++j)
      out(i, j) = static_cast<Scalar>(normal(static_cast<std::uint64_t>(i * out.cols() + j)));
}

template void Random::fill_normal<float>(BlockView<float>) const;
template void Random::fill_normal<double>(BlockView<double>) const;

}  // namespace itspace
