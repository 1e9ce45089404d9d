// SPDX-License-Identifier: Apache-2.0
#include <itspace/random.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace itspace {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits that passes BigCrush as a counter hash.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// log and cos(2 pi x) from additions, multiplications and divisions alone, which IEEE 754 rounds the same everywhere;
// the mathematical library's differ in the last bit between machines.
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // x = m 2^exponent, m in [1/2, 1)
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);  // log m = 2 artanh t, |t| < 0.172
  const double t2 = t * t;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2 * t * sum + exponent * std::numbers::ln2;
}

double portable_cos_two_pi(double x) {  // x in (0, 1)
  if (x > 0.5) x = 1 - x;               // even about 1/2
  const double sign = x > 0.25 ? -1 : 1;
  if (x > 0.25) x = 0.5 - x;
  const double t = 2 * std::numbers::pi * x;  // [0, pi/2]
  const double t2 = t * t;
  double sum = 1;
  for (int k = 24; k >= 2; k -= 2) sum = 1 - sum * t2 / (k * (k - 1.0));
  return sign * sum;
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed) ^ (stream * 0xd1342543de82ef95ULL))) {}

std::uint64_t Random::bits(std::uint64_t counter) const {
  return mix(key_ + mix(counter));
}

double Random::uniform(std::uint64_t counter) const {
  constexpr double below_one = 1 - 0x1p-53;  // the largest of 2^53 values would round to one
  return std::min((static_cast<double>(bits(counter) >> 11) + 0.5) * 0x1p-53, below_one);
}

double Random::normal(std::uint64_t counter) const {
  const double radius = std::sqrt(-2 * portable_log(uniform(2 * counter)));
  return radius * portable_cos_two_pi(uniform(2 * counter + 1));
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
