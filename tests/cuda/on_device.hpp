// SPDX-License-Identifier: Apache-2.0
//
// What the tests of this room share: the device, and views of blocks with a stride.
#pragma once

#include "runs.hpp"

#include <itspace/cuda/targets.hpp>

#include <gtest/gtest.h>

#include <string>

namespace itspace::test {

inline const cuda::Device& device() {
  static const cuda::Device first(0);
  return first;
}

#define ITSPACE_NEEDS_DEVICE()                                                            \
  do {                                                                                    \
    if (const std::string why = cuda::why_no_device(); !why.empty()) GTEST_SKIP() << why; \
  } while (false)

// A block inside a wider one, so that rows do not lie one after the other and none is aligned to more than a value.
template <Storage Scalar>
class Strided {
 public:
  explicit Strided(const Block<Scalar>& values)
      : cols_(values.cols()), memory_(device(), values.rows(), values.cols() + 3) {
    Block<Scalar> all = Block<Scalar>::Constant(values.rows(), values.cols() + 3, canary);
    all.middleCols(1, cols_) = values;
    cuda::copy_to_device<Scalar>(device(), all, memory_);
  }
  cuda::View<Scalar> view() { return {memory_.data() + 1, memory_.rows(), cols_, memory_.cols()}; }
  Block<Scalar> values() { return cuda::to_host<Scalar>(device(), view()); }
  // Nothing beside the view was written.
  bool is_clean() {
    const Block<Scalar> all = cuda::to_host<Scalar>(device(), memory_);
    return (all.leftCols(1).array() == canary).all() && (all.rightCols(2).array() == canary).all();
  }

 private:
  static constexpr Scalar canary = Scalar(-12345);
  Index cols_;
  cuda::Block<Scalar> memory_;
};

}  // namespace itspace::test
