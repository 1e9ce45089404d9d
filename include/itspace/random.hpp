// SPDX-License-Identifier: Apache-2.0
//
// A counter-based generator: the value at (seed, stream, counter) is a pure function, the same with every compiler and
// on every machine. std::normal_distribution differs between standard libraries, and a stateful engine cannot be split
// over threads, ranks or devices; this can.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <cstdint>

namespace itspace {

class ITSPACE_API Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0);

  std::uint64_t bits(std::uint64_t counter) const;
  double uniform(std::uint64_t counter) const;  // in (0, 1)
  double normal(std::uint64_t counter) const;   // standard Gaussian

  // Entry (i, j) is normal(i*cols + j).
  template <Storage Scalar>
  void fill_normal(BlockView<Scalar> out) const;

  // What seed and stream come to: all that another place needs to draw the same numbers.
  std::uint64_t key() const { return key_; }

 private:
  std::uint64_t key_;
};

}  // namespace itspace
