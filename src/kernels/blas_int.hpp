// SPDX-License-Identifier: Apache-2.0
//
// BLAS and LAPACK count in integers of 32 bits. Every size that they are given goes through here.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

namespace itspace {

// Throws std::invalid_argument where n is too large.
ITSPACE_API int blas_int(Index n);

// The largest integer of BLAS and LAPACK. Lower while a LowerBlasLimitForTests lives, so that tests need no matrix of
// 2^31 entries; not to be lowered while another thread computes.
Index blas_limit();
class LowerBlasLimitForTests {
 public:
  explicit LowerBlasLimitForTests(Index limit);
  ~LowerBlasLimitForTests();
  LowerBlasLimitForTests(const LowerBlasLimitForTests&) = delete;
};

}  // namespace itspace
