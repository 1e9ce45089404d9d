// SPDX-License-Identifier: Apache-2.0
//
// Scratch is used again while it fits, and given back when it has been far too large for a while.
#include "kernels/scratch.hpp"

#include <gtest/gtest.h>

namespace itspace::kernels {
namespace {

TEST(Scratch, IsUsedAgain) {
  ScratchBuffer<double> buffer;
  const double* memory = buffer.room_for(1000);
  for (int call = 0; call < 1000; ++call) {
    EXPECT_EQ(buffer.room_for(600 + call % 300), memory);
  }
  EXPECT_EQ(buffer.capacity(), 1000);
}

TEST(Scratch, OfOneLargeProductIsGivenBack) {
  ScratchBuffer<double> buffer;
  buffer.room_for(1 << 20);
  for (int call = 0; call < 100; ++call) buffer.room_for(100);
  EXPECT_EQ(buffer.capacity(), 100);
}

// Products of two sizes in turn, as in every pass: nothing is allocated again and again.
TEST(Scratch, KeepsTheLargerOfTwoInTurn) {
  ScratchBuffer<double> buffer;
  buffer.room_for(10000);
  for (int call = 0; call < 1000; ++call) {
    buffer.room_for(10);
    buffer.room_for(10000);
    EXPECT_EQ(buffer.capacity(), 10000);
  }
}

}  // namespace
}  // namespace itspace::kernels
