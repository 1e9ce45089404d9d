// SPDX-License-Identifier: Apache-2.0
//
// Limits of memory under which OpenBLAS would wait for ever: a message, or the result.
#include "program.hpp"

#include <cstdint>
#include <fstream>

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

// A file of zeros that takes no room on the disk.
void write_sparse(const fs::path& path, const std::string& type, Index rows, Index cols, Index value_bytes) {
  std::string dict = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                     std::to_string(cols) + "), }";
  constexpr std::size_t header = 128, before = 10;
  dict.resize(header - before - 1, ' ');
  std::ofstream(path, std::ios::binary) << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header - before)
                                        << '\0' << dict << '\n';
  fs::resize_file(path, header + static_cast<std::uintmax_t>(rows * cols * value_bytes));
}

TEST_F(Memory, AFileLargerThanTheLimitIsNamed) {
  write_sparse(path("big.npy"), "<f8", 187500, 2000, 8);
  for (const std::string command : {"info big.npy", "align --target big.npy --rank 3 --out Y.npy"}) {
    EXPECT_EQ(shell("export OPENBLAS_NUM_THREADS=1; ulimit -v 2000000; itspace " + command + " > out 2> err"), 3);
    EXPECT_TRUE(mentions(text_of("err"), {"big.npy", "3000000128 bytes", "ulimit -v", "raise it"})) << command;
  }
}

TEST_F(Memory, ACheckThatThereIsNoMemoryForCanBeLeftOut) {
  // 256 MB of file, 128 of BLAS, and the libraries, which are 100 to 200 from one system to the next; the check takes
  // 512.
  write_sparse(path("sigma.npy"), "<f4", 8000, 8000, 4);
  const std::string limited = "export OPENBLAS_NUM_THREADS=1; ulimit -v 700000; ",
                    align = "itspace align --target sigma.npy --rank 1 --steps 1 --out Y.npy > out 2> err";
  EXPECT_EQ(shell(limited + align), 3);
  EXPECT_TRUE(mentions(text_of("err"), {"sigma.npy", "positive semidefinite", "8000 x 8000", "--trust"}));
  EXPECT_EQ(shell(limited + align + " --trust"), 0) << text_of("err");
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
