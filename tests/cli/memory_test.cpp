// SPDX-License-Identifier: Apache-2.0
//
// Limits of memory under which OpenBLAS would wait for ever: a message, or the result.
#include "program.hpp"

namespace itspace::cli_test {
namespace {

class Memory : public ProgramTest {
 protected:
  Memory() {
    write("a.npy", gaussian(300, 100, 1));
    write("b.npy", gaussian(300, 100, 2));
  }
  std::string distance = "itspace distance a.npy b.npy > out 2> err";
};

#ifndef ITSPACE_SANITIZED  // a sanitizer takes terabytes of address space
TEST_F(Memory, ALimitThatLeavesBlasNoRoomIsNamed) {
  for (const std::string limit : {"-v", "-d"})
    for (const std::string threads : {"1", "4"}) {
      const std::string limited = "export OPENBLAS_NUM_THREADS=" + threads + "; ulimit " + limit + " 120000; ";
      EXPECT_EQ(shell(limited + distance), 3) << limited;
      EXPECT_TRUE(mentions(text_of("err"), {"itspace: error: ", "120000 kB", "ulimit " + limit, "raise the limit",
                                            "OPENBLAS_NUM_THREADS=1"}));
    }
}

// Whatever the limit: the result, or an error, and an end.
TEST_F(Memory, EveryLimitEnds) {
  for (const std::string limit : {"-v", "-d"})
    for (const std::string threads : {"1", "3"})
      for (int size = 120000; size <= 1000000; size += 80000) {
        const std::string limited =
            "export OPENBLAS_NUM_THREADS=" + threads + "; ulimit " + limit + " " + std::to_string(size) + "; ";
        const int code = shell(limited + "timeout 60 " + program() + distance.substr(std::string("itspace").size()));
        EXPECT_TRUE(code == 0 || code == 3) << limited << code << text_of("err");
      }
}
#endif

TEST_F(Memory, NoLimitNoWord) {
  EXPECT_EQ(shell(distance), 0);
  EXPECT_TRUE(mentions(text_of("out"), {"w2"}));
}

}  // namespace
}  // namespace itspace::cli_test
