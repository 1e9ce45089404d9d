// SPDX-License-Identifier: Apache-2.0
//
// Small matrices with known properties, from a seed.
#pragma once

#include <itspace/random.hpp>
#include <itspace/space.hpp>

#include "core/rounding.hpp"

#include <Eigen/QR>
#include <cstdint>

namespace itspace {

inline Small normal(Index rows, Index cols, std::uint64_t seed) {
  Block<double> block(rows, cols);
  Random(seed).fill_normal<double>(block);
  return block;
}

inline Small orthonormal(Index rows, Index cols, std::uint64_t seed) {
  return Eigen::HouseholderQR<Small>(normal(rows, cols, seed)).householderQ() * Small::Identity(rows, cols);
}

// Symmetric, with these eigenvalues.
inline Small with_spectrum(const SmallVector& values, std::uint64_t seed) {
  const Small q = orthonormal(values.size(), values.size(), seed);
  const Small a = q * values.asDiagonal() * q.transpose();
  return 0.5 * (a + a.transpose());
}

}  // namespace itspace
