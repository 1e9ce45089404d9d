// SPDX-License-Identifier: Apache-2.0
//
// CUDA's header of that name: copies into shared memory that arrive at the wait for them.
#pragma once

#include "emulated/launch.hpp"

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
  ::itspace::test::emulated::begin_copy(to, from, bytes);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(int) {
  ::itspace::test::emulated::finish_copies();
}
