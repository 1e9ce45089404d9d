// SPDX-License-Identifier: Apache-2.0
#include "kernels/blas_int.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace itspace {
namespace {

constexpr Index largest_int = std::numeric_limits<int>::max();
Index limit = largest_int;

}  // namespace

int blas_int(Index n) {
  if (n > limit)
    throw std::invalid_argument("a matrix has " + std::to_string(n) + " rows or columns, and BLAS counts to " +
                                std::to_string(limit) + "; take fewer samples, or reduce the dimension first");
  return static_cast<int>(n);
}

Index blas_limit() {
  return limit;
}
LowerBlasLimitForTests::LowerBlasLimitForTests(Index lower) {
  limit = std::min(lower, largest_int);
}
LowerBlasLimitForTests::~LowerBlasLimitForTests() {
  limit = largest_int;
}

}  // namespace itspace
