// SPDX-License-Identifier: Apache-2.0
//
// The numbers of random.hpp as pure functions of a key and a counter. They are written once for the host and for a
// device, which must draw the same bits: compile either without contraction of products and sums.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define ITSPACE_HOST_DEVICE __host__ __device__
#else
#define ITSPACE_HOST_DEVICE
#endif

namespace itspace::random_numbers {

// Those of <numbers>, which a device's compiler may be too old for.
constexpr double sqrt2 = 1.41421356237309504880, ln2 = 0.693147180559945309417, pi = 3.14159265358979323846;

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits that passes BigCrush as a counter hash.
ITSPACE_HOST_DEVICE inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// log and cos(2 pi x) from additions, multiplications and divisions alone, which IEEE 754 rounds the same everywhere;
// the mathematical library's differ in the last bit between machines.
ITSPACE_HOST_DEVICE inline double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // x = m 2^exponent, m in [1/2, 1)
  if (m < sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);  // log m = 2 artanh t, |t| < 0.172
  const double t2 = t * t;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2 * t * sum + exponent * ln2;
}

ITSPACE_HOST_DEVICE inline double portable_cos_two_pi(double x) {  // x in (0, 1)
  if (x > 0.5) x = 1 - x;                                          // even about 1/2
  const double sign = x > 0.25 ? -1 : 1;
  if (x > 0.25) x = 0.5 - x;
  const double t = 2 * pi * x;  // [0, pi/2]
  const double t2 = t * t;
  double sum = 1;
  for (int k = 24; k >= 2; k -= 2) sum = 1 - sum * t2 / (k * (k - 1.0));
  return sign * sum;
}

ITSPACE_HOST_DEVICE inline std::uint64_t bits(std::uint64_t key, std::uint64_t counter) {
  return mix(key + mix(counter));
}

ITSPACE_HOST_DEVICE inline double uniform(std::uint64_t key, std::uint64_t counter) {
  constexpr double below_one = 1 - 0x1p-53;  // the largest of 2^53 values would round to one
  const double value = (static_cast<double>(bits(key, counter) >> 11) + 0.5) * 0x1p-53;
  return value < below_one ? value : below_one;
}

ITSPACE_HOST_DEVICE inline double normal(std::uint64_t key, std::uint64_t counter) {
  const double radius = std::sqrt(-2 * portable_log(uniform(key, 2 * counter)));
  return radius * portable_cos_two_pi(uniform(key, 2 * counter + 1));
}

}  // namespace itspace::random_numbers
