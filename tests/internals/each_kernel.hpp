// SPDX-License-Identifier: Apache-2.0
//
// One check under every instruction set that this machine has, and several numbers of threads.
#pragma once

#include <itspace/threads.hpp>

#include "kernels/strips.hpp"

#include <gtest/gtest.h>

namespace itspace::kernels {

template <class Check>
void with_each_kernel(const Check& check) {
  const auto names = instruction_sets();
  for (std::size_t set = 0; set < names.size(); ++set)
    for (const Index threads : {1, 2, 7}) {
      SCOPED_TRACE(names[set] + ", threads: " + std::to_string(threads));
      const UseInstructionSetForTests use(set);
      const ThreadScope scope(threads);
      check();
      if (testing::Test::HasFailure()) return;
    }
}

}  // namespace itspace::kernels
